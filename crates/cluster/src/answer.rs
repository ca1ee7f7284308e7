//! An answer of a model that streams in, put together from the deltas of its events: what clients without `deltas` see, and what a new
//! owner stores. The stream has each piece of an answer once, since whole answers in each update grow with the square of their length.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use wire::partial_json::PartialJson;

use crate::limits::UPDATES_PER_WHOLE;

/// A JSON object.
type Object = Map<String, Value>;

/// An assistant message that is not complete.
#[derive(Debug)]
pub(crate) struct Answer {
    message: Value,
    /// `contentIndex` of each block, in the order of the content.
    indexes: Vec<u64>,
    /// Arguments of calls that are not complete, by `contentIndex`.
    arguments: HashMap<u64, PartialJson>,
    /// Updates since the last one with the whole message.
    updates: u64,
}

impl Default for Answer {
    /// An answer whose beginning is unknown.
    fn default() -> Self {
        Self::begin(&json!({"role": "assistant", "content": []}))
    }
}

impl Answer {
    /// Begins with the message of `message_start`, or of an update that has all of it.
    fn begin(message: &Value) -> Self {
        let mut message = message.clone();
        if !message.get("content").is_some_and(Value::is_array)
            && let Some(message) = message.as_object_mut()
        {
            message.insert("content".to_owned(), json!([]));
        }
        let count = message
            .get("content")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        Self {
            message,
            indexes: (0..count as u64).collect(),
            arguments: HashMap::new(),
            updates: 0,
        }
    }

