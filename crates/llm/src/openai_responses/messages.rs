//! Writes a conversation as the `input` items of the Responses API (providers.md 5). The rest of the request is written in
//! `request`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::content::joined_text;
use wire::{
    AssistantBlock, AssistantMessage, Message, Model, TextContent, ToolCall, ToolResultMessage, UserBlock,
};

use super::TextSignature;
use crate::compat::flag;
use crate::ids;
use crate::limits::RESPONSES_ID_LEN;
use crate::request::ModelRequest;
use crate::transform::transform;

/// The `input` of a request: the system prompt and the conversation.
pub(super) fn write(request: &ModelRequest) -> Vec<Value> {
    let mut out = Vec::new();
    if !request.system_prompt.trim().is_empty() {
        let model = &request.model;
        let developer = model.reasoning && flag(model, "supportsDeveloperRole", true);
        let role = if developer { "developer" } else { "system" };
        out.push(json!({"role": role, "content": request.system_prompt}));
    }
    out.extend(conversation(request));
    out
}

/// The conversation alone.
pub(crate) fn conversation(request: &ModelRequest) -> Vec<Value> {
    let model = &request.model;
    let history = transform(&request.messages, model, &|id, from| {
        ids::responses(id, from, model)
    });
    let mut out = Vec::new();
    for (index, message) in history.iter().enumerate() {
        match Arc::as_ref(message) {
            Message::User(user) => {
                let parts: Vec<Value> = user.content.to_blocks().iter().filter_map(user_part).collect();
                if !parts.is_empty() {
                    out.push(json!({"role": "user", "content": parts}));
                }
            }
            Message::Assistant(answer) => out.extend(answer_items(answer, index, model)),
            Message::ToolResult(result) => out.push(tool_result(result)),
            _ => {}
        }
    }
    out
}

/// A part of a user message or a tool result.
fn user_part(block: &UserBlock) -> Option<Value> {
    match block {
        UserBlock::Text(text) if text.text.is_empty() => None,
        UserBlock::Text(text) => Some(json!({"type": "input_text", "text": text.text})),
        UserBlock::Image(image) => {
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            Some(json!({"type": "input_image", "detail": "auto", "image_url": url}))
        }
    }
}

/// The items of an answer, in its order.
fn answer_items(answer: &AssistantMessage, index: usize, model: &Model) -> Vec<Value> {
    // The API knows which reasoning an item of its own came with and refuses the one without the other. Another model's
    // reasoning is not sent, so its calls must not be recognised.
    let nameless = answer.provider == model.provider && answer.api == model.api && answer.model != model.id;
    let mut items: Vec<Value> = Vec::new();
    let mut texts = 0;
    for block in &answer.content {
        match block {
            AssistantBlock::Text(text) if text.text.trim().is_empty() => {}
            AssistantBlock::Text(text) => {
                items.push(text_item(text, index, texts));
                texts += 1;
            }
            AssistantBlock::Thinking(thinking) => {
                let item = thinking.thinking_signature.as_deref();
                let item = item.and_then(|json| serde_json::from_str::<Value>(json).ok());
                items.extend(item.filter(is_reasoning));
            }
            AssistantBlock::ToolCall(call) => items.push(call_item(call, nameless)),
        }
    }
    // For the same reason reasoning that led to nothing stays out.
    while items.last().is_some_and(is_reasoning) {
        items.pop();
    }
    items
}

fn is_reasoning(item: &Value) -> bool {
    item.get("type").and_then(Value::as_str) == Some("reasoning")
}

/// A text of an answer. Without a signature it gets an id made of its place.
fn text_item(text: &TextContent, message: usize, nth: usize) -> Value {
    let signature = text.text_signature.as_deref().and_then(TextSignature::read);
    let (id, phase) = match signature {
        Some(TextSignature { id, phase }) if id.len() <= RESPONSES_ID_LEN => (id, phase),
        Some(TextSignature { id, phase }) => (format!("msg_{}", ids::short_hash(&id)), phase),
        None if nth == 0 => (format!("msg_{message}"), None),
        None => (format!("msg_{message}_{nth}"), None),
    };
    let mut item = Map::new();
    item.insert("type".into(), json!("message"));
    item.insert("role".into(), json!("assistant"));
    let part = json!({"type": "output_text", "text": text.text, "annotations": []});
    item.insert("content".into(), json!([part]));
    item.insert("status".into(), json!("completed"));
    item.insert("id".into(), json!(id));
    if let Some(phase) = phase {
        item.insert("phase".into(), json!(phase));
    }
    Value::Object(item)
}

/// A tool call; its id is `call|item` or only the first.
fn call_item(call: &ToolCall, nameless: bool) -> Value {
    let (call_id, item_id) = halves(&call.id);
    let mut item = Map::new();
    item.insert("type".into(), json!("function_call"));
    if let Some(id) = item_id.filter(|id| !(nameless && id.starts_with("fc_"))) {
        item.insert("id".into(), json!(id));
    }
    item.insert("call_id".into(), json!(call_id));
    item.insert("name".into(), json!(call.name));
    let arguments = Value::Object(call.arguments.clone()).to_string();
    item.insert("arguments".into(), json!(arguments));
    Value::Object(item)
}

/// A tool's result: a string, or parts when there are images.
fn tool_result(result: &ToolResultMessage) -> Value {
    let has_image = result
        .content
        .iter()
        .any(|block| matches!(block, UserBlock::Image(_)));
    let text = joined_text(&result.content);
    let output = if has_image {
        let images = result
            .content
            .iter()
            .filter(|block| matches!(block, UserBlock::Image(_)));
        let text = UserBlock::text(text);
        std::iter::once(&text)
            .chain(images)
            .filter_map(user_part)
            .collect()
    } else {
        json!(text)
    };
    let (call_id, _) = halves(&result.tool_call_id);
    json!({"type": "function_call_output", "call_id": call_id, "output": output})
}

/// The two halves of an id.
fn halves(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item).filter(|item| !item.is_empty())),
        None => (id, None),
    }
}
