//! Sub-agents on the wire: sessions that a model gives tasks to with the tool `task` (docs/guides/sub-agents.md). The members
//! are those of oh-my-pi (dialects.md 5).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Event;

/// How much a client receives of sub-agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubagentLevel {
    /// Nothing.
    #[default]
    Off,
    /// Starts, ends and progress.
    Progress,
    /// All events too.
    Events,
}

/// Parameters of `set_subagent_subscription`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentSubscriptionParams {
    /// How much the client wants to receive.
    pub level: SubagentLevel,
}

/// Response to `set_subagent_subscription`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubagentSubscription {
    /// How much the client receives.
    pub level: SubagentLevel,
}

/// Where the definition of an agent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AgentSource {
    /// Pinion.
    Bundled,
    /// The agent directory.
    User,
    /// The project.
    Project,
}

/// State of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubagentStatus {
    /// It waits for its turn.
    Pending,
    /// It works.
    Running,
    /// It gave a result.
    Completed,
    /// It failed, or a limit ended it.
    Failed,
    /// It was aborted.
    Aborted,
}

/// A tool call of a sub-agent that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecentTool {
    /// The tool.
    pub tool: String,
    /// Its arguments as JSON, cut after 200 characters.
    pub args: String,
    /// When it ended, in Unix milliseconds.
    pub end_ms: i64,
}

/// What a sub-agent has done so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentProgress {
    /// Number of the sub-agent in its session, from 0.
    pub index: usize,
    /// Id of the sub-agent.
    pub id: String,
    /// Name of the agent.
    pub agent: String,
    /// Where its definition comes from.
    pub agent_source: AgentSource,
    /// Its state.
    pub status: SubagentStatus,
    /// The task.
    pub task: String,
    /// The task in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tool that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_tool: Option<String>,
    /// Its arguments as JSON, cut after 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_tool_args: Option<String>,
    /// When it started, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_tool_start_ms: Option<i64>,
    /// The newest tool calls that have ended, newest first; at most 5.
    pub recent_tools: Vec<RecentTool>,
    /// The last lines of the newest answer; at most 8.
    pub recent_output: Vec<String>,
    /// Sums.
    #[serde(flatten)]
    pub totals: SubagentTotals,
    /// The model as `provider/id`.
    pub resolved_model: String,
}

/// What a sub-agent used so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentTotals {
    /// Tool calls that have ended.
    pub tool_count: u64,
    /// Answers of the model.
    pub requests: u64,
    /// Tokens of all answers: input, output and cache writes.
    pub tokens: u64,
    /// US dollars.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cost: f64,
    /// How long it has worked, in milliseconds.
    pub duration_ms: u64,
}

/// Payload of `subagent_lifecycle`: a sub-agent starts or ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentLifecycle {
    /// Id of the sub-agent.
    pub id: String,
    /// Name of the agent.
    pub agent: String,
    /// Where its definition comes from.
    pub agent_source: AgentSource,
    /// The task in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What happens.
    pub status: SubagentPhase,
    /// Its session file. Absent if sessions are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// Id of the call of `task`.
    pub parent_tool_call_id: String,
    /// Number of the sub-agent in its session, from 0.
    pub index: usize,
}

/// A step in the life of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SubagentPhase {
    /// It starts.
    Started,
    /// It gave a result.
    Completed,
    /// It failed, or a limit ended it.
    Failed,
    /// It was aborted.
    Aborted,
}

/// Payload of `subagent_progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentProgress {
    /// Number of the sub-agent in its session, from 0.
    pub index: usize,
    /// Name of the agent.
    pub agent: String,
    /// Where its definition comes from.
    pub agent_source: AgentSource,
    /// The task.
    pub task: String,
    /// Id of the call of `task`.
    pub parent_tool_call_id: String,
    /// What it has done so far.
    pub progress: AgentProgress,
    /// Its session file. Absent if sessions are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
}

/// Payload of `subagent_event`: an event of a sub-agent's session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentEvent {
    /// Id of the sub-agent.
    pub id: String,
    /// Id of the call of `task`.
    pub parent_tool_call_id: String,
    /// The event, as a line of the native dialect. Clients of today's oh-my-pi receive it as a line of their own session.
    #[cfg_attr(feature = "schema", schemars(with = "Value"))]
    pub event: Arc<Event>,
}

/// A sub-agent that works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Subagent {
    /// Its id, unique in the session.
    pub id: String,
    /// Number of the sub-agent in its session, from 0.
    pub index: usize,
    /// Name of the agent.
    pub agent: String,
    /// Where its definition comes from.
    pub agent_source: AgentSource,
    /// The task in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its state.
    pub status: SubagentStatus,
    /// The task.
    pub task: String,
    /// Its session file. Absent if sessions are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// Id of the call of `task`.
    pub parent_tool_call_id: String,
    /// When it last did something, in Unix milliseconds.
    pub last_update: i64,
    /// What it has done so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<AgentProgress>,
}

/// Response to `get_subagents`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subagents {
    /// The sub-agents that work now, in the order of their numbers.
    pub subagents: Vec<Subagent>,
}

/// Parameters of `get_subagent_messages`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SubagentMessagesParams {
    /// The sub-agent, which may have ended.
    #[serde(alias = "subagent_id", skip_serializing_if = "Option::is_none")]
    pub subagent_id: Option<String>,
    /// Or its session file.
    #[serde(alias = "session_file", skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// Where to begin in the file, in bytes: `nextByte` of the response before. Default: 0.
    #[serde(alias = "from_byte", skip_serializing_if = "Option::is_none")]
    pub from_byte: Option<u64>,
}

/// Response to `get_subagent_messages`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubagentMessages {
    /// The session file.
    pub session_file: String,
    /// Where these entries begin, in bytes.
    pub from_byte: u64,
    /// Where the next ones begin.
    pub next_byte: u64,
    /// True if the file is shorter than `fromByte`: it was read from its beginning.
    pub reset: bool,
    /// The entries, as in the file.
    pub entries: Vec<Value>,
    /// The messages of these entries.
    pub messages: Vec<Value>,
}
