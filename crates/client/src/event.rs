//! Events as a client gets them. Events that hosts act on have members; all others, also those of later versions, are
//! JSON. docs/reference/protocol/events.md lists all events.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wire::event::{CompactionReason, CompactionResult};
use wire::{Message, StreamEvent, ToolResult, Usage};

/// What a session said. `Other` holds the whole line of an event that has no variant.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "docs/reference/protocol/events.md describes the members"
)]
pub enum Event {
    /// A run begins; a retry is a run of its own.
    AgentStart {},
    /// A run ended.
    AgentEnd {
        messages: Vec<Message>,
        will_retry: bool,
        #[serde(default)]
        limit: Option<wire::run_limits::ReachedLimit>,
        #[serde(default, deserialize_with = "given")]
        result: Option<Value>,
        #[serde(default)]
        result_error: Option<String>,
    },
    /// Nothing will happen any more until a client asks for something.
    AgentSettled {
        #[serde(default)]
        aborted: bool,
    },
    /// A turn (one answer and its tool calls) begins.
    TurnStart {},
    /// A turn ended.
    TurnEnd {
        message: Message,
        tool_results: Vec<Message>,
    },
    /// A message begins.
    MessageStart { message: Message },
    /// An answer grew.
    MessageUpdate {
        #[serde(default)]
        usage: Option<Usage>,
        assistant_message_event: StreamEvent,
    },
    /// A message is complete; it is on disk.
    MessageEnd { message: Message },
    /// A tool call is about to run.
    ToolExecutionStart {
        tool_call_id: String,
        tool_name: String,
        args: Map<String, Value>,
    },
    /// A tool came further; each update replaces the one before.
    ToolExecutionUpdate {
        tool_call_id: String,
        tool_name: String,
        partial_result: ToolResult,
    },
    /// A tool call ended.
    ToolExecutionEnd {
        tool_call_id: String,
        tool_name: String,
        result: ToolResult,
        is_error: bool,
    },
    /// A queue changed.
    QueueUpdate {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    /// A compaction begins.
    CompactionStart { reason: CompactionReason },
    /// A compaction ended.
    CompactionEnd {
        reason: CompactionReason,
        result: Option<CompactionResult>,
        aborted: bool,
        will_retry: bool,
        error_message: Option<String>,
    },
    /// A run failed and will be tried again after a wait.
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    /// Retrying is over.
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        final_error: Option<String>,
    },
    /// The session got another name.
    SessionInfoChanged { name: Option<String> },
    /// A `bash` command printed something.
    BashExecutionUpdate { id: Option<Value>, delta: String },
    /// Something a person should know; nothing depends on it.
    Notice { level: String, message: String },
    /// Any other event.
    #[serde(skip)]
    Other(Value),
}

/// A member that is there, also if it is `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Event {
    /// Reads a line of a known type. What does not fit is `Other`, so that an agent of another version is no error.
    pub(crate) fn read(kind: &str, line: &str) -> Option<Self> {
        // The type as the outer name spares a copy of the whole message, which the inner form would need.
        let outer = format!("{{{}:{line}}}", Value::from(kind));
        match serde_json::from_str(&outer) {
            Ok(event) => Some(event),
            Err(_) => serde_json::from_str(line).ok().map(Self::Other),
        }
    }

    /// The new text, when this is text of an answer.
    #[must_use]
    pub fn text_delta(&self) -> Option<&str> {
        match self {
            Self::MessageUpdate {
                assistant_message_event: StreamEvent::TextDelta { delta, .. },
                ..
            } => Some(delta),
            _ => None,
        }
    }
}
