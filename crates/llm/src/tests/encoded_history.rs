//! Requests whose beginning was encoded for the request before equal requests that are encoded as a whole.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::{Message, ThinkingLevel, ToolSpec};

use super::{model, request};
use crate::PromptHistory;
use crate::family::Family;
use crate::request::ModelRequest;

fn message(value: Value) -> Arc<Message> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn user(text: &str) -> Arc<Message> {
    message(json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}))
}

fn answer(provider: &str, content: Value, reason: &str) -> Arc<Message> {
    let model = model("anthropic-messages");
    message(
        json!({"role": "assistant", "content": content, "api": model.api, "provider": provider, "model": model.id,
                   "stopReason": reason, "timestamp": 2}),
    )
}

fn own(content: Value) -> Arc<Message> {
    answer(&model("anthropic-messages").provider, content, "stop")
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": format!("echo \"{id}\"")}})
}

fn result(id: &str, content: Value) -> Arc<Message> {
    message(
        json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": content, "isError": false,
                   "timestamp": 3}),
    )
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image() -> Value {
    json!({"type": "image", "data": "AAAA", "mimeType": "image/png"})
}

/// A conversation with everything that a request has to change. Requests may end at any place.
fn conversation() -> Vec<Arc<Message>> {
    let mut messages = vec![
        user("first \"question\""),
        own(json!([text("an answer\n")])),
        user("  "),
    ];
    for turn in 0..12 {
        let (a, b) = (format!("a{turn}"), format!("b|{turn}"));
        messages.push(user(&format!("question {turn}")));
        messages.push(own(json!([text("calls"), call(&a)])));
        messages.push(result(&a, json!([text("output é")])));
        match turn {
            // Calls of another model get other ids.
            2 => {
                messages.push(answer("other", json!([call(&b), call("b_2")]), "toolUse"));
                messages.push(result(&b, json!([text("x")])));
                messages.push(result("b_2", json!([text("y")])));
            }
            3 => messages.push(answer("other", json!([]), "error")),
            // A call without a result, and a result without a call.
            4 => messages.push(own(json!([call(&a), call("lost")]))),
            5 => messages.push(result("unknown", json!([text("z")]))),
            6 => messages.push(result(&a, json!([image(), text("seen")]))),
            7 => messages.push(message(
                json!({"role": "user", "content": [image(), text("look")], "timestamp": 4}),
            )),
            8 => messages.push(own(
                json!([{"type": "thinking", "thinking": "", "thinkingSignature": ""}, text(" ")]),
            )),
            _ => messages.push(own(
                json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, text("so")]),
            )),
        }
    }
    messages
}

fn body(request: &ModelRequest) -> String {
    let http = Family::of(&request.model.api).unwrap().request(request).unwrap();
    String::from_utf8(http.body).unwrap()
}

/// Sends a request after every `step` messages. Returns how often the beginning was known.
fn compare(messages: &[Arc<Message>], step: usize, change: impl Fn(usize, &mut ModelRequest)) -> usize {
    let mut history = PromptHistory::default();
    let mut known = 0;
    for end in (1..=messages.len()).step_by(step) {
        let mut asked = request(model("anthropic-messages"));
        asked.messages = messages[..end].to_vec();
        change(end, &mut asked);
        history.observe(&mut asked);
        let mut alone = asked.clone();
        alone.earlier.encoded = None;
        assert_eq!(body(&asked), body(&alone), "after {end} messages");
        let encoded = asked.earlier.encoded.unwrap();
        known += usize::from(encoded.lock().known(&asked.model, &asked.messages) > 0);
    }
    known
}

#[test]
fn growing_conversation_gives_the_same_requests() {
    for step in 1..6 {
        compare(&conversation(), step, |_, _| {});
    }
}

#[test]
fn plain_conversation_is_encoded_once() {
    let mut messages = vec![user("go")];
    for turn in 0..20 {
        let id = format!("c{turn}");
        messages.extend([own(json!([call(&id)])), result(&id, json!([text("done")]))]);
    }
    assert!(compare(&messages, 2, |_, _| {}) > 15);
}

#[test]
fn changed_instructions_stand_at_their_place() {
    let tool = ToolSpec {
        name: "new".into(),
        description: "n".into(),
        parameters: json!({"type": "object", "properties": {}}),
        prefers_strict: false,
    };
    for flags in [
        json!({"supportsMidConvoSystemMessages": true}),
        json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}),
        json!({"supportsMidConvoEffort": true}),
        json!({"allowEmptySignature": true}),
    ] {
        compare(&conversation(), 2, |end, request| {
            request.model.compat = Some(serde_json::from_value(flags.clone()).unwrap());
            request.model.reasoning = true;
            request.thinking = if end > 20 {
                ThinkingLevel::High
            } else {
                ThinkingLevel::Low
            };
            request.system_prompt = if end > 12 {
                "Other.".into()
            } else {
                "First.".into()
            };
            if end > 16 {
                request.tools.push(tool.clone());
            }
        });
    }
}

#[test]
fn image_limits_count_all_images() {
    compare(&conversation(), 1, |_, request| {
        request.model.input_limits =
            Some(serde_json::from_value(json!({"images": {"maxPerRequest": 1}})).unwrap());
    });
}

#[test]
fn another_conversation_begins_anew() {
    let messages = conversation();
    let mut history = PromptHistory::default();
    for messages in [&messages[..], &messages[1..], &messages[..9], &messages[..]] {
        let mut asked = request(model("anthropic-messages"));
        asked.messages = messages.to_vec();
        history.observe(&mut asked);
        let mut alone = asked.clone();
        alone.earlier.encoded = None;
        assert_eq!(body(&asked), body(&alone));
    }
    history.forget_encoded();
}
