//! Google generateContent (`alt=sse`): unnamed events with whole parts; arguments of calls never come in pieces.

use serde_json::{Value, json};

use super::super::api::Api;
use super::super::body::{Body, Step};
use super::super::errors::ErrorKind;
use super::super::expand;
use super::super::item::{ErrorEvent, Part, Tool};
use super::{Context, Encoder, each, error_body};
use crate::limits::MAX_GENERATED;

/// State of one stream.
pub(super) struct Google {
    context: Context,
}

impl Google {
    pub(super) fn new(context: Context) -> Self {
        Self { context }
    }

    fn chunk(&self, part: &Value, finish: Option<&str>) -> Value {
        let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
        if let (Some(reason), Some(object)) = (finish, candidate.as_object_mut()) {
            object.insert("finishReason".to_owned(), Value::from(reason));
        }
        json!({
            "candidates": [candidate], "modelVersion": self.context.model,
            "responseId": format!("gresp_mock_{:04}", self.context.n),
        })
    }
}

/// Google ends its lines with CRLF.
fn frame(data: &Value) -> String {
    format!("data: {data}\r\n\r\n")
}

impl Encoder for Google {
    fn text(&mut self, body: &mut Body<'_>, parts: &[Part]) -> Step {
        each(body, parts, |s| frame(&self.chunk(&json!({"text": s}), None)))
    }

    fn thinking(&mut self, body: &mut Body<'_>, parts: &[Part], _signature: &str) -> Step {
        each(body, parts, |s| {
            frame(&self.chunk(&json!({"text": s, "thought": true}), None))
        })
    }

    fn tool(&mut self, body: &mut Body<'_>, tool: &Tool) -> Step {
        let text = match (&tool.arg_chunks, &tool.args_raw) {
            (Some(chunks), _) => Some(joined(body, chunks)?),
            (None, raw) => raw.clone(),
        };
        let args = match text {
            // A text that is no JSON cannot be an argument object; it is sent as the string it is.
            Some(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            None if tool.args.is_null() => json!({}),
            None => tool.args.clone(),
        };
        let mut call = json!({"name": tool.name, "args": args});
        if let (true, Some(object)) = (tool.send_id, call.as_object_mut()) {
            object.insert("id".to_owned(), Value::from(tool.id.as_str()));
        }
        let mut part = json!({"functionCall": call});
        if let (Some(signature), Some(object)) = (&tool.thought_signature, part.as_object_mut()) {
            object.insert("thoughtSignature".to_owned(), Value::from(signature.as_str()));
        }
        body.send(&frame(&self.chunk(&part, None)))
    }

    fn error_event(&mut self, error: &ErrorEvent) -> String {
        frame(&error_body(Api::Google, error, ErrorKind::Server))
    }

    fn finish(&mut self) -> Vec<String> {
        let reason = match self.context.stop.as_str() {
            "stop" | "toolUse" => "STOP",
            "length" => "MAX_TOKENS",
            other => other,
        };
        let u = self.context.usage;
        let prompt = u.input + u.cache_read;
        let mut usage = json!({
            "promptTokenCount": prompt, "candidatesTokenCount": u.output,
            "totalTokenCount": prompt + u.output + u.thinking,
        });
        let mut last = self.chunk(&json!({"text": ""}), Some(reason));
        if let Some(object) = usage.as_object_mut() {
            if u.cache_read > 0 {
                object.insert("cachedContentTokenCount".to_owned(), Value::from(u.cache_read));
            }
            if u.thinking > 0 {
                object.insert("thoughtsTokenCount".to_owned(), Value::from(u.thinking));
            }
        }
        if let Some(object) = last.as_object_mut() {
            object.insert("usageMetadata".to_owned(), usage);
        }
        vec![frame(&last)]
    }
}

/// The text of a call's arguments, after doing what its parts ask for in between.
fn joined(body: &mut Body<'_>, parts: &[Part]) -> Result<String, super::super::body::Stop> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Chunk(s) => text.push_str(s),
            Part::Fill { fill } => text.push_str(&expand::fill(*fill)),
            Part::Hex { hex } => text.push_str(&expand::hex(hex)),
            Part::Deltas { deltas } => {
                for i in 0..deltas.count.min(MAX_GENERATED) {
                    let offset = i.wrapping_mul(deltas.size as u64);
                    text.push_str(&expand::words(offset, deltas.size));
                }
            }
            Part::Gate { gate } => body.gate(gate)?,
            Part::Delay { delay } => body.pause(*delay)?,
            Part::Drop { drop } => body.fail(*drop)?,
        }
    }
    Ok(text)
}
