//! The commands that belong to a connection instead of a session: negotiation with `hello`, and replay of sent lines. Here
//! are their parameters and answers; `serve` executes them.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;
use crate::reply::Queues;
use crate::state::SessionState;
use crate::tool::ToolResult;
#[cfg(feature = "schema")]
use crate::ui::UiMethod;
use crate::ui::UiRequest;

/// Parameters of `hello`. Each option is handled separately: the response lists refused options, the others apply. An
/// absent option is unchanged; null restores the default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HelloParams {
    /// The dialect, from the list of `get_protocol`.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub dialect: Option<Value>,
    /// Names of the events to send. Null: all events. Responses are always sent.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub events: Option<Value>,
    /// Whether `message_update` contains only new text instead of the whole message. Takes effect with the next answer of
    /// the model.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub deltas: Option<Value>,
    /// Whether events have a sequence number `seq`. Numbers start at 1 and have no gaps; `replay` accepts them.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub sequence: Option<Value>,
    /// Seconds without an event during a run until a `heartbeat` is sent. Null: never.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub heartbeat: Option<Value>,
    /// Handles of the sessions whose events are sent; `""` is the first session. Null: all sessions.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub sessions: Option<Value>,
    /// Methods of `extension_ui_request` that the client supports. A dialog with another method returns its default at
    /// once. Include `cancel` to receive cancellations. Null: all methods.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<UiMethod>>"))]
    pub ui: Option<Value>,
}

/// Parameters of `replay`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ReplayParams {
    /// The last sequence number received. Without it, the response contains only a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The `instanceId` of the process that sent the number. The events of another process are not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

/// A command as `get_protocol` lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandInfo {
    /// The `type` on the wire.
    pub name: &'static str,
    /// How it is scheduled: `control`, `task` or `ordered`.
    pub lane: &'static str,
}

/// Limits that affect clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProtocolLimits {
    /// Longest input line in bytes.
    pub line_bytes: usize,
    /// Deepest nesting of an input line.
    pub line_depth: usize,
    /// Maximum number of messages in both queues together.
    pub queued_messages: usize,
    /// Maximum number of `bash` commands that run at the same time.
    pub bash_commands: usize,
    /// Maximum number of events that `replay` can send.
    pub replay_events: usize,
    /// Maximum bytes of events that `replay` can send.
    pub replay_bytes: usize,
    /// Longest interval for `heartbeat` in seconds.
    pub heartbeat_seconds: u64,
    /// Maximum number of open dialogs in a session. Further dialogs return their default.
    pub open_dialogs: usize,
    /// Default timeout of dialogs in seconds. Dialogs with the method `editor` have six times as long. Settings can
    /// change it.
    pub dialog_seconds: u64,
}

/// Response to `get_protocol`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// Version of the protocol (semantic versioning). It is independent of the version of the program.
    pub protocol_version: &'static str,
    /// Version of the program.
    pub version: String,
    /// The dialect of this connection.
    pub dialect: String,
    /// The dialects that `hello` accepts.
    pub dialects: Vec<&'static str>,
    /// The commands.
    pub commands: Vec<CommandInfo>,
    /// Names of the events.
    pub events: Vec<&'static str>,
    /// Capabilities that the names of commands and events do not show.
    pub capabilities: Vec<&'static str>,
    /// Limits that affect clients.
    pub limits: ProtocolLimits,
}

/// An option of `hello` that was refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// The parameter.
    pub option: &'static str,
    /// The requested value.
    pub value: Value,
    /// The reason.
    pub reason: String,
}

/// Response to `hello`: the options of this connection and the refused requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// Version of the protocol.
    pub protocol_version: &'static str,
    /// Version of the program.
    pub version: String,
    /// The dialect.
    pub dialect: String,
    /// Names of the events that are sent; null: all events.
    pub events: Option<Vec<String>>,
    /// Whether updates contain only new text.
    pub deltas: bool,
    /// Whether events have sequence numbers.
    pub sequence: bool,
    /// Sequence number of the last event; 0 before the first.
    pub last_seq: u64,
    /// Id of the process, with `--mode web`. Sequence numbers are only valid within one process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Seconds until a heartbeat; null: no heartbeats.
    pub heartbeat: Option<u64>,
    /// Handles of the sessions whose events are sent; null: all sessions.
    pub sessions: Option<Vec<String>>,
    /// Methods of `extension_ui_request` that the client supports; null: not specified.
    pub ui: Option<Vec<&'static str>>,
    /// The refused options.
    pub refused: Vec<Refused>,
}

/// The state of a session at one moment, for a client that missed events.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// The state, as in `get_state`.
    pub state: SessionState,
    /// The conversation, as in `get_messages`.
    pub messages: Vec<Arc<Message>>,
    /// The part of the current answer that exists; null if there is none.
    pub message: Option<Arc<Message>>,
    /// Open dialogs, as in their events; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dialogs: Vec<UiRequest>,
    /// The pending retry; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<WaitingRetry>,
    /// Queued messages, as in `queue_update`; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queues>,
    /// Running tool calls; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<RunningTool>,
    /// Running `bash` commands; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bash: Vec<RunningBash>,
    /// Current statuses, widgets and title, as in their events; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<UiRequest>,
}

/// A pending retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitingRetry {
    /// 1 for the first retry.
    pub attempt: u32,
    /// Maximum number.
    pub max_attempts: u32,
    /// Remaining delay in milliseconds.
    pub delay_ms: u64,
    /// Why the run failed.
    pub error_message: String,
}

/// A running tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningTool {
    /// Id of the call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Arguments as the model wrote them.
    pub args: Map<String, Value>,
    /// Id of the call whose tool made this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// The whole result so far; absent before the first update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_result: Option<ToolResult>,
}

/// A running `bash` command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningBash {
    /// `id` of the command, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// Id of the execution.
    pub bash_id: String,
    /// The command line.
    pub command: String,
    /// Whether it is hidden from the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    /// The output so far; only the end if it is long.
    pub output: String,
}

/// Response to `replay`. The events follow at once, with their original numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// Number of events that follow.
    pub events: usize,
    /// Sequence number of the last event before this response. A snapshot reflects the session after this event.
    pub last_seq: u64,
    /// Id of the process, as in the response to `hello`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// The session state, if the events are not available or no number was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
}

/// Keeps an explicit null apart from a missing field.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
