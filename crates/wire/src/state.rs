//! What `get_state` and its relatives answer (dialects.md 5, row 7): the superset that all known clients accept.

use serde::{Deserialize, Serialize};

use crate::model::{Model, ThinkingLevel};
use crate::todo::TodoPhase;

/// How many queued messages are delivered at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum QueueMode {
    /// All of them.
    #[serde(rename = "all")]
    All,
    /// The oldest one.
    #[default]
    #[serde(rename = "one-at-a-time")]
    OneAtATime,
}

/// When steering takes effect (dialects.md 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum InterruptMode {
    /// After the current tool. The other tool calls of the turn are cancelled.
    Immediate,
    /// After all tool calls of the turn.
    #[default]
    Wait,
}

/// Which tool calls run without a question. Each mode is stricter than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// All calls run; rules are ignored.
    #[default]
    Off,
    /// All calls run, except calls that a rule denies or asks about.
    Auto,
    /// Calls that only read and calls that a rule allows run; the others are asked about.
    Ask,
    /// Calls that only read and commands that a rule allows run; the others are denied.
    ReadOnly,
}

impl PermissionMode {
    /// All of them, the loosest first.
    pub const ALL: [Self; 4] = [Self::Off, Self::Auto, Self::Ask, Self::ReadOnly];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::Ask => "ask",
            Self::ReadOnly => "read-only",
        }
    }

    /// The mode of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// Returns true if the mode limits no call.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// What the kernel lets commands and file tools reach. Each mode is stricter than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Nothing.
    #[default]
    Off,
    /// Tools can write only to the working directory and a temporary directory.
    WorkspaceWrite,
    /// Tools can write only to a temporary directory.
    ReadOnly,
}

impl SandboxMode {
    /// All of them, the loosest first.
    pub const ALL: [Self; 3] = [Self::Off, Self::WorkspaceWrite, Self::ReadOnly];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::WorkspaceWrite => "workspace-write",
            Self::ReadOnly => "read-only",
        }
    }

    /// The mode of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// Returns true if the mode limits no tool.
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// The sandbox of a session's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SandboxState {
    /// The mode; never `off`.
    pub mode: SandboxMode,
    /// Whether commands can use the network.
    pub network: bool,
}

/// What a stored entry survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// The end of the process, however it ends.
    #[default]
    Process,
    /// A power failure, too: an entry is reported as stored only when the disk has it.
    Disk,
}

impl Durability {
    /// All of them, the weakest first.
    pub const ALL: [Self; 2] = [Self::Process, Self::Disk];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Disk => "disk",
        }
    }

    /// The durability of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|durability| durability.as_str() == word)
    }

    /// Returns true for the default.
    #[must_use]
    pub fn is_process(&self) -> bool {
        *self == Self::Process
    }
}

/// How a session is stored, if that is worth a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StorageState {
    /// What a stored entry survives; absent if it is `process`.
    #[serde(default, skip_serializing_if = "Durability::is_process")]
    pub durability: Durability,
    /// Entries that could not be written yet. Pinion keeps them in memory and tries again.
    pub pending: usize,
    /// Why the last attempt failed; absent if nothing is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Use of the context window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Tokens in use; null directly after a compaction.
    pub tokens: Option<u64>,
    /// Size of the context window in tokens.
    pub context_window: u64,
    /// `tokens` in percent of `contextWindow`; null if `tokens` is null.
    pub percent: Option<f64>,
}

