//! Writes a conversation for the Messages API (providers.md 3). The rest of the request is written in `request`.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::content::joined_text;
use wire::{AssistantBlock, AssistantMessage, Message, ThinkingContent, ToolResultMessage, UserBlock};

use super::request::marked;
use crate::ids;
use crate::request::ModelRequest;
use crate::transform::{ONLY_IMAGES, transform};

/// The `messages` of a request.
pub(super) fn write(request: &ModelRequest, cache: Option<&Value>) -> Vec<Value> {
    let history = transform(&request.messages, &request.model, &|id, _| ids::anthropic(id));
    let mut out: Vec<Value> = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    for message in &history {
        if let Message::ToolResult(result) = Arc::as_ref(message) {
            results.push(tool_result(result));
            continue;
        }
        flush(&mut results, &mut out);
        let content = match Arc::as_ref(message) {
            Message::User(user) => user.content.to_blocks().iter().filter_map(user_block).collect(),
            Message::Assistant(assistant) => assistant_blocks(assistant),
            _ => Vec::new(),
        };
        if !content.is_empty() {
            out.push(json!({"role": message.role(), "content": content}));
        }
    }
    flush(&mut results, &mut out);
    mark_last(&mut out, cache);
    out
}

/// Results of one answer go back together, in one user message.
fn flush(results: &mut Vec<Value>, out: &mut Vec<Value>) {
    if !results.is_empty() {
        out.push(json!({"role": "user", "content": std::mem::take(results)}));
    }
}

/// Marks the end of the prompt as cacheable, when a user speaks last.
fn mark_last(messages: &mut [Value], cache: Option<&Value>) {
    let Some(last) = messages
        .last_mut()
        .filter(|last| last.get("role") == Some(&json!("user")))
    else {
        return;
    };
    let Some(block) = last
        .get_mut("content")
        .and_then(Value::as_array_mut)
        .and_then(|blocks| blocks.last_mut())
    else {
        return;
    };
    *block = marked(block.take(), cache);
}

/// Text, unless it is blank: the API refuses blank blocks.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// A block of a user message or a tool result.
fn user_block(block: &UserBlock) -> Option<Value> {
    match block {
        UserBlock::Text(text) => text_block(&text.text),
        UserBlock::Image(image) => Some(json!({
            "type": "image",
            "source": {"type": "base64", "media_type": image.mime_type, "data": image.data},
        })),
    }
}

/// The blocks of an answer.
fn assistant_blocks(message: &AssistantMessage) -> Vec<Value> {
    let write = |block: &AssistantBlock| match block {
        AssistantBlock::Text(text) => text_block(&text.text),
        AssistantBlock::Thinking(thinking) => thinking_block(thinking),
        AssistantBlock::ToolCall(call) => {
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}))
        }
    };
    message.content.iter().filter_map(write).collect()
}

/// Without a signature the API would refuse reasoning, so it goes back as text.
fn thinking_block(block: &ThinkingContent) -> Option<Value> {
    let signature = block.thinking_signature.as_deref().unwrap_or_default();
    if block.redacted == Some(true) {
        return Some(json!({"type": "redacted_thinking", "data": signature}));
    }
    if signature.trim().is_empty() {
        return text_block(&block.thinking);
    }
    Some(json!({"type": "thinking", "thinking": block.thinking, "signature": signature}))
}

/// A result: a string, or blocks when there are images.
fn tool_result(result: &ToolResultMessage) -> Value {
    let has_image = result
        .content
        .iter()
        .any(|block| matches!(block, UserBlock::Image(_)));
    let content = if has_image {
        let mut blocks: Vec<Value> = result.content.iter().filter_map(user_block).collect();
        if !blocks
            .iter()
            .any(|block| block.get("type") == Some(&json!("text")))
        {
            blocks.insert(0, json!({"type": "text", "text": ONLY_IMAGES}));
        }
        Value::Array(blocks)
    } else {
        Value::String(joined_text(&result.content))
    };
    json!({
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": content,
        "is_error": result.is_error,
    })
}
