//! Replies for tests: the agent plays them instead of asking a model. Everything else (tools, events, files) is real.

use serde_json::{Map, Value, json};

/// Replies, used up in order.
#[derive(Debug, Clone, Default)]
pub struct Script(Vec<Value>);

impl Script {
    /// No replies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer.
    #[must_use]
    pub fn reply(self, text: &str) -> Self {
        self.raw(json!({ "stream": [{ "text": text }] }))
    }

    /// An answer whose pieces arrive one by one, each `seconds` after the one before.
    #[must_use]
    pub fn slow_reply(self, pieces: &[&str], seconds: f64) -> Self {
        let chunks: Vec<Value> = pieces
            .iter()
            .flat_map(|piece| [json!({ "delay": seconds }), json!(piece)])
            .collect();
        self.raw(json!({ "stream": [{ "text": chunks }] }))
    }

    /// An answer that calls a tool.
    #[must_use]
    pub fn tool_call(self, name: &str, arguments: &Value) -> Self {
        self.raw(json!({ "stream": [{ "tool": { "name": name, "args": arguments } }] }))
    }

    /// The provider fails: `server`, `rate_limit`, `overloaded`, `context_overflow`, `too_large`, `auth` or `invalid`.
    #[must_use]
    pub fn failure(self, kind: &str) -> Self {
        self.raw(json!({ "error": { "kind": kind } }))
    }

    /// The answer for requests that contain a text, however often they come.
    #[must_use]
    pub fn when(self, wanted: &str, text: &str) -> Self {
        self.raw(json!({ "match": { "contains": wanted }, "repeat": true, "stream": [{ "text": text }] }))
    }

    /// A reply in the form of the file.
    #[must_use]
    pub fn raw(mut self, reply: Value) -> Self {
        self.0.push(reply);
        self
    }

    /// The file's text.
    pub(crate) fn text(&self) -> String {
        Value::Object(Map::from_iter([("llm".to_owned(), Value::Array(self.0.clone()))])).to_string()
    }
}