/// Response to `get_state`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// The current model; null if there is none.
    pub model: Option<Model>,
    /// The current thinking level.
    pub thinking_level: ThinkingLevel,
    /// Whether a run is active. False during a retry delay; see `isRetrying`.
    pub is_streaming: bool,
    /// Whether a compaction is running.
    pub is_compacting: bool,
    /// Whether a retry delay is running. The session is busy then, too.
    pub is_retrying: bool,
    /// Same as `steeringMode`, for older clients.
    pub queue_mode: QueueMode,
    /// How many steering messages are delivered at once.
    pub steering_mode: QueueMode,
    /// How many follow-up messages are delivered at once.
    pub follow_up_mode: QueueMode,
    /// When a steering message takes effect.
    pub interrupt_mode: InterruptMode,
    /// Path of the session file, which may not exist yet; null with `--no-session`.
    pub session_file: Option<String>,
    /// Session id.
    pub session_id: String,
    /// Name of the session, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// Whether automatic compaction is enabled.
    pub auto_compaction_enabled: bool,
    /// Number of messages in the conversation.
    pub message_count: usize,
    /// Number of messages in both queues.
    pub pending_message_count: usize,
    /// Same as `pendingMessageCount`, for xcsh and older clients.
    pub queued_message_count: usize,
    /// The todo list, for xcsh clients.
    pub todo_phases: Vec<TodoPhase>,
    /// Use of the context window, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
    /// Permission mode; absent if it is `off`.
    #[serde(default, skip_serializing_if = "PermissionMode::is_off")]
    pub permission_mode: PermissionMode,
    /// Trust state of the project; absent if everything of it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_trust: Option<TrustState>,
    /// Sandbox of the tools; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxState>,
    /// State of the session file; absent if all entries are written and `durability` is `process`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageState>,
    /// Why settings could not be used, as `FILE:LINE:COLUMN: message`, or why a hook or an extension of the command line could not be
    /// loaded, as `FILE: message`; one per line, absent if there is none. The agent then has `permissionMode` `ask` and a read-only
    /// sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_error: Option<String>,
}

/// Trust state of a project, and its resources that are not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TrustState {
    /// Whether all resources of the project are used.
    pub trusted: bool,
    /// Source of the decision: `command-line`, `client`, `extension`, `stored`, `setting` or `nobody`.
    pub decided_by: String,
    /// Resources of the project that are not used.
    pub held_back: Vec<HeldBack>,
    /// Whether another decision takes effect with the next session or reload.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// A resource of a project that is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldBack {
    /// `extensions`, `hooks`, `tools`, `mcp`, `settings`, `skills`, `prompts`, `rules`, `agents`, `themes` or
    /// `system-prompt`.
    pub kind: String,
    /// The file or directory.
    pub path: String,
    /// For settings: the keys that are not used; absent if the whole file is not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

/// Token sums of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenStats {
    /// Uncached input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Cache reads.
    pub cache_read: u64,
    /// Cache writes.
    pub cache_write: u64,
    /// Sum of the four.
    pub total: u64,
    /// Output spent on reasoning, part of `output`; only in dialects that have it.
    #[serde(skip)]
    pub reasoning: u64,
}

/// Tokens and cost of one model in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelSpending {
    /// Provider id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// Number of answers, without summaries.
    pub answers: usize,
    /// Token sums.
    pub tokens: TokenStats,
    /// Cost in US dollars.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cost: f64,
}

/// Response to `get_session_stats`. Counts, tokens and `cost` describe the current conversation; `byModel` describes the
/// whole session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    /// Path of the session file; null with `--no-session`.
    pub session_file: Option<String>,
    /// Session id.
    pub session_id: String,
    /// Messages of role `user`.
    pub user_messages: usize,
    /// Messages of role `assistant`.
    pub assistant_messages: usize,
    /// Number of tool calls.
    pub tool_calls: usize,
    /// Messages of role `toolResult`.
    pub tool_results: usize,
    /// All messages.
    pub total_messages: usize,
    /// Token sums.
    pub tokens: TokenStats,
    /// Cost in US dollars.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cost: f64,
    /// Cost of the whole session file by model, including all branches, compacted messages and summaries, in the order of
    /// first use. Only if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_model: Option<Vec<ModelSpending>>,
    /// Use of the context window, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
}

/// Response to `bash`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashResult {
    /// Output without control characters; only the end if it was truncated.
    pub output: String,
    /// Exit code; absent if the command was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether it was aborted.
    pub cancelled: bool,
    /// Whether `output` was truncated.
    pub truncated: bool,
    /// Path of the whole output, if it was truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// Lines and bytes; only in dialects that have them.
    #[serde(skip)]
    pub counts: Option<OutputCounts>,
}

/// Size of the whole output and of the returned part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputCounts {
    /// Lines of the whole output.
    pub total_lines: u64,
    /// Bytes of the whole output, without control characters.
    pub total_bytes: u64,
    /// Lines in `output`.
    pub output_lines: u64,
    /// Bytes in `output`.
    pub output_bytes: u64,
}
