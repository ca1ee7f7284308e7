//! Where settings come from, the files as they were found, and the typed parts with their defaults. Reading them lives in `mod`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wire::changes::Checkpoints;
use wire::state::{Durability, InterruptMode, QueueMode};

use crate::settings::limits;
use crate::source::Scope;
use crate::trust::Trust;

/// How queued messages are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueSettings {
    /// `steeringMode`.
    pub steering_mode: QueueMode,
    /// `followUpMode`.
    pub follow_up_mode: QueueMode,
    /// `interruptMode`.
    pub interrupt_mode: InterruptMode,
}

/// When the entry of a session's last request is kept in the provider's prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheWarming {
    /// Never.
    #[default]
    Off,
    /// While a run continues.
    Streaming,
    /// Between runs, too.
    Idle,
}

/// How much a process with many sessions and clients may hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capacity {
    /// `maxOpenSessions`: how many sessions stay open in addition to the first; the least recently used one is evicted for
    /// another.
    pub max_open_sessions: Option<u64>,
    /// `webMemoryMib`: memory that all web clients hold together.
    pub web_memory_mib: Option<u64>,
    /// `sessionIdleMs`: milliseconds without a command after which a session other than the first is evicted; 0 is never.
    pub session_idle_ms: Option<u64>,
}

/// Which tools the model gets, and what some of them may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOptions {
    /// `defaultTools`: names, `+name`, `-name`.
    pub default: Option<Vec<String>>,
    /// `fetch.enabled`: the model gets the tool `fetch` unless a list of tools says otherwise.
    pub fetch: bool,
    /// `fetch.privateHosts`: hosts whose private addresses are allowed.
    pub fetch_private_hosts: Vec<String>,
    /// `processes.enabled`: the model can start processes in the background unless a list of tools says otherwise.
    pub processes: bool,
    /// `processes.wake`: the end of a process may wake an idle session.
    pub process_wakeups: bool,
    /// `subagents.enabled`: the model gets the tool `task` unless a list of tools says otherwise.
    pub subagents: bool,
    /// `subagents.maxParallel`: sub-agents of a session that work at the same time.
    pub parallel_subagents: u32,
    /// False if `extensions` disables `builtin:mcp`, the extension of pi that brings MCP servers.
    pub mcp: bool,
}

/// Where settings come from.
#[derive(Debug, Clone, Copy)]
pub struct SettingsSource<'a> {
    /// The user's configuration directory.
    pub agent_dir: &'a Path,
    /// The session's working directory.
    pub cwd: &'a Path,
    /// For `~` in paths.
    pub home: Option<&'a Path>,
    /// Who was asked whether the project is trusted.
    pub trust: &'a Trust,
    /// Names of the built-in tools. A rule that forbids and misspells one is a fault.
    pub tools: &'a [&'a str],
    /// True if `config.yml` of oh-my-pi counts.
    pub is_omp: bool,
}

/// A settings file as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// Whose it is: `User` or `Project`.
    pub scope: Scope,
    /// What became of it.
    pub state: FileState,
    /// Its keys in its own order. Values are not kept here: they may be secret.
    pub keys: Vec<FoundKey>,
}

/// What became of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// There is none.
    Missing,
    /// It was read.
    Read,
    /// It could not be used at all; why, with line and column where that applies.
    Broken(String),
    /// It is there, but nothing of the project is used.
    NotRead,
}

/// A key of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundKey {
    /// Its path, such as `retry.provider.maxRetries`.
    pub key: String,
    /// What it comes to.
    pub usage: KeyUse,
}

/// What a key of a settings file comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyUse {
    /// It has an effect.
    Used,
    /// It is understood and checked, but nothing depends on it in this version.
    NotYet,
    /// It belongs to a terminal or to a part of other agents that does not exist here.
    NoMeaning,
    /// An old name; the value counts under the name given.
    Renamed(&'static str),
    /// An unknown key, with the name of a known key that looks alike.
    Unknown(Option<&'static str>),
    /// Left out: the project is not trusted.
    Untrusted,
    /// Left out: only the user's own file may say this.
    GlobalOnly,
}

impl SettingsFile {
    /// A project's file that must not be read.
    pub(crate) fn not_read(path: PathBuf) -> Self {
        let state = if path.is_file() {
            FileState::NotRead
        } else {
            FileState::Missing
        };
        Self {
            path,
            scope: Scope::Project,
            state,
            keys: Vec::new(),
        }
    }

    /// Notes what became of a key and of everything below it.
    pub(crate) fn mark(&mut self, key: &str, usage: &KeyUse) {
        for found in &mut self.keys {
            let rest = found.key.strip_prefix(key);
            if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
                found.usage = usage.clone();
            }
        }
    }
}

/// `compaction`: when and how far a conversation is summarised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Compact when the context gets full.
    pub enabled: bool,
    /// Tokens kept free for the answer; none if the user did not set a number.
    pub reserve_tokens: Option<u64>,
    /// Tokens at the end that are kept word for word.
    pub keep_recent_tokens: u64,
    /// `compaction.modelOverrides`: what differs for a model, by `provider/id`.
    pub model_overrides: BTreeMap<String, CompactionOverride>,
}

