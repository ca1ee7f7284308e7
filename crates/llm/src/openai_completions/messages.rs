//! Writes a conversation for chat completions (providers.md 4). The rest of the request is written in `request`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::content::joined_text;
use wire::{
    AssistantBlock, AssistantMessage, Message, ThinkingContent, ToolCall, ToolResultMessage, UserBlock,
};

use super::dialect::Dialect;
use crate::ids;
use crate::request::{CacheRetention, ModelRequest};
use crate::transform::{IMAGES_FOLLOW, ONLY_IMAGES, transform};

/// Stands between a tool result and a user message for servers that want an answer there.
const BRIDGE: &str = "I have processed the tool results.";

/// Fields under which servers send reasoning; it goes back under the one it came from.
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The `messages` of a request.
pub(super) fn write(request: &ModelRequest, dialect: &Dialect) -> Vec<Value> {
    let history = transform(&request.messages, &request.model, &|id, _| ids::completions(id));
    let mut writer = Writer {
        dialect,
        out: Vec::new(),
        images: Vec::new(),
        after_result: false,
    };
    if !request.system_prompt.trim().is_empty() {
        let developer = request.model.reasoning && dialect.developer_role;
        let role = if developer { "developer" } else { "system" };
        writer
            .out
            .push(json!({"role": role, "content": request.system_prompt}));
    }
    for message in &history {
        writer.message(Arc::as_ref(message));
    }
    writer.flush_images();
    let mut out = writer.out;
    if let Some(marker) = marker(request, dialect) {
        mark(&mut out, &marker);
    }
    out
}

/// The cache marker of Anthropic, for routers that pass it on.
pub(super) fn marker(request: &ModelRequest, dialect: &Dialect) -> Option<Value> {
    match request.cache_retention {
        _ if !dialect.cache_markers => None,
        CacheRetention::None => None,
        CacheRetention::Long if dialect.long_retention => Some(json!({"type": "ephemeral", "ttl": "1h"})),
        CacheRetention::Short | CacheRetention::Long => Some(json!({"type": "ephemeral"})),
    }
}

/// Marks the system prompt and the last text of the last user or assistant message.
fn mark(messages: &mut [Value], marker: &Value) {
    let is = |message: &Value, roles: &[&str]| {
        message
            .get("role")
            .and_then(Value::as_str)
            .is_some_and(|role| roles.contains(&role))
    };
    let first = messages
        .iter_mut()
        .find(|message| is(message, &["system", "developer"]));
    if let Some(system) = first {
        mark_text(system, marker);
    }
    let last = messages
        .iter_mut()
        .rev()
        .filter(|message| is(message, &["user", "assistant"]));
    for message in last {
        if mark_text(message, marker) {
            break;
        }
    }
}

/// Marks the last text of a message; false when it has none.
fn mark_text(message: &mut Value, marker: &Value) -> bool {
    let Some(content) = message.get_mut("content") else {
        return false;
    };
    match content {
        Value::String(text) if !text.is_empty() => {
            *content = json!([{"type": "text", "text": text, "cache_control": marker}]);
            true
        }
        Value::Array(parts) => {
            let text = parts
                .iter_mut()
                .rev()
                .find(|part| part.get("type") == Some(&json!("text")));
            text.and_then(Value::as_object_mut).is_some_and(|part| {
                part.insert("cache_control".into(), marker.clone());
                true
            })
        }
        _ => false,
    }
}

/// Writes message by message.
struct Writer<'a> {
    dialect: &'a Dialect,
    out: Vec<Value>,
    /// Images of the tool results just written.
    images: Vec<Value>,
    /// A tool result was written last.
    after_result: bool,
}

