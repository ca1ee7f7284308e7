//! Events of a session as `session/update`.

use std::path::Path;

use serde_json::{Map, Value, json};
use wire::{Event, StreamEvent};

use crate::state::SessionState;
use crate::tool_calls;

/// Converts an event of a session that is no streamed text. `None` if the protocol has no update for it.
pub(crate) fn of_event(event: &Event, state: &SessionState) -> Option<Value> {
    match event {
        Event::ToolExecutionStart { tool_call_id, .. } => Some(pending(state.call(tool_call_id))),
        Event::ToolExecutionUpdate {
            tool_call_id,
            partial_result,
            ..
        } => Some(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": tool_call_id,
            "status": "in_progress",
            "content": tool_calls::content(partial_result, state.shown_by(tool_call_id)),
        })),
        Event::ToolExecutionEnd {
            tool_call_id,
            result,
            is_error,
            ..
        } => {
            let mut shown = state.shown_by(tool_call_id);
            // A failed call changed nothing.
            shown.retain(|content| !*is_error || tool_calls::is_terminal(content));
            Some(json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": tool_call_id,
                "status": if *is_error { "failed" } else { "completed" },
                "content": tool_calls::content(result, shown),
                "rawOutput": result,
            }))
        }
        Event::SessionInfoChanged { name } => {
            Some(json!({"sessionUpdate": "session_info_update", "title": name}))
        }
        _ => None,
    }
}

/// The kind of update and the text of a step of a streamed answer.
pub(crate) fn streamed(event: &StreamEvent) -> Option<(&'static str, &str)> {
    match event {
        StreamEvent::TextDelta { delta, .. } => Some(("agent_message_chunk", delta)),
        StreamEvent::ThinkingDelta { delta, .. } => Some(("agent_thought_chunk", delta)),
        _ => None,
    }
}

/// A stored call. The text from before a `write` is not stored.
pub(crate) fn stored(id: &str, tool: &str, args: &Map<String, Value>, cwd: &Path) -> Value {
    pending(tool_calls::describe(id, tool, args, cwd, None))
}

/// A call that begins. Its status stays `pending` until it runs or the user is asked.
fn pending(mut update: Map<String, Value>) -> Value {
    update.insert("sessionUpdate".to_owned(), "tool_call".into());
    update.insert("status".to_owned(), "pending".into());
    update.into()
}
