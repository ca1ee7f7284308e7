//! Builds branches entry by entry. Ids are `e0`, `e1` and so on, each entry follows the one before.

use std::sync::Arc;

use pinion_agent::compaction::{Keep, Settings};
use serde_json::{Value, json};
use wire::{Entry, Message};

pub(crate) const TINY: Settings = Settings {
    reserve_tokens: 2_000,
    keep_recent_tokens: 10,
    keep: Keep::AtLeast,
};

pub(crate) fn keep(keep_recent_tokens: u64) -> Settings {
    Settings {
        keep_recent_tokens,
        ..TINY
    }
}

#[derive(Default, Clone)]
pub(crate) struct Branch(pub(crate) Vec<Arc<Entry>>);

impl Branch {
    /// Any entry, as JSON without the fields that all of them have.
    pub(crate) fn entry(mut self, body: Value) -> Self {
        self.push(body);
        self
    }

    pub(crate) fn push(&mut self, mut body: Value) -> String {
        let id = format!("e{}", self.0.len());
        let fields = body.as_object_mut().unwrap();
        fields.insert("id".into(), json!(id));
        fields.insert("parentId".into(), json!(self.0.last().map(|entry| &entry.id)));
        fields.insert("timestamp".into(), json!("2026-11-20T00:00:00.000Z"));
        self.0
            .push(Arc::new(Entry::from_json(&body.to_string()).unwrap()));
        id
    }

    pub(crate) fn settings(self) -> Self {
        self.entry(json!({"type": "model_change", "provider": "p", "modelId": "m"}))
            .entry(json!({"type": "thinking_level_change", "thinkingLevel": "off"}))
    }

    pub(crate) fn user(self, text: &str) -> Self {
        self.entry(user(text))
    }

    pub(crate) fn says(self, text: &str, tokens: u64) -> Self {
        self.entry(answer(&json!([{"type": "text", "text": text}]), "stop", tokens))
    }

    /// An answer with one call, `c<n>`.
    pub(crate) fn calls(self, n: usize, name: &str, args: Value, tokens: u64) -> Self {
        self.entry(answer(&json!([call(n, name, args)]), "toolUse", tokens))
    }

    pub(crate) fn result(self, n: usize, text: &str) -> Self {
        self.entry(result(n, text))
    }

    pub(crate) fn failed(self, reason: &str, text: &str) -> Self {
        self.entry(answer(&json!([{"type": "text", "text": text}]), reason, 0))
    }

    pub(crate) fn custom_message(self, text: &str) -> Self {
        self.entry(json!({"type": "custom_message", "customType": "x", "content": text, "display": true}))
    }

    pub(crate) fn compaction(self, summary: &str, first_kept: &str) -> Self {
        self.entry(json!({
            "type": "compaction", "summary": summary, "firstKeptEntryId": first_kept, "tokensBefore": 1,
            "details": {"readFiles": [], "modifiedFiles": []}, "fromHook": false,
        }))
    }
}

pub(crate) fn user(text: &str) -> Value {
    json!({"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": text}]}})
}

pub(crate) fn answer(content: &Value, stop: &str, tokens: u64) -> Value {
    json!({"type": "message", "message": {
        "role": "assistant", "content": content, "stopReason": stop, "usage": {"totalTokens": tokens},
    }})
}

pub(crate) fn call(n: usize, name: &str, args: Value) -> Value {
    json!({"type": "toolCall", "id": format!("c{n}"), "name": name, "arguments": args})
}

pub(crate) fn result(n: usize, text: &str) -> Value {
    json!({"type": "message", "message": {
        "role": "toolResult", "toolCallId": format!("c{n}"), "toolName": "bash", "content": [{"type": "text", "text": text}],
    }})
}

/// A text of that many tokens.
pub(crate) fn long(tokens: usize) -> String {
    "abc ".repeat(tokens)
}

/// The first words of messages, which tests use as names.
pub(crate) fn names(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| name(message)).collect()
}

pub(crate) fn name(message: &Message) -> String {
    let value = serde_json::to_value(message).unwrap();
    let text = value.pointer("/content/0/text").or(value.get("content"));
    let text = text
        .and_then(Value::as_str)
        .or(value.get("summary").and_then(Value::as_str));
    let call = value.pointer("/content/0/id").and_then(Value::as_str);
    let words = text.or(call).unwrap_or("").split(' ');
    words.take(1).collect()
}
