//! Writes a conversation as the `contents` of the Gemini API (providers.md 6). The rest of the request is written in
//! `request`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::content::joined_text;
use wire::{AssistantBlock, AssistantMessage, Message, Model, ToolCall, ToolResultMessage, UserBlock};

use super::generation::{results_hold_images, wants_signed_calls};
use crate::ids;
use crate::request::ModelRequest;
use crate::transform::{IMAGES_FOLLOW, ONLY_IMAGES, transform};

/// What the provider takes in place of a signature for a call that another model made.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// The `contents` of a request.
pub(super) fn write(request: &ModelRequest) -> Vec<Value> {
    let model = &request.model;
    let history = transform(&request.messages, model, &|id, _| ids::google(id, model));
    let mut writer = Writer {
        model,
        out: Vec::new(),
        results: Vec::new(),
        images: Vec::new(),
    };
    for message in &history {
        writer.message(Arc::as_ref(message));
    }
    writer.flush();
    writer.out
}

/// Writes message by message.
struct Writer<'a> {
    model: &'a Model,
    out: Vec<Value>,
    /// Results of the last answer; the API wants them together.
    results: Vec<Value>,
    /// Images that the results could not hold.
    images: Vec<Value>,
}

impl Writer<'_> {
    fn message(&mut self, message: &Message) {
        if let Message::ToolResult(result) = message {
            self.result(result);
            return;
        }
        self.flush();
        match message {
            Message::User(user) => {
                let parts = user.content.to_blocks().iter().filter_map(user_part).collect();
                self.push("user", parts);
            }
            Message::Assistant(answer) => {
                let parts = self.answer(answer);
                self.push("model", parts);
            }
            _ => {}
        }
    }

    /// Appends a content, unless it is empty: the API refuses those.
    fn push(&mut self, role: &str, parts: Vec<Value>) {
        if !parts.is_empty() {
            self.out.push(json!({"parts": parts, "role": role}));
        }
    }

    /// Appends the gathered results, and behind them the images they could not hold.
    fn flush(&mut self) {
        let results = std::mem::take(&mut self.results);
        self.push("user", results);
        if !self.images.is_empty() {
            let mut parts = vec![json!({"text": IMAGES_FOLLOW})];
            parts.append(&mut self.images);
            self.push("user", parts);
        }
    }

    fn result(&mut self, result: &ToolResultMessage) {
        let images: Vec<Value> = result
            .content
            .iter()
            .filter(|block| matches!(block, UserBlock::Image(_)))
            .filter_map(user_part)
            .collect();
        let text = joined_text(&result.content);
        let text = if text.is_empty() && !images.is_empty() {
            ONLY_IMAGES.to_owned()
        } else {
            text
        };
        let field = if result.is_error { "error" } else { "output" };
        let mut response = Map::new();
        response.insert("name".into(), json!(result.tool_name));
        response.insert("response".into(), json!({field: text}));
        if results_hold_images(&self.model.id) {
            if !images.is_empty() {
                response.insert("parts".into(), images.into());
            }
        } else {
            self.images.extend(images);
        }
        if ids::google_sends_ids(&self.model.id) {
            response.insert("id".into(), json!(result.tool_call_id));
        }
        self.results.push(json!({"functionResponse": response}));
    }

    /// The parts of an answer. What another model thought is text by now, and its signatures are gone.
    fn answer(&self, answer: &AssistantMessage) -> Vec<Value> {
        let mut parts = Vec::new();
        let mut calls = 0;
        for block in &answer.content {
            match block {
                AssistantBlock::Text(text) => {
                    let fields = json!({"text": text.text});
                    parts.extend(said(fields, &text.text, text.text_signature.as_deref()));
                }
                AssistantBlock::Thinking(thinking) => {
                    let fields = json!({"text": thinking.thinking, "thought": true});
                    let signature = thinking.thinking_signature.as_deref();
                    parts.extend(said(fields, &thinking.thinking, signature));
                }
                AssistantBlock::ToolCall(call) => {
                    parts.push(self.call(call, calls == 0));
                    calls += 1;
                }
            }
        }
        parts
    }

    /// A call. Of several at once the provider signs the first.
    fn call(&self, call: &ToolCall, first: bool) -> Value {
        let mut fields = Map::new();
        fields.insert("args".into(), json!(call.arguments));
        fields.insert("name".into(), json!(call.name));
        if ids::google_sends_ids(&self.model.id) {
            fields.insert("id".into(), json!(call.id));
        }
        let part = json!({"functionCall": fields});
        let unsigned = (first && wants_signed_calls(&self.model.id)).then_some(UNSIGNED);
        signed(part, valid(call.thought_signature.as_deref()).or(unsigned))
    }
}

/// A part with text; none when it says nothing. A signature is worth sending by itself.
fn said(fields: Value, text: &str, signature: Option<&str>) -> Option<Value> {
    let signature = valid(signature);
    (signature.is_some() || !text.trim().is_empty()).then(|| signed(fields, signature))
}

/// A part with its signature.
fn signed(mut part: Value, signature: Option<&str>) -> Value {
    if let (Some(signature), Value::Object(fields)) = (signature, &mut part) {
        fields.insert("thoughtSignature".into(), json!(signature));
    }
    part
}

/// The signature, if it is base64; the API refuses requests with another one.
fn valid(signature: Option<&str>) -> Option<&str> {
    signature.filter(|signature| {
        let plain = signature.trim_end_matches('=');
        let padding = signature.len() - plain.len();
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        !plain.is_empty() && padding <= 2 && signature.len() % 4 == 0 && plain.bytes().all(is_base64)
    })
}

/// A part of a user message.
fn user_part(block: &UserBlock) -> Option<Value> {
    match block {
        UserBlock::Text(text) if text.text.is_empty() => None,
        UserBlock::Text(text) => Some(json!({"text": text.text})),
        UserBlock::Image(image) => {
            Some(json!({"inlineData": {"mimeType": image.mime_type, "data": image.data}}))
        }
    }
}
