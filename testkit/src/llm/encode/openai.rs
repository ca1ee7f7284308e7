//! OpenAI chat completions: unnamed events, `data: [DONE]` at the end.

use serde_json::{Value, json};

use super::super::api::Api;
use super::super::body::{Body, Step};
use super::super::errors::ErrorKind;
use super::super::item::{ErrorEvent, Part, Tool};
use super::{Context, Encoder, arguments, data_frame, each, error_body};

/// State of one stream.
pub(super) struct OpenAi {
    context: Context,
    /// Number of the next tool call.
    next: u64,
}

impl OpenAi {
    pub(super) fn new(context: Context) -> Self {
        Self { context, next: 0 }
    }

    fn chunk(&self, choices: &Value) -> Value {
        json!({
            "id": format!("chatcmpl-mock-{:04}", self.context.n), "object": "chat.completion.chunk",
            "created": 1_700_000_000, "model": self.context.model, "service_tier": "default",
            "system_fingerprint": "fp_mock", "choices": choices,
        })
    }

    fn delta(&self, delta: &Value) -> String {
        self.choice(delta, &Value::Null)
    }

    fn choice(&self, delta: &Value, finish: &Value) -> String {
        let choice = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        data_frame(&self.chunk(&choice))
    }
}

impl Encoder for OpenAi {
    fn begin(&mut self) -> Vec<String> {
        vec![self.delta(&json!({"role": "assistant", "content": "", "refusal": null}))]
    }

    fn text(&mut self, body: &mut Body<'_>, parts: &[Part]) -> Step {
        each(body, parts, |s| self.delta(&json!({"content": s})))
    }

    fn thinking(&mut self, body: &mut Body<'_>, parts: &[Part], _signature: &str) -> Step {
        each(body, parts, |s| self.delta(&json!({"reasoning_content": s})))
    }

    fn tool(&mut self, body: &mut Body<'_>, tool: &Tool) -> Step {
        let index = self.next;
        self.next += 1;
        let function = json!({"name": tool.name, "arguments": ""});
        let call = json!({"index": index, "id": tool.id, "type": "function", "function": function});
        body.send(&self.delta(&json!({"tool_calls": [call]})))?;
        each(body, &arguments(tool), |s| {
            self.delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": s}}]}))
        })
    }

    fn error_event(&mut self, error: &ErrorEvent) -> String {
        data_frame(&error_body(Api::OpenAi, error, ErrorKind::Server))
    }

    fn finish(&mut self) -> Vec<String> {
        let reason = match self.context.stop.as_str() {
            "toolUse" => "tool_calls",
            other => other,
        };
        let u = self.context.usage;
        let prompt = u.input + u.cache_read + u.cache_write;
        let mut last = self.chunk(&json!([]));
        let usage = json!({
            "prompt_tokens": prompt, "completion_tokens": u.output, "total_tokens": prompt + u.output,
            "prompt_tokens_details": {"cached_tokens": u.cache_read, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": u.thinking, "audio_tokens": 0,
                "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
            },
        });
        if let Some(object) = last.as_object_mut() {
            object.insert("usage".to_owned(), usage);
        }
        vec![
            self.choice(&json!({}), &Value::from(reason)),
            data_frame(&last),
            "data: [DONE]\n\n".to_owned(),
        ]
    }
}
