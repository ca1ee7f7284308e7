//! Amazon Bedrock ConverseStream: binary frames with checksums. A frame travels as a mark that stands for its bytes, so that
//! everything in front of it can deal in text.

use flate2::Crc;
use serde_json::{Value, json};

use super::super::body::{Body, Step};
use super::super::errors::ErrorKind;
use super::super::expand::{self, Piece};
use super::super::item::{ErrorEvent, Part, Tool};
use super::{Context, Encoder, arguments, each};

/// State of one stream.
pub(super) struct Bedrock {
    context: Context,
    /// Index of the next block.
    next: u64,
}

impl Bedrock {
    pub(super) fn new(context: Context) -> Self {
        Self { context, next: 0 }
    }

    /// Sends a block's deltas and its end.
    fn block(&mut self, body: &mut Body<'_>, parts: &[Part], delta: impl Fn(&str) -> Value) -> Step {
        let index = self.next;
        self.next += 1;
        each(body, parts, |text| {
            let data = json!({"contentBlockIndex": index, "delta": delta(text)});
            event("contentBlockDelta", &data)
        })?;
        body.send(&event("contentBlockStop", &json!({ "contentBlockIndex": index })))
    }

    /// Sends one more delta of the block that comes next.
    fn ahead(&self, body: &mut Body<'_>, delta: &Value) -> Step {
        let data = json!({"contentBlockIndex": self.next, "delta": delta});
        body.send(&event("contentBlockDelta", &data))
    }
}

impl Encoder for Bedrock {
    fn begin(&mut self) -> Vec<String> {
        vec![event("messageStart", &json!({"role": "assistant"}))]
    }

    fn event(&self, name: &str, data: &Value) -> String {
        event(name, data)
    }

    /// The protocol has none; an unknown event does as well.
    fn ping(&self) -> String {
        event("ping", &json!({}))
    }

    fn text(&mut self, body: &mut Body<'_>, parts: &[Part]) -> Step {
        self.block(body, parts, |text| json!({ "text": text }))
    }

    fn thinking(&mut self, body: &mut Body<'_>, parts: &[Part], signature: &str) -> Step {
        let index = self.next;
        each(body, parts, |text| {
            let delta = json!({"reasoningContent": {"text": text}});
            event(
                "contentBlockDelta",
                &json!({"contentBlockIndex": index, "delta": delta}),
            )
        })?;
        if !signature.is_empty() {
            self.ahead(body, &json!({"reasoningContent": {"signature": signature}}))?;
        }
        self.block(body, &[], |_| Value::Null)
    }

    fn redacted(&mut self, body: &mut Body<'_>, data: &str) -> Step {
        self.ahead(body, &json!({"reasoningContent": {"redactedContent": data}}))?;
        self.block(body, &[], |_| Value::Null)
    }

    fn tool(&mut self, body: &mut Body<'_>, tool: &Tool) -> Step {
        let start = json!({"toolUse": {"toolUseId": tool.id, "name": tool.name}});
        let data = json!({"contentBlockIndex": self.next, "start": start});
        body.send(&event("contentBlockStart", &data))?;
        self.block(body, &arguments(tool), |text| json!({"toolUse": {"input": text}}))
    }

    fn error_event(&mut self, error: &ErrorEvent) -> String {
        let (name, text) = match error.kind.unwrap_or(ErrorKind::Server) {
            ErrorKind::RateLimit => ("throttlingException", "Too many requests."),
            ErrorKind::Overloaded => ("serviceUnavailableException", "Unavailable."),
            ErrorKind::Server => ("internalServerException", "Internal error."),
            _ => ("validationException", "The request is invalid."),
        };
        let data = json!({"message": error.message.as_deref().unwrap_or(text)});
        let headers = [(":exception-type", name), (":message-type", "exception")];
        frame(&headers, &data)
    }

    fn finish(&mut self) -> Vec<String> {
        let reason = match self.context.stop.as_str() {
            "stop" => "end_turn",
            "toolUse" => "tool_use",
            "length" => "max_tokens",
            other => other,
        };
        let u = self.context.usage;
        let usage = json!({
            "inputTokens": u.input, "outputTokens": u.output,
            "cacheReadInputTokens": u.cache_read, "cacheWriteInputTokens": u.cache_write,
            "totalTokens": u.input + u.output + u.cache_read + u.cache_write,
        });
        let metadata = json!({"usage": usage, "metrics": {"latencyMs": 1}});
        let stop = event("messageStop", &json!({ "stopReason": reason }));
        vec![stop, event("metadata", &metadata)]
    }
}

/// An event of a kind.
fn event(kind: &str, data: &Value) -> String {
    frame(&[(":event-type", kind), (":message-type", "event")], data)
}

/// A frame: lengths, their checksum, headers, payload, checksum of it all.
fn frame(headers: &[(&str, &str)], data: &Value) -> String {
    let mut head = Vec::new();
    for (name, value) in headers {
        // Names and values here are short words.
        head.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    let payload = bytes(&data.to_string());
    let size = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = size(16 + head.len() + payload.len()).to_vec();
    out.extend_from_slice(&size(head.len()));
    out.extend_from_slice(&checksum(&out));
    out.append(&mut head);
    out.extend_from_slice(&payload);
    out.extend_from_slice(&checksum(&out));
    let digits: Vec<String> = out.iter().map(|byte| format!("{byte:02x}")).collect();
    expand::hex(&digits.concat())
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_be_bytes()
}

/// A text with its marks replaced: the checksum must cover what they stand for.
fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for piece in expand::pieces(text) {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Bytes(bytes) => out.extend_from_slice(&bytes),
            Piece::Fill(n) => expand::fill_blocks(n).for_each(|block| out.extend_from_slice(&block)),
            Piece::Noise(n) => expand::noise_blocks(n).for_each(|block| out.extend_from_slice(&block)),
        }
    }
    out
}
