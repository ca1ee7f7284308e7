//! OpenAI Responses: named, numbered events; output items that are opened, filled and closed.

use serde_json::{Value, json};

use super::super::api::Api;
use super::super::body::{Body, Step};
use super::super::errors::ErrorKind;
use super::super::item::{ErrorEvent, Part, Tool};
use super::{Context, Encoder, arguments, each, error_body, named_frame};

/// State of one stream.
pub(super) struct Responses {
    context: Context,
    /// Number of the next event.
    sequence: u64,
    /// Finished output items.
    done: Vec<Value>,
}

impl Responses {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            sequence: 0,
            done: Vec::new(),
        }
    }

    /// An event; its number and type are put in front of `fields`.
    fn event(&mut self, kind: &str, fields: Value) -> String {
        let mut data = json!({"type": kind, "sequence_number": self.sequence});
        self.sequence += 1;
        if let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) {
            data.extend(fields);
        }
        named_frame(kind, &data)
    }

    fn response(&self, status: &str) -> Value {
        json!({
            "id": format!("resp_mock_{:04}", self.context.n), "object": "response", "created_at": 1_700_000_000,
            "status": status, "error": null, "incomplete_details": null, "model": self.context.model,
            "output": self.done, "parallel_tool_calls": true, "usage": null,
        })
    }

    fn added(&mut self, item: &Value) -> String {
        let at = self.done.len();
        self.event(
            "response.output_item.added",
            json!({"output_index": at, "item": item}),
        )
    }

    fn closed(&mut self, item: Value) -> String {
        let at = self.done.len();
        let frame = self.event(
            "response.output_item.done",
            json!({"output_index": at, "item": item}),
        );
        self.done.push(item);
        frame
    }

    /// Sends the deltas of an item as events of one kind and returns their text.
    fn deltas(
        &mut self,
        body: &mut Body<'_>,
        parts: &[Part],
        kind: &str,
        base: &Value,
    ) -> Result<String, super::super::body::Stop> {
        let mut full = String::new();
        each(body, parts, |s| {
            full.push_str(s);
            self.event(kind, with(base, "delta", s))
        })?;
        Ok(full)
    }
}

/// `base` with one more text field.
fn with(base: &Value, key: &str, text: &str) -> Value {
    with_value(base, key, Value::from(text))
}

fn with_value(base: &Value, key: &str, value: Value) -> Value {
    let mut out = base.clone();
    if let Some(object) = out.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
    out
}

impl Encoder for Responses {
    fn begin(&mut self) -> Vec<String> {
        let response = json!({"response": self.response("in_progress")});
        vec![
            self.event("response.created", response.clone()),
            self.event("response.in_progress", response),
        ]
    }

    fn text(&mut self, body: &mut Body<'_>, parts: &[Part]) -> Step {
        let at = self.done.len();
        let id = format!("msg_item_{at}");
        let item =
            json!({"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []});
        body.send(&self.added(&item))?;
        let base = json!({"item_id": id, "output_index": at, "content_index": 0});
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        body.send(&self.event("response.content_part.added", with_value(&base, "part", part(""))))?;
        let full = self.deltas(body, parts, "response.output_text.delta", &base)?;
        body.send(&self.event("response.output_text.done", with(&base, "text", &full)))?;
        body.send(&self.event(
            "response.content_part.done",
            with_value(&base, "part", part(&full)),
        ))?;
        let item = json!({
            "id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part(&full)],
        });
        body.send(&self.closed(item))
    }

    fn thinking(&mut self, body: &mut Body<'_>, parts: &[Part], _signature: &str) -> Step {
        let at = self.done.len();
        let id = format!("rs_item_{at}");
        body.send(&self.added(&json!({"id": id, "type": "reasoning", "summary": []})))?;
        let base = json!({"item_id": id, "output_index": at, "summary_index": 0});
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        body.send(&self.event(
            "response.reasoning_summary_part.added",
            with_value(&base, "part", part("")),
        ))?;
        let full = self.deltas(body, parts, "response.reasoning_summary_text.delta", &base)?;
        body.send(&self.event("response.reasoning_summary_text.done", with(&base, "text", &full)))?;
        body.send(&self.event(
            "response.reasoning_summary_part.done",
            with_value(&base, "part", part(&full)),
        ))?;
        let item =
            json!({"id": id, "type": "reasoning", "encrypted_content": "enc-mock", "summary": [part(&full)]});
        body.send(&self.closed(item))
    }

    fn tool(&mut self, body: &mut Body<'_>, tool: &Tool) -> Step {
        let at = self.done.len();
        let id = tool.item_id.clone().unwrap_or_else(|| format!("fc_item_{at}"));
        let item = |status: &str, arguments: &str| {
            json!({
                "id": id, "type": "function_call", "call_id": tool.id, "name": tool.name, "status": status,
                "arguments": arguments,
            })
        };
        body.send(&self.added(&item("in_progress", "")))?;
        let base = json!({"item_id": id, "output_index": at});
        let full = self.deltas(
            body,
            &arguments(tool),
            "response.function_call_arguments.delta",
            &base,
        )?;
        if tool.unfinished {
            return Ok(());
        }
        let done = with(&base, "arguments", &full);
        body.send(&self.event("response.function_call_arguments.done", done))?;
        body.send(&self.closed(item("completed", &full)))
    }

    fn error_event(&mut self, error: &ErrorEvent) -> String {
        let body = error_body(Api::Responses, error, ErrorKind::Server);
        let message = body.pointer("/error/message").cloned().unwrap_or_default();
        let code = body.pointer("/error/code").filter(|c| !c.is_null());
        let code = code.cloned().unwrap_or_else(|| Value::from("server_error"));
        if error.form.as_deref() == Some("failed") {
            let failure = json!({"code": code, "message": message});
            let response = with_value(&self.response("failed"), "error", failure);
            return self.event("response.failed", json!({"response": response}));
        }
        self.event("error", json!({"code": code, "message": message, "param": null}))
    }

    fn finish(&mut self) -> Vec<String> {
        let status = match self.context.stop.as_str() {
            "stop" | "toolUse" => "completed",
            "length" => "incomplete",
            other => other,
        }
        .to_owned();
        let u = self.context.usage;
        let input = u.input + u.cache_read;
        let usage = json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": u.cache_read},
            "output_tokens": u.output, "output_tokens_details": {"reasoning_tokens": u.thinking},
            "total_tokens": input + u.output,
        });
        let mut response = with_value(&self.response(&status), "usage", usage);
        if status == "incomplete" {
            response = with_value(
                &response,
                "incomplete_details",
                json!({"reason": "max_output_tokens"}),
            );
        }
        let kind = if status == "completed" {
            "response.completed"
        } else {
            "response.incomplete"
        };
        vec![self.event(kind, json!({"response": response}))]
    }
}
