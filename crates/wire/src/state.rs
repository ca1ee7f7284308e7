//! What `get_state` and its relatives answer (dialects.md 5, row 7): the superset that all known clients accept.

use serde::{Deserialize, Serialize};

use crate::model::{Model, ThinkingLevel};
use crate::todo::TodoPhase;

/// How many queued messages are taken at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum QueueMode {
    /// All of them.
    #[serde(rename = "all")]
    All,
    /// The oldest.
    #[default]
    #[serde(rename = "one-at-a-time")]
    OneAtATime,
}

/// When steering takes effect (dialects.md 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum InterruptMode {
    /// As soon as a tool finishes; the others of the turn are cancelled.
    Immediate,
    /// When all tools of the turn are done.
    #[default]
    Wait,
}

/// Which tool calls may run without asking. Each mode is stricter than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// All; rules are not looked at.
    #[default]
    Off,
    /// All but those that a rule refuses or wants asked.
    Auto,
    /// Those that only read, and those that a rule allows; the user is asked about the others.
    Ask,
    /// Those that only read, and commands that a rule allows.
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

    /// Does it change nothing?
    #[must_use]
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// What the commands and file tools of the model are confined to by the kernel. Each mode is stricter than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Nothing.
    #[default]
    Off,
    /// They write below the working directory and a temporary directory only.
    WorkspaceWrite,
    /// They write below a temporary directory only.
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

    /// Does it confine nothing?
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
    /// What tools are confined to; never `off`.
    pub mode: SandboxMode,
    /// May commands use the network?
    pub network: bool,
}

/// How full the context is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Tokens in use; null right after a compaction.
    pub tokens: Option<u64>,
    /// Tokens that fit.
    pub context_window: u64,
    /// `tokens` in percent of `contextWindow`; null when `tokens` is.
    pub percent: Option<f64>,
}

/// Answer of `get_state`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// The current model; null when there is none.
    pub model: Option<Model>,
    /// The current thinking level.
    pub thinking_level: ThinkingLevel,
    /// Is a run under way? False during a retry wait, as in pi; see `isRetrying`.
    pub is_streaming: bool,
    /// Is a compaction under way?
    pub is_compacting: bool,
    /// Is a failed run waiting to be tried again? The session is busy then, too.
    pub is_retrying: bool,
    /// Same as `steeringMode`, for older clients.
    pub queue_mode: QueueMode,
    /// How steering messages are taken.
    pub steering_mode: QueueMode,
    /// How follow-up messages are taken.
    pub follow_up_mode: QueueMode,
    /// When steering takes effect.
    pub interrupt_mode: InterruptMode,
    /// The session file, which may not exist yet; null without persistence.
    pub session_file: Option<String>,
    /// Session id.
    pub session_id: String,
    /// Name of the session, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// Is automatic compaction on?
    pub auto_compaction_enabled: bool,
    /// Messages in the conversation.
    pub message_count: usize,
    /// Messages that wait in both queues.
    pub pending_message_count: usize,
    /// Same as `pendingMessageCount`, for xcsh and older clients.
    pub queued_message_count: usize,
    /// The todo list, for xcsh clients.
    pub todo_phases: Vec<TodoPhase>,
    /// How full the context is, when that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
    /// Which tool calls may run; absent when that is not limited (`off`).
    #[serde(default, skip_serializing_if = "PermissionMode::is_off")]
    pub permission_mode: PermissionMode,
    /// Whether the project is trusted; absent when nothing of it is held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_trust: Option<TrustState>,
    /// The sandbox of tools; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxState>,
    /// Why settings could not be used, as `FILE:LINE:COLUMN: message`; absent when they could. The agent then starts with
    /// `permissionMode` `ask` and a read-only sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_error: Option<String>,
}

/// How far the project is trusted, and what it brings that does not count because of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TrustState {
    /// Does everything count that the project brings?
    pub trusted: bool,
    /// Who says so: `command-line`, `client`, `extension`, `stored`, `setting` or `nobody`.
    pub decided_by: String,
    /// What the project brings that does not count.
    pub held_back: Vec<HeldBack>,
    /// Has something else been decided since? It counts from the next session or reload on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// Something of a project that does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldBack {
    /// `extensions`, `hooks`, `tools`, `mcp`, `settings`, `skills`, `prompts`, `rules`, `themes` or `system-prompt`.
    pub kind: String,
    /// The file or directory.
    pub path: String,
    /// Of settings: the keys that do not count; absent when none of the file does.
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
}

/// What a session spent on one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelSpending {
    /// Provider id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// Answers of it; summaries do not count.
    pub answers: usize,
    /// Token sums.
    pub tokens: TokenStats,
    /// Cost in US dollars.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cost: f64,
}

/// Answer of `get_session_stats`. The counts, tokens and `cost` are those of the conversation as it is now, as in pi;
/// `byModel` is about the whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    /// The session file; null without persistence.
    pub session_file: Option<String>,
    /// Session id.
    pub session_id: String,
    /// Messages of role `user`.
    pub user_messages: usize,
    /// Messages of role `assistant`.
    pub assistant_messages: usize,
    /// Tool calls in them.
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
    /// What the whole session file cost, on all branches, with what was compacted away and the summaries themselves, in the
    /// order in which models were first used. Only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_model: Option<Vec<ModelSpending>>,
    /// How full the context is, when that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
}

/// Answer of `bash` (dialects.md 5, row 26).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashResult {
    /// Output, sanitised; its tail when truncated.
    pub output: String,
    /// Absent when the command was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Was it aborted?
    pub cancelled: bool,
    /// Is `output` shorter than what it printed?
    pub truncated: bool,
    /// Where the whole output is, when truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// Lines and bytes; only told in the dialects that count them.
    #[serde(skip)]
    pub counts: Option<OutputCounts>,
}

/// How much a command printed, and how much of it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputCounts {
    /// Lines that were printed.
    pub total_lines: u64,
    /// Bytes that were printed, cleaned.
    pub total_bytes: u64,
    /// Lines in `output`.
    pub output_lines: u64,
    /// Bytes in `output`.
    pub output_bytes: u64,
}
