//! The commands that belong to a connection and not to a session: what was agreed on with `hello`, and what was sent. Here
//! are their parameters and answers; what they do lives in `serve`.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;
use crate::reply::Queues;
use crate::state::SessionState;
use crate::table::Command;
use crate::tool::ToolResult;
#[cfg(feature = "schema")]
use crate::ui::UiMethod;
use crate::ui::UiRequest;

/// Parameters of `hello`. Each is looked at on its own: what cannot be granted is named in the answer, and the rest holds.
/// What is left out stays as it is; null goes back to the default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HelloParams {
    /// The dialect to speak: one of those that `get_protocol` lists.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub dialect: Option<Value>,
    /// Names of the events to send; responses always come. Null: all events.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub events: Option<Value>,
    /// Should `message_update` hold only what is new, instead of the whole message so far? From the next answer on.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub deltas: Option<Value>,
    /// Should every event have a number, `seq`? The numbers begin with 1 and have no gaps; `replay` takes them.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub sequence: Option<Value>,
    /// After how many seconds of silence a `heartbeat` is to come while a run is under way. Null: never.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub heartbeat: Option<Value>,
    /// Handles of the sessions whose events are to be sent, `""` being the first session. Null: all of them.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub sessions: Option<Value>,
    /// Methods of `extension_ui_request` that the client renders; a question by another method gets its default at once. Name
    /// `cancel` to be told of questions that are over. Null: all of them.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<UiMethod>>"))]
    pub ui: Option<Value>,
}

/// Parameters of `replay`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ReplayParams {
    /// The last number that arrived. Without it there is no replay, only a snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// The `instanceId` of the process that the number comes from. Of another process than this one all events are gone.
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

/// Numbers that a client may run into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProtocolLimits {
    /// Longest line that is read, in bytes.
    pub line_bytes: usize,
    /// Deepest nesting of a line.
    pub line_depth: usize,
    /// Messages in both queues together.
    pub queued_messages: usize,
    /// `bash` commands that run at the same time.
    pub bash_commands: usize,
    /// Events that `replay` can go back, at most.
    pub replay_events: usize,
    /// Bytes of events that `replay` can go back, at most.
    pub replay_bytes: usize,
    /// Longest silence that can be asked for with `heartbeat`, in seconds.
    pub heartbeat_seconds: u64,
    /// Questions to the user of one session that wait for an answer at the same time; the others get their default.
    pub open_dialogs: usize,
    /// How long a question waits that does not say, in seconds; an `editor` waits six times as long. Settings may say otherwise.
    pub dialog_seconds: u64,
}

/// Answer of `get_protocol`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// Version of the protocol, by the rules of semver; not the agent's.
    pub protocol_version: &'static str,
    /// Version of the agent.
    pub version: String,
    /// The dialect that is spoken on this connection.
    pub dialect: String,
    /// The dialects that `hello` takes.
    pub dialects: Vec<&'static str>,
    /// The commands.
    pub commands: Vec<CommandInfo>,
    /// Names of the events.
    pub events: Vec<&'static str>,
    /// What there is beyond these names.
    pub capabilities: Vec<&'static str>,
    /// Numbers to know.
    pub limits: ProtocolLimits,
}

/// Something that was asked for with `hello` and cannot be.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// The parameter.
    pub option: &'static str,
    /// What was asked for.
    pub value: Value,
    /// Why not, for people.
    pub reason: String,
}

/// Answer of `hello`: what holds on this connection from here on, and what was refused.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// Version of the protocol.
    pub protocol_version: &'static str,
    /// Version of the agent.
    pub version: String,
    /// The dialect that is spoken.
    pub dialect: String,
    /// Names of the events that are sent; null: all of them.
    pub events: Option<Vec<String>>,
    /// Do updates hold only what is new?
    pub deltas: bool,
    /// Do events have numbers?
    pub sequence: bool,
    /// Number of the last event that was sent; 0 before the first.
    pub last_seq: u64,
    /// Says which process this is, where clients connect to it and may come back to another one: numbers of events mean
    /// nothing beyond it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// Seconds of silence before a heartbeat; null: there is none.
    pub heartbeat: Option<u64>,
    /// Handles of the sessions whose events are sent; null: all of them.
    pub sessions: Option<Vec<String>>,
    /// Methods of `extension_ui_request` that the client renders; null: it did not say.
    pub ui: Option<Vec<&'static str>>,
    /// What was refused; empty when all is as it was asked for.
    pub refused: Vec<Refused>,
}

/// A session as it is at one moment, for a client that cannot follow what led to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// The state, as `get_state` answers it.
    pub state: SessionState,
    /// The conversation, as `get_messages` answers it.
    pub messages: Vec<Arc<Message>>,
    /// The answer that is streaming in, as far as it has come; null when there is none.
    pub message: Option<Arc<Message>>,
    /// Questions that wait for an answer, as their frames had them; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dialogs: Vec<UiRequest>,
    /// The retry that waits; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<WaitingRetry>,
    /// Texts that wait in the queues, as `queue_update` has them; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queues>,
    /// Tool calls that run; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<RunningTool>,
    /// `bash` commands of clients that run; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bash: Vec<RunningBash>,
    /// Statuses, widgets and the title as they were set last, as their frames had them; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<UiRequest>,
}

/// A retry that waits, as `auto_retry_start` told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitingRetry {
    /// 1 for the first retry.
    pub attempt: u32,
    /// How many there may be.
    pub max_attempts: u32,
    /// What is left of the wait, in milliseconds.
    pub delay_ms: u64,
    /// Why the run failed.
    pub error_message: String,
}

/// A tool call that runs, as its events told it.
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
    /// The call whose tool made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// Everything so far; absent before the first update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_result: Option<ToolResult>,
}

/// A `bash` command of a client that runs, as `bash_execution_start` told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningBash {
    /// Id of the command, when it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// Which run of a command this is.
    pub bash_id: String,
    /// The command line.
    pub command: String,
    /// True keeps it from the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    /// What it printed so far; the end of it when that is much.
    pub output: String,
}

/// Answer of `replay`. The events that it names follow at once, with the numbers they had.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// How many events are sent again.
    pub events: usize,
    /// Number of the last event before this answer. With a snapshot: what it stands for, and where to go on.
    pub last_seq: u64,
    /// Says which process this is, as in the answer of `hello`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// The session as it is, when the events are gone or none were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
}

impl Command {
    /// Does it belong to the connection, so that no session has to do with it?
    #[must_use]
    pub fn is_of_connection(&self) -> bool {
        matches!(self, Self::GetProtocol(_) | Self::Hello(_) | Self::Replay(_))
    }
}

/// Keeps an explicit null apart from a missing field.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
