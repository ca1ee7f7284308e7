//! JSON lines of a session on a worker: commands that become lines, and lines that become replies and events.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use wire::mcp::McpServers;
use wire::ui::{UiRequest, UiResponse};
use wire::{Event, Message, Reply, SessionCommand, Usage};

/// Makes the reply of the `data` of a response; none if the data are of another version.
pub(crate) type Reader = fn(Value) -> Option<Reply>;

/// The parameters of a command, and the reader of its reply. None for a command that no gateway passes on.
pub(crate) fn command(command: &SessionCommand) -> Option<(Map<String, Value>, Reader)> {
    use SessionCommand as C;
    let nothing: Reader = |_| Some(Reply::Nothing);
    let (params, reader): (Value, Reader) = match command {
        C::Prompt(params) => (json(params)?, |data| Some(Reply::Accepted(read(data)?))),
        C::GetState(params) => (json(params)?, |data| Some(Reply::State(read(data)?))),
        C::GetSessionStats(params) => (json(params)?, |data| Some(Reply::Stats(read(data)?))),
        C::GetMessages(params) => (json(params)?, |data| Some(Reply::Messages(read(data)?))),
        C::GetAvailableModels(params) => (json(params)?, |data| Some(Reply::Models(read(data)?))),
        C::GetCommands(params) => (json(params)?, |data| Some(Reply::Commands(read(data)?))),
        C::GetAvailableThinkingLevels(params) => {
            (json(params)?, |data| Some(Reply::ThinkingLevels(read(data)?)))
        }
        // The connection needs no more than that the servers are followed from now on.
        C::GetMcpServers(params) => (json(params)?, |_| {
            Some(Reply::McpServers(McpServers { servers: Vec::new() }))
        }),
        C::Abort(params) => (json(params)?, nothing),
        C::SetPermissionMode(params) => (json(params)?, nothing),
        C::SetModel(params) => (json(params)?, nothing),
        C::SetThinkingLevel(params) => (json(params)?, nothing),
        C::SetMcpServers(params) => (json(params)?, nothing),
        _ => return None,
    };
    match params {
        Value::Object(params) => Some((params, reader)),
        _ => None,
    }
}

/// The answer to a dialog of a session.
pub(crate) fn dialog_answer(session: &str, answer: &UiResponse) -> String {
    let mut line = json!({"session": session, "type": "extension_ui_response", "id": answer.id});
    let members = [
        ("value", &answer.value),
        ("confirmed", &answer.confirmed),
        ("cancelled", &answer.cancelled),
        ("reason", &answer.reason),
    ];
    if let Some(line) = line.as_object_mut() {
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
            line.insert(name.to_owned(), value.clone());
        }
    }
    line.to_string()
}

/// The event of a line. None for events that the protocol has no use for, and for those of another version.
pub(crate) fn event(line: Map<String, Value>) -> Option<Event> {
    let mut line = Line(line);
    let kind: String = line.take("type")?;
    let readers: [fn(&str, &mut Line) -> Option<Event>; 3] = [of_run, of_call, of_session];
    readers.into_iter().find_map(|reader| reader(&kind, &mut line))
}

/// Runs and answers. The connection reads no messages of a run.
fn of_run(kind: &str, line: &mut Line) -> Option<Event> {
    Some(match kind {
        "agent_start" => Event::AgentStart,
        "agent_end" => Event::AgentEnd {
            messages: Vec::new(),
            will_retry: line.take("willRetry")?,
            limit: None,
            result: None,
            result_error: None,
        },
        // It ends the prompt, so a worker of another version must not make it disappear.
        "agent_settled" => Event::AgentSettled {
            aborted: line.take("aborted").unwrap_or_default(),
        },
        "turn_end" => Event::TurnEnd {
            message: line.message()?,
            tool_results: Vec::new(),
        },
        "message_update" => Event::MessageUpdate {
            usage: Usage::default(),
            assistant_message_event: line.take("assistantMessageEvent")?,
        },
        "message_end" => Event::MessageEnd {
            message: line.message()?,
        },
        _ => return None,
    })
}

