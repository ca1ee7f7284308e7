//! Events of a session as `session/update`.

use serde_json::{Map, Value, json};
use wire::{Event, StreamEvent, ToolResult, UserBlock};

/// Converts an event. `None` if the protocol has no update for it.
pub(crate) fn of_event(event: &Event) -> Option<Value> {
    match event {
        Event::MessageUpdate {
            assistant_message_event,
            ..
        } => chunk(assistant_message_event),
        Event::ToolExecutionStart {
            tool_call_id,
            tool_name,
            args,
            ..
        } => Some(started(tool_call_id, tool_name, args)),
        Event::ToolExecutionUpdate {
            tool_call_id,
            partial_result,
            ..
        } => Some(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": tool_call_id,
            "status": "in_progress",
            "content": content(partial_result),
        })),
        Event::ToolExecutionEnd {
            tool_call_id,
            result,
            is_error,
            ..
        } => Some(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": tool_call_id,
            "status": if *is_error { "failed" } else { "completed" },
            "content": content(result),
            "rawOutput": result,
        })),
        _ => None,
    }
}

fn chunk(event: &StreamEvent) -> Option<Value> {
    let (kind, text) = match event {
        StreamEvent::TextDelta { delta, .. } => ("agent_message_chunk", delta),
        StreamEvent::ThinkingDelta { delta, .. } => ("agent_thought_chunk", delta),
        _ => return None,
    };
    Some(json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}))
}

fn started(id: &str, tool: &str, args: &Map<String, Value>) -> Value {
    let path = args.get("path").and_then(Value::as_str);
    let subject = path.or_else(|| {
        ["command", "pattern"]
            .iter()
            .find_map(|name| args.get(*name)?.as_str())
    });
    let title = subject.map_or_else(|| tool.to_owned(), |subject| format!("{tool} {subject}"));
    // Clients open locations, and only an absolute path says which file is meant.
    let locations: Vec<Value> = (path.filter(|path| path.starts_with('/')).into_iter())
        .map(|path| json!({"path": path}))
        .collect();
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": title,
        "kind": kind(tool),
        "status": "pending",
        "locations": locations,
        "rawInput": args,
    })
}

fn kind(tool: &str) -> &'static str {
    match tool {
        "read" | "ls" => "read",
        "write" | "edit" => "edit",
        "grep" | "find" => "search",
        "bash" => "execute",
        _ => "other",
    }
}

fn content(result: &ToolResult) -> Vec<Value> {
    let blocks = result.content.iter().map(|block| match block {
        UserBlock::Text(text) => json!({"type": "text", "text": text.text}),
        UserBlock::Image(image) => {
            json!({"type": "image", "data": image.data, "mimeType": image.mime_type})
        }
    });
    blocks
        .map(|block| json!({"type": "content", "content": block}))
        .collect()
}
