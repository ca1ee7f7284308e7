//! Writes a conversation for Mistral (providers.md 7). The rest of the request is written in `request`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::content::joined_text;
use wire::{AssistantBlock, AssistantMessage, Message, ToolResultMessage, UserBlock};

use crate::ids;
use crate::request::ModelRequest;
use crate::transform::{ONLY_IMAGES, transform};

/// Leads the result of a tool that failed; the API has no field for it.
const TOOL_ERROR: &str = "[tool error] ";

/// Stands for a result that says nothing; the API refuses empty ones.
const NO_OUTPUT: &str = "(no tool output)";

/// The `messages` of a request.
pub(super) fn write(request: &ModelRequest) -> Vec<Value> {
    let history = transform(&request.messages, &request.model, &|id, _| ids::mistral(id));
    let mut out = Vec::new();
    if !request.system_prompt.trim().is_empty() {
        out.push(json!({"role": "system", "content": request.system_prompt}));
    }
    for message in &history {
        match Arc::as_ref(message) {
            Message::User(user) => {
                let parts: Vec<Value> = user.content.to_blocks().iter().filter_map(user_part).collect();
                if !parts.is_empty() {
                    out.push(json!({"role": "user", "content": parts}));
                }
            }
            Message::Assistant(answer) => out.extend(assistant(answer)),
            Message::ToolResult(result) => out.push(tool_result(result)),
            _ => {}
        }
    }
    out
}

/// A part of a user message or a tool result. An image is a bare URL here.
fn user_part(block: &UserBlock) -> Option<Value> {
    match block {
        UserBlock::Text(text) if text.text.is_empty() => None,
        UserBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
        UserBlock::Image(image) => {
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            Some(json!({"type": "image_url", "image_url": url}))
        }
    }
}

/// An answer; none when nothing of it can be sent.
fn assistant(answer: &AssistantMessage) -> Option<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut calls: Vec<Value> = Vec::new();
    for block in &answer.content {
        match block {
            AssistantBlock::Text(text) if text.text.trim().is_empty() => {}
            AssistantBlock::Text(text) => parts.push(json!({"type": "text", "text": text.text})),
            AssistantBlock::Thinking(thinking) if thinking.thinking.trim().is_empty() => {}
            AssistantBlock::Thinking(thinking) => {
                let text = json!({"type": "text", "text": thinking.thinking});
                parts.push(json!({"type": "thinking", "thinking": [text]}));
            }
            AssistantBlock::ToolCall(call) => {
                let arguments = Value::Object(call.arguments.clone()).to_string();
                let function = json!({"name": call.name, "arguments": arguments});
                calls.push(json!({"id": call.id, "type": "function", "function": function}));
            }
        }
    }
    if parts.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    if !parts.is_empty() {
        message.insert("content".into(), parts.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    Some(Value::Object(message))
}

fn tool_result(result: &ToolResultMessage) -> Value {
    let images: Vec<Value> = result
        .content
        .iter()
        .filter(|block| matches!(block, UserBlock::Image(_)))
        .filter_map(user_part)
        .collect();
    let text = joined_text(&result.content);
    let text = match text.trim() {
        "" if images.is_empty() => NO_OUTPUT,
        "" => ONLY_IMAGES,
        _ => &text,
    };
    let lead = if result.is_error { TOOL_ERROR } else { "" };
    let mut parts = vec![json!({"type": "text", "text": format!("{lead}{text}")})];
    parts.extend(images);
    json!({
        "role": "tool",
        "tool_call_id": result.tool_call_id,
        "name": result.tool_name,
        "content": parts,
    })
}