/// Tool calls and dialogs.
fn of_call(kind: &str, line: &mut Line) -> Option<Event> {
    Some(match kind {
        "tool_execution_start" => Event::ToolExecutionStart {
            tool_call_id: line.take("toolCallId")?,
            tool_name: line.take("toolName")?,
            args: line.take("args")?,
            parent_tool_call_id: line.take("parentToolCallId"),
        },
        "tool_execution_update" => Event::ToolExecutionUpdate {
            tool_call_id: line.take("toolCallId")?,
            tool_name: line.take("toolName")?,
            args: line.take("args")?,
            partial_result: line.take("partialResult")?,
            parent_tool_call_id: line.take("parentToolCallId"),
        },
        "tool_execution_end" => Event::ToolExecutionEnd {
            tool_call_id: line.take("toolCallId")?,
            tool_name: line.take("toolName")?,
            result: line.take("result")?,
            is_error: line.take("isError")?,
            duration_ms: line.take("durationMs"),
            parent_tool_call_id: line.take("parentToolCallId"),
        },
        "extension_ui_request" => Event::ExtensionUiRequest {
            request: Box::new(read::<UiRequest>(Value::Object(std::mem::take(&mut line.0)))?),
        },
        _ => return None,
    })
}

/// The session and its notices.
fn of_session(kind: &str, line: &mut Line) -> Option<Event> {
    Some(match kind {
        "compaction_start" => Event::CompactionStart {
            reason: line.take("reason")?,
        },
        "compaction_end" => Event::CompactionEnd {
            reason: line.take("reason")?,
            result: line.take("result"),
            aborted: line.take("aborted")?,
            will_retry: line.take("willRetry")?,
            error_message: line.take("errorMessage"),
        },
        "auto_retry_start" => Event::AutoRetryStart {
            attempt: line.take("attempt")?,
            max_attempts: line.take("maxAttempts")?,
            delay_ms: line.take("delayMs")?,
            error_message: line.take("errorMessage")?,
        },
        "model_fallback" => Event::ModelFallback {
            from: line.take("from")?,
            to: line.take("to")?,
            reason: line.take("reason")?,
        },
        "notice" => Event::Notice {
            level: line.take("level")?,
            message: line.take("message")?,
        },
        "extension_error" => Event::ExtensionError {
            extension_path: line.take("extensionPath")?,
            event: line.take("event")?,
            error: line.take("error")?,
        },
        "session_damage" => Event::SessionDamage {
            path: line.take("path")?,
            message: line.take("message")?,
            lines: line.take("lines")?,
            torn_bytes: line.take("tornBytes")?,
        },
        "storage_status" => Event::StorageStatus {
            path: line.take("path")?,
            pending: line.take("pending")?,
            error: line.take("error"),
        },
        "session_info_changed" => Event::SessionInfoChanged {
            name: line.take("name"),
        },
        "thinking_level_changed" => Event::ThinkingLevelChanged {
            level: line.take("level")?,
        },
        "session_changed" => Event::SessionChanged {
            reason: line.take("reason")?,
            session_id: line.take("sessionId")?,
            session_file: line.take("sessionFile"),
            session_name: line.take("sessionName"),
            message_count: line.take("messageCount")?,
        },
        "todo_auto_clear" => Event::TodoAutoClear,
        // The connection reads the commands again and needs no more.
        "mcp_servers_change" => Event::McpServersChange { servers: Vec::new() },
        _ => return None,
    })
}

struct Line(Map<String, Value>);

impl Line {
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        read(self.0.shift_remove(name)?)
    }

    fn message(&mut self) -> Option<Arc<Message>> {
        self.take::<Message>("message").map(Arc::new)
    }
}

fn json(params: &impl Serialize) -> Option<Value> {
    serde_json::to_value(params).ok()
}

fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}
