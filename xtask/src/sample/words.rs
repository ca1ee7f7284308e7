//! What made-up messages say: text with quotes, line ends and letters beyond ASCII, so that reading and writing it as JSON costs
//! what it costs in real sessions. Which message comes when is decided in `mod`.

use serde_json::{Value, json};

use crate::fuzz::prng::Prng;

const WORDS: [&str; 24] = [
    "the",
    "function",
    "returns",
    "a",
    "value",
    "when",
    "\"quoted\"",
    "line\n",
    "is",
    "größer",
    "than",
    "0x1f",
    "fn main()",
    "tests/it.rs",
    "// note\n",
    "error:",
    "expected",
    "`u64`,",
    "found",
    "\tlet x",
    "=",
    "→",
    "path\\to",
    "done.\n",
];
const TOOLS: [&str; 3] = ["read", "bash", "edit"];

/// Makes up messages.
pub(super) struct Words(Prng);

impl Words {
    pub(super) fn new(random: Prng) -> Self {
        Self(random)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    /// About so many bytes of text.
    pub(super) fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            text += self.0.pick(&WORDS).copied().unwrap_or_default();
            text.push(' ');
        }
        text
    }

    fn some_text(&mut self, most: usize) -> String {
        let bytes = most / 4 + self.below(most * 3 / 4);
        self.text(bytes)
    }

    pub(super) fn user(&mut self) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": self.some_text(300)}]})
    }

    /// An answer that thinks, says something and calls a tool; and the tool's name.
    pub(super) fn call(&mut self, id: &str) -> (Value, &'static str) {
        let tool = self.0.pick(&TOOLS).copied().unwrap_or_default();
        let arguments = match tool {
            "bash" => json!({"command": self.some_text(120)}),
            "edit" => {
                json!({"path": "src/lib.rs", "edits": [{"oldText": self.some_text(300), "newText": self.some_text(300)}]})
            }
            _ => json!({"path": "src/main.rs", "offset": self.below(4_000), "limit": 200}),
        };
        let content = json!([
            {"type": "thinking", "thinking": self.some_text(500), "thinkingSignature": "c2lnbmF0dXJl".repeat(20)},
            {"type": "text", "text": self.some_text(200)},
            {"type": "toolCall", "id": id, "name": tool, "arguments": arguments},
        ]);
        (self.assistant(&content, "toolUse"), tool)
    }

    /// The last answer of a turn.
    pub(super) fn answer(&mut self) -> Value {
        let content = json!([{"type": "text", "text": self.some_text(1_200)}]);
        self.assistant(&content, "stop")
    }

    fn assistant(&mut self, content: &Value, stop: &str) -> Value {
        let (input, output) = (1_000 + self.below(90_000), 20 + self.below(900));
        json!({
            "role": "assistant", "content": content, "api": "anthropic-messages", "provider": "mock", "model": "mock",
            "usage": {
                "input": input, "output": output, "cacheRead": 10, "cacheWrite": 0, "totalTokens": input + output + 10,
                "cost": {"input": 0.003, "output": 0.015, "cacheRead": 0.000_03, "cacheWrite": 0, "total": 0.018_03},
            },
            "stopReason": stop, "responseId": "msg_01",
        })
    }

    /// What a tool gave back, about `bytes` long.
    pub(super) fn result(&mut self, call: &str, tool: &str, bytes: usize) -> Value {
        let mut result = json!({
            "role": "toolResult", "toolCallId": call, "toolName": tool,
            "content": [{"type": "text", "text": self.text(bytes)}], "isError": false,
        });
        if let Some(object) = result.as_object_mut() {
            let details = match tool {
                "edit" => json!({"diff": self.text(bytes / 8), "firstChangedLine": 17}),
                _ => json!({"truncation": {"truncated": false, "totalLines": 200, "totalBytes": bytes}}),
            };
            object.insert("details".to_owned(), details);
        }
        result
    }
}