impl Writer<'_> {
    /// Writes one message of the conversation.
    fn message(&mut self, message: &Message) {
        if let Message::ToolResult(result) = message {
            self.tool_result(result);
            self.after_result = true;
            return;
        }
        self.flush_images();
        match message {
            Message::User(user) => {
                let parts: Vec<Value> = user.content.to_blocks().iter().filter_map(user_part).collect();
                if !parts.is_empty() {
                    self.bridge();
                    self.out.push(json!({"role": "user", "content": parts}));
                }
            }
            Message::Assistant(answer) => self.out.extend(self.answer(answer)),
            _ => {}
        }
        self.after_result = false;
    }

    /// Writes an answer where the server insists on one.
    fn bridge(&mut self) {
        if self.after_result && self.dialect.assistant_after_result {
            self.out.push(json!({"role": "assistant", "content": BRIDGE}));
        }
    }

    /// Writes a result; its images wait for the last of the batch.
    fn tool_result(&mut self, result: &ToolResultMessage) {
        let images: Vec<Value> = result
            .content
            .iter()
            .filter(|block| matches!(block, UserBlock::Image(_)))
            .filter_map(user_part)
            .collect();
        let text = joined_text(&result.content);
        let content = if text.is_empty() && !images.is_empty() {
            ONLY_IMAGES.to_owned()
        } else {
            text
        };
        let mut message = Map::new();
        message.insert("role".into(), json!("tool"));
        message.insert("content".into(), json!(content));
        message.insert("tool_call_id".into(), json!(result.tool_call_id));
        if self.dialect.tool_result_name {
            message.insert("name".into(), json!(result.tool_name));
        }
        self.out.push(Value::Object(message));
        self.images.extend(images);
    }

    /// The images of consecutive tool results follow them in one user message.
    fn flush_images(&mut self) {
        if self.images.is_empty() {
            return;
        }
        self.bridge();
        let mut parts = vec![json!({"type": "text", "text": IMAGES_FOLLOW})];
        parts.append(&mut self.images);
        self.out.push(json!({"role": "user", "content": parts}));
        self.after_result = false;
    }

    /// An answer; none when nothing of it can be sent.
    fn answer(&self, answer: &AssistantMessage) -> Option<Value> {
        let mut text = String::new();
        let mut thinking: Vec<&ThinkingContent> = Vec::new();
        let mut calls: Vec<&ToolCall> = Vec::new();
        for block in &answer.content {
            match block {
                AssistantBlock::Text(block) if block.text.trim().is_empty() => {}
                AssistantBlock::Text(block) => text.push_str(&block.text),
                AssistantBlock::Thinking(block) if block.thinking.trim().is_empty() => {}
                AssistantBlock::Thinking(block) => thinking.push(block),
                AssistantBlock::ToolCall(call) => calls.push(call),
            }
        }
        let reasoning: Vec<&str> = thinking.iter().map(|block| block.thinking.as_str()).collect();
        let mut message = Map::new();
        message.insert("role".into(), json!("assistant"));
        let content = if self.dialect.thinking_as_text && !reasoning.is_empty() {
            let mut parts = vec![json!({"type": "text", "text": reasoning.join("\n\n")})];
            parts.extend((!text.is_empty()).then(|| json!({"type": "text", "text": text})));
            Value::Array(parts)
        } else if !text.is_empty() {
            json!(text)
        } else if self.dialect.assistant_after_result || self.dialect.content_required {
            json!("")
        } else {
            Value::Null
        };
        let silent = matches!(&content, Value::Null) || content == json!("");
        if silent && calls.is_empty() {
            return None;
        }
        message.insert("content".into(), content);
        if !self.dialect.thinking_as_text
            && let Some(field) = thinking
                .first()
                .and_then(|block| block.thinking_signature.as_deref())
            && REASONING_FIELDS.contains(&field)
        {
            message.insert(field.to_owned(), json!(reasoning.join("\n")));
        }
        if self.dialect.reasoning_content_required && !message.contains_key("reasoning_content") {
            message.insert("reasoning_content".into(), json!(""));
        }
        add_calls(&calls, &mut message);
        Some(Value::Object(message))
    }
}

/// Adds the tool calls of an answer.
fn add_calls(calls: &[&ToolCall], message: &mut Map<String, Value>) {
    if calls.is_empty() {
        return;
    }
    let write = |call: &&ToolCall| {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
    };
    message.insert("tool_calls".into(), calls.iter().map(write).collect());
    // Encrypted reasoning that belongs to a call travels in its signature.
    let details: Vec<Value> = calls
        .iter()
        .filter_map(|call| serde_json::from_str(call.thought_signature.as_deref()?).ok())
        .collect();
    if !details.is_empty() {
        message.insert("reasoning_details".into(), details.into());
    }
}

/// A part of a user message.
fn user_part(block: &UserBlock) -> Option<Value> {
    match block {
        UserBlock::Text(text) if text.text.is_empty() => None,
        UserBlock::Text(text) => Some(json!({"type": "text", "text": text.text})),
        UserBlock::Image(image) => {
            let url = format!("data:{};base64,{}", image.mime_type, image.data);
            Some(json!({"type": "image_url", "image_url": {"url": url}}))
        }
    }
}
