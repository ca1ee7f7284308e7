//! Anthropic Messages: named events, numbered content blocks.

use serde_json::{Value, json};

use super::super::api::Api;
use super::super::body::{Body, Step};
use super::super::errors::ErrorKind;
use super::super::item::{ErrorEvent, Part, Tool};
use super::{Context, Encoder, arguments, each, error_body, named_frame};

/// State of one stream.
pub(super) struct Anthropic {
    context: Context,
    /// Number of the next content block.
    next: u64,
}

impl Anthropic {
    pub(super) fn new(context: Context) -> Self {
        Self { context, next: 0 }
    }

    /// Sends a block's start, its deltas (JSON from `delta`), and returns its number.
    fn block(
        &mut self,
        body: &mut Body<'_>,
        start: &Value,
        parts: &[Part],
        delta: impl Fn(&str) -> Value,
    ) -> Result<u64, super::super::body::Stop> {
        let index = self.next;
        self.next += 1;
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        body.send(&named_frame("content_block_start", &start))?;
        each(body, parts, |text| delta_frame(index, &delta(text)))?;
        Ok(index)
    }
}

fn delta_frame(index: u64, delta: &Value) -> String {
    let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
    named_frame("content_block_delta", &data)
}

fn stop_frame(index: u64) -> String {
    named_frame(
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": index}),
    )
}

impl Encoder for Anthropic {
    fn begin(&mut self) -> Vec<String> {
        let Context { model, n, usage, .. } = &self.context;
        let usage = json!({
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": 1,
        });
        let message = json!({
            "id": format!("msg_mock_{n:04}"), "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": usage,
        });
        vec![
            named_frame(
                "message_start",
                &json!({"type": "message_start", "message": message}),
            ),
            self.ping(),
        ]
    }

    fn ping(&self) -> String {
        named_frame("ping", &json!({"type": "ping"}))
    }

    fn text(&mut self, body: &mut Body<'_>, parts: &[Part]) -> Step {
        let start = json!({"type": "text", "text": ""});
        let index = self.block(body, &start, parts, |s| json!({"type": "text_delta", "text": s}))?;
        body.send(&stop_frame(index))
    }

    fn thinking(&mut self, body: &mut Body<'_>, parts: &[Part], signature: &str) -> Step {
        let start = json!({"type": "thinking", "thinking": "", "signature": ""});
        let index = self.block(
            body,
            &start,
            parts,
            |s| json!({"type": "thinking_delta", "thinking": s}),
        )?;
        if !signature.is_empty() {
            let delta = json!({"type": "signature_delta", "signature": signature});
            body.send(&delta_frame(index, &delta))?;
        }
        body.send(&stop_frame(index))
    }

    fn redacted(&mut self, body: &mut Body<'_>, data: &str) -> Step {
        let start = json!({"type": "redacted_thinking", "data": data});
        let index = self.block(body, &start, &[], |_| Value::Null)?;
        body.send(&stop_frame(index))
    }

    fn tool(&mut self, body: &mut Body<'_>, tool: &Tool) -> Step {
        let start = json!({"type": "tool_use", "id": tool.id, "name": tool.name, "input": {}});
        let delta = |s: &str| json!({"type": "input_json_delta", "partial_json": s});
        let index = self.block(body, &start, &arguments(tool), delta)?;
        if tool.unfinished {
            Ok(())
        } else {
            body.send(&stop_frame(index))
        }
    }

    fn error_event(&mut self, error: &ErrorEvent) -> String {
        named_frame("error", &error_body(Api::Anthropic, error, ErrorKind::Overloaded))
    }

    fn finish(&mut self) -> Vec<String> {
        let reason = match self.context.stop.as_str() {
            "stop" => "end_turn",
            "toolUse" => "tool_use",
            "length" => "max_tokens",
            other => other,
        };
        let delta = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": self.context.usage.output},
        });
        vec![
            named_frame("message_delta", &delta),
            named_frame("message_stop", &json!({"type": "message_stop"})),
        ]
    }
}