    /// Follows the events of a session. None between answers.
    pub(crate) fn follow(answer: &mut Option<Self>, event: &Object) {
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                let message = event.get("message");
                let message = message.filter(|message| message.get("role") == Some(&json!("assistant")));
                *answer = message.map(Self::begin);
            }
            Some("message_update") => answer.get_or_insert_default().update(event),
            Some("message_end") => *answer = None,
            _ => {}
        }
    }

    pub(crate) fn into_message(self) -> Value {
        self.message
    }

    /// The message so far, if enough updates have followed the last one with the whole message, and if it says all that is known: it does
    /// not while a call streams in.
    pub(crate) fn whole(&mut self) -> Option<&Value> {
        let is_known =
            self.arguments.is_empty() && self.indexes.iter().copied().eq(0..self.indexes.len() as u64);
        if self.updates < UPDATES_PER_WHOLE || !is_known {
            return None;
        }
        self.updates = 0;
        Some(&self.message)
    }

    /// Takes a `message_update`.
    fn update(&mut self, event: &Object) {
        if let Some(whole) = event.get("message") {
            *self = Self::begin(whole);
            return;
        }
        self.updates += 1;
        if let (Some(usage), Some(message)) = (event.get("usage"), self.message.as_object_mut()) {
            message.insert("usage".to_owned(), usage.clone());
        }
        let Some(step) = event.get("assistantMessageEvent").and_then(Value::as_object) else {
            return;
        };
        let word = |name: &str| step.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(index) = step.get("contentIndex").and_then(Value::as_u64) else {
            return;
        };
        match word("type") {
            "text_start" => self.put(index, json!({"type": "text", "text": ""})),
            "text_delta" => self.grow(index, "text", word("delta")),
            "text_end" => self.put(index, json!({"type": "text", "text": word("content")})),
            "thinking_start" => self.put(index, json!({"type": "thinking", "thinking": ""})),
            "thinking_delta" => self.grow(index, "thinking", word("delta")),
            "thinking_end" => self.put(index, json!({"type": "thinking", "thinking": word("content")})),
            "toolcall_start" => {
                self.arguments.insert(index, PartialJson::new());
                let (id, name) = (word("id"), word("toolName"));
                self.put(
                    index,
                    json!({"type": "toolCall", "id": id, "name": name, "arguments": {}}),
                );
            }
            "toolcall_delta" => {
                if let Some(arguments) = self.arguments.get_mut(&index) {
                    arguments.push(word("delta"));
                }
            }
            "toolcall_end" => {
                self.arguments.remove(&index);
                self.put(index, step.get("toolCall").cloned().unwrap_or_default());
            }
            _ => {}
        }
    }

    /// The update as clients without `deltas` get it: with the message so far, twice.
    pub(crate) fn expand(&mut self, event: &mut Object) {
        let arguments: Vec<(u64, Object)> = self
            .arguments
            .iter()
            .map(|(index, arguments)| (*index, arguments.finish()))
            .collect();
        for (index, arguments) in arguments {
            if let Some(block) = self.block(index).and_then(Value::as_object_mut) {
                block.insert("arguments".to_owned(), Value::Object(arguments));
            }
        }
        if let Some(Value::Object(step)) = event.get_mut("assistantMessageEvent") {
            step.insert("partial".to_owned(), self.message.clone());
        }
        event.insert("message".to_owned(), self.message.clone());
    }

    /// The block with this `contentIndex`.
    fn block(&mut self, index: u64) -> Option<&mut Value> {
        let place = self.indexes.iter().rposition(|known| *known == index)?;
        let blocks = self.message.get_mut("content").and_then(Value::as_array_mut)?;
        blocks.get_mut(place)
    }

    /// Adds a block or replaces the one with its index.
    fn put(&mut self, index: u64, block: Value) {
        if let Some(old) = self.block(index) {
            *old = block;
        } else if let Some(blocks) = self.message.get_mut("content").and_then(Value::as_array_mut) {
            self.indexes.push(index);
            blocks.push(block);
        }
    }

    /// Appends text to a block. A block that was never started begins here.
    fn grow(&mut self, index: u64, kind: &str, delta: &str) {
        if self.block(index).is_none() {
            self.put(index, json!({"type": kind, kind: ""}));
        }
        if let Some(Value::String(text)) = self.block(index).and_then(|block| block.get_mut(kind)) {
            text.push_str(delta);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, UPDATES_PER_WHOLE};
    use serde_json::{Value, json};

    fn answer(events: &Value) -> Option<Answer> {
        let mut answer = None;
        for event in events.as_array().unwrap() {
            Answer::follow(&mut answer, event.as_object().unwrap());
        }
        answer
    }

    fn step(step: &Value) -> Value {
        json!({"type": "message_update", "usage": {"input": 3}, "assistantMessageEvent": step})
    }

    #[test]
    fn deltas_of_several_blocks_become_one_message() {
        let mut answer = answer(&json!([
            {"type": "message_start", "message": {"role": "assistant", "content": [], "model": "m"}},
            step(&json!({"type": "thinking_start", "contentIndex": 0})),
            step(&json!({"type": "thinking_delta", "contentIndex": 0, "delta": "h"})),
            step(&json!({"type": "text_start", "contentIndex": 1})),
            step(&json!({"type": "thinking_delta", "contentIndex": 0, "delta": "m"})),
            step(&json!({"type": "text_delta", "contentIndex": 1, "delta": "ä"})),
            step(&json!({"type": "toolcall_start", "contentIndex": 2, "id": "c", "toolName": "bash"})),
            step(&json!({"type": "toolcall_delta", "contentIndex": 2, "delta": "{\"command\":\"ls"})),
        ]))
        .unwrap();
        let event = step(&json!({"type": "text_delta", "contentIndex": 1, "delta": "ö"}));
        let mut event = event.as_object().unwrap().clone();
        answer.update(&event);
        answer.expand(&mut event);
        let message = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "äö"},
            {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}},
        ], "model": "m", "usage": {"input": 3}});
        assert_eq!(event["message"], message);
        assert_eq!(event["assistantMessageEvent"]["partial"], message);
    }

    #[test]
    fn whole_message_replaces_what_came_before() {
        let whole = json!({"role": "assistant", "content": [{"type": "text", "text": "all of it"}]});
        let answer = answer(&json!([
            step(&json!({"type": "text_delta", "contentIndex": 0, "delta": "part"})),
            {"type": "message_update", "message": whole},
            step(&json!({"type": "text_delta", "contentIndex": 0, "delta": "!"})),
        ]))
        .unwrap();
        assert_eq!(answer.into_message()["content"][0]["text"], "all of it!");
    }

    #[test]
    fn whole_message_comes_again_between_calls() {
        let mut long = Answer::default();
        let take = |answer: &mut Answer, event: Value| {
            answer.update(event.as_object().unwrap());
            answer.whole().map(|message| message["content"].clone())
        };
        let text = step(&json!({"type": "text_delta", "contentIndex": 0, "delta": "a"}));
        for _ in 1..UPDATES_PER_WHOLE {
            assert_eq!(take(&mut long, text.clone()), None);
        }
        let call = step(&json!({"type": "toolcall_start", "contentIndex": 1, "id": "c", "toolName": "bash"}));
        assert_eq!(take(&mut long, call), None);
        let block = json!({"type": "toolCall", "id": "c", "name": "bash", "arguments": {}});
        let end = step(&json!({"type": "toolcall_end", "contentIndex": 1, "toolCall": block}));
        let whole = take(&mut long, end).unwrap();
        assert_eq!(
            whole[0]["text"].as_str().map(str::len),
            Some(UPDATES_PER_WHOLE as usize - 1)
        );
        assert_eq!(whole[1], block);
        assert_eq!(take(&mut long, text), None);
    }

    #[test]
    fn answers_end_with_their_messages() {
        let user = json!({"role": "user", "content": "x"});
        assert!(answer(&json!([{"type": "message_start", "message": user}])).is_none());
        let begun = json!({"role": "assistant"});
        let events =
            json!([{"type": "message_start", "message": begun}, {"type": "message_end", "message": begun}]);
        assert!(answer(&events).is_none());
    }
}