/// One entry of `compaction.modelOverrides`; an absent value stays as it is for all models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactionOverride {
    /// In place of [`CompactionSettings::reserve_tokens`].
    pub reserve_tokens: Option<u64>,
    /// In place of [`CompactionSettings::keep_recent_tokens`].
    pub keep_recent_tokens: Option<u64>,
}

impl CompactionSettings {
    /// Reserved tokens, if set, and kept tokens for a model (pi-1.5-delta.md 4).
    #[must_use]
    pub fn tokens_for(&self, provider: &str, id: &str) -> (Option<u64>, u64) {
        let own = self.model_overrides.get(&format!("{provider}/{id}"));
        let own = own.copied().unwrap_or_default();
        (
            own.reserve_tokens.or(self.reserve_tokens),
            own.keep_recent_tokens.unwrap_or(self.keep_recent_tokens),
        )
    }
}

/// `branchSummary`: summaries of branches that are left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSummarySettings {
    /// Tokens kept free for the summary.
    pub reserve_tokens: u64,
    /// Do not ask whether to summarise.
    pub skip_prompt: bool,
}

/// `retry`: how requests are retried when a provider fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySettings {
    /// Retry runs that failed for a passing reason.
    pub enabled: bool,
    /// Attempts after the first.
    pub max_retries: u32,
    /// Milliseconds before the first retry; doubles each time.
    pub base_delay_ms: u64,
    /// Milliseconds no retry waits longer than.
    pub max_agent_delay_ms: Option<u64>,
    /// Retries of single requests.
    pub provider: ProviderRetrySettings,
}

/// `retry.provider`: limits on single requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRetrySettings {
    /// Milliseconds until the response begins, for each attempt. Unset: the limit of the silence during a response counts.
    pub timeout_ms: Option<u64>,
    /// Attempts after the first; unset: none.
    pub max_retries: Option<u32>,
    /// Milliseconds a provider may ask us to wait; a longer wait is an error.
    pub max_retry_delay_ms: u64,
}

/// `images`: what happens to pictures on the way to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSettings {
    /// Shrink pictures that are too large.
    pub auto_resize: bool,
    /// Send none at all.
    pub block_images: bool,
}

/// `checkpoints` and `durability`: what a session stores, and what it survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StorageSettings {
    /// `checkpoints`: what a checkpoint contains.
    pub checkpoints: Checkpoints,
    /// `durability`: what stored entries survive.
    pub durability: Durability,
}

/// `shellPath`, `shellCommandPrefix`, `bashTimeoutMs` and `npmCommand`: how commands run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellSettings {
    /// `shellPath`: the shell of the bash tool.
    pub path: Option<String>,
    /// `shellCommandPrefix`: a line put before every command.
    pub command_prefix: Option<String>,
    /// `bashTimeoutMs`: milliseconds after which a command of the model is stopped that asks for no timeout itself; none is
    /// without end.
    pub timeout_ms: Option<u64>,
    /// `npmCommand`: the package manager of `pinion install`, with its first arguments. Empty means npm.
    pub npm_command: Vec<String>,
    /// `keepKeysInToolEnv`: tools see the variables that hold providers' keys.
    pub keeps_keys: bool,
}

/// `localServers`: where models on the user's own machines are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServerSettings {
    /// Look for servers at their usual ports when models are listed or none is configured. Switched off, a server is asked
    /// only when one of its models is named.
    pub enabled: bool,
    /// Addresses of further servers by provider id; the id of a usual one (`ollama`) takes its place.
    pub servers: BTreeMap<String, String>,
    /// `localServers.idleTimeoutMs`, else `httpIdleTimeoutMs` if it differs from its default: silence on the stream of a local server before the
    /// request fails. A server is silent while it reads the prompt. `None` when switched off.
    pub idle_timeout_ms: Option<u64>,
}

impl Default for LocalServerSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            servers: BTreeMap::new(),
            idle_timeout_ms: Some(limits::LOCAL_IDLE_TIMEOUT_MS),
        }
    }
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            reserve_tokens: None,
            keep_recent_tokens: limits::KEEP_RECENT_TOKENS,
            model_overrides: BTreeMap::new(),
        }
    }
}

impl Default for BranchSummarySettings {
    fn default() -> Self {
        Self {
            reserve_tokens: limits::RESERVE_TOKENS,
            skip_prompt: false,
        }
    }
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            enabled: true,
            max_retries: limits::MAX_RETRIES,
            base_delay_ms: limits::BASE_DELAY_MS,
            max_agent_delay_ms: None,
            provider: ProviderRetrySettings::default(),
        }
    }
}

impl Default for ProviderRetrySettings {
    fn default() -> Self {
        Self {
            timeout_ms: None,
            max_retries: None,
            max_retry_delay_ms: limits::MAX_RETRY_DELAY_MS,
        }
    }
}

impl Default for ImageSettings {
    fn default() -> Self {
        Self {
            auto_resize: true,
            block_images: false,
        }
    }
}
