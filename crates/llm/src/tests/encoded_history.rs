//! Requests whose beginning was encoded for the request before equal requests that are encoded as a whole.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::{Message, ThinkingLevel, ToolSpec};

use super::{model, request};
use crate::PromptHistory;
use crate::family::Family;
use crate::request::ModelRequest;

/// One API of each family, and both of OpenAI's.
const APIS: [&str; 7] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "openai-codex-responses",
    "google-generative-ai",
    "mistral-conversations",
    "bedrock-converse-stream",
];

fn message(value: Value) -> Arc<Message> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn user(text: &str) -> Arc<Message> {
    message(json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}))
}

fn answer(api: &str, provider: &str, content: Value, reason: &str) -> Arc<Message> {
    let model = model(api);
    message(
        json!({"role": "assistant", "content": content, "api": model.api, "provider": provider, "model": model.id,
                   "stopReason": reason, "timestamp": 2}),
    )
}

fn own(api: &str, content: Value) -> Arc<Message> {
    answer(api, &model(api).provider, content, "stop")
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
fn conversation(api: &str) -> Vec<Arc<Message>> {
    let mut messages = vec![
        user("first \"question\""),
        own(api, json!([text("an answer\n")])),
        user("  "),
    ];
    for turn in 0..12 {
        let (a, b) = (format!("a{turn}"), format!("b|{turn}"));
        messages.push(user(&format!("question {turn}")));
        messages.push(own(api, json!([text("calls"), call(&a)])));
        messages.push(result(&a, json!([text("output é")])));
        match turn {
            // Calls of another model get other ids.
            2 => {
                messages.push(answer(api, "other", json!([call(&b), call("b_2")]), "toolUse"));
                messages.push(result(&b, json!([text("x")])));
                messages.push(result("b_2", json!([text("y")])));
            }
            3 => messages.push(answer(api, "other", json!([]), "error")),
            // A call without a result, and a result without a call.
            4 => messages.push(own(api, json!([call(&a), call("lost")]))),
            5 => messages.push(result("unknown", json!([text("z")]))),
            6 => messages.push(result(&a, json!([image(), text("seen")]))),
            7 => messages.push(message(
                json!({"role": "user", "content": [image(), text("look")], "timestamp": 4}),
            )),
            8 => messages.push(own(
                api,
                json!([{"type": "thinking", "thinking": "", "thinkingSignature": ""}, text(" ")]),
            )),
            _ => messages.push(own(
                api,
                json!([{"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}, text("so")]),
            )),
        }
    }
    messages
}

fn body(request: &ModelRequest) -> String {
    let http = Family::of(&request.model.api).unwrap().request(request).unwrap();
    String::from_utf8(http.body).unwrap()
}

/// Sends a request after every `step` messages. Returns how often a beginning was there already.
fn compare(
    api: &str,
    messages: &[Arc<Message>],
    step: usize,
    change: impl Fn(usize, &mut ModelRequest),
) -> usize {
    let mut history = PromptHistory::default();
    let mut known = 0;
    for end in (1..=messages.len()).step_by(step) {
        let mut asked = request(model(api));
        asked.messages = messages[..end].to_vec();
        change(end, &mut asked);
        history.observe(&mut asked);
        let mut alone = asked.clone();
        alone.earlier.encoded = None;
        assert_eq!(body(&asked), body(&alone), "{api} after {end} messages");
        let encoded = asked.earlier.encoded.unwrap();
        known += usize::from(encoded.knows_any(&asked.model, &asked.messages));
    }
    known
}

#[test]
fn growing_conversation_gives_the_same_requests() {
    for api in APIS {
        for step in 1..6 {
            compare(api, &conversation(api), step, |_, request| {
                request.system_prompt = "Be brief.".into();
            });
        }
    }
}

#[test]
fn plain_conversation_is_encoded_once() {
    for api in APIS {
        let mut messages = vec![user("go")];
        for turn in 0..20 {
            let id = format!("c{turn:08}");
            messages.extend([
                own(api, json!([text("so"), call(&id)])),
                result(&id, json!([text("done")])),
            ]);
        }
        let known = compare(api, &messages, 2, |_, request| {
            request.system_prompt = "Be brief.".into();
        });
        assert!(known > 15, "{api}: {known}");
    }
}

#[test]
fn changed_instructions_stand_at_their_place() {
    let tool = ToolSpec {
        name: "new".into(),
        description: "n".into(),
        parameters: json!({"type": "object", "properties": {}}),
        prefers_strict: false,
    };
    let flags = [
        json!({"supportsMidConvoSystemMessages": true}),
        json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}),
        json!({"supportsMidConvoEffort": true}),
        json!({"allowEmptySignature": true}),
    ];
    for (api, flags) in APIS
        .iter()
        .flat_map(|api| flags.iter().map(move |flags| (api, flags)))
    {
        compare(api, &conversation(api), 2, |end, request| {
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
fn servers_with_wishes_get_the_same_requests() {
    let api = "openai-completions";
    for flags in [
        json!({"cacheControlFormat": "anthropic"}),
        json!({"requiresAssistantAfterToolResult": true}),
        json!({"requiresThinkingAsText": true, "requiresToolResultName": true}),
        json!({"requiresReasoningContentOnAssistantMessages": true}),
    ] {
        compare(api, &conversation(api), 1, |_, request| {
            request.model.compat = Some(serde_json::from_value(flags.clone()).unwrap());
            request.system_prompt = "Be brief.".into();
        });
    }
}

#[test]
fn image_limits_count_all_images() {
    for api in APIS {
        compare(api, &conversation(api), 1, |_, request| {
            request.model.input_limits =
                Some(serde_json::from_value(json!({"images": {"maxPerRequest": 1}})).unwrap());
        });
    }
}

#[test]
fn another_conversation_begins_anew() {
    for api in APIS {
        let messages = conversation(api);
        let mut history = PromptHistory::default();
        for messages in [&messages[..], &messages[1..], &messages[..9], &messages[..]] {
            let mut asked = request(model(api));
            asked.messages = messages.to_vec();
            history.observe(&mut asked);
            let mut alone = asked.clone();
            alone.earlier.encoded = None;
            assert_eq!(body(&asked), body(&alone), "{api}");
        }
        history.forget_encoded();
    }
}

#[test]
fn refresh_of_idle_session_keeps_nothing_encoded() {
    let mut history = PromptHistory::default();
    let mut asked = request(model("anthropic-messages"));
    asked.messages = vec![
        user("go"),
        own("anthropic-messages", json!([text("done")])),
        user("again"),
    ];
    history.observe(&mut asked);
    let sent: Value = serde_json::from_str(&body(&asked)).unwrap();
    let encoded = asked.earlier.encoded.clone().unwrap();
    assert!(
        encoded.knows_any(&asked.model, &asked.messages),
        "the run keeps them"
    );
    history.forget_encoded();
    let refresh = asked.refresh(7);
    let mut again: Value = serde_json::from_str(&body(&refresh)).unwrap();
    assert!(!encoded.knows_any(&asked.model, &asked.messages));
    // The prompt is the same, byte for byte.
    assert_eq!(again["max_tokens"], 1);
    again["max_tokens"] = sent["max_tokens"].clone();
    assert_eq!(again, sent);
}
