//! What routers of chat completions pass on: marks of caches, reasoning details, counts of tokens.

use std::sync::Arc;

use serde_json::{Value, json};

use super::requests::{build, header, with};
use super::{last, model, request, run};
use crate::event::ModelEvent;
use crate::family::Family;
use crate::ids::CallNumbers;
use crate::request::ModelRequest;

const API: &str = "openai-completions";

fn newer() -> ModelRequest {
    let mut request = request(model(API));
    request.conventions.keeps_reasoning_details = true;
    request
}

/// The message that a parser makes of these deltas.
fn answered(request: &ModelRequest, deltas: &[Value]) -> Value {
    let mut parser = Family::OpenAiCompletions.parser(request, &CallNumbers::default());
    let mut out: Vec<ModelEvent> = Vec::new();
    for delta in deltas {
        let chunk = json!({"choices": [{"delta": delta}]});
        parser.event("", &chunk.to_string(), &mut out).unwrap();
    }
    let stop = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    parser.event("", &stop.to_string(), &mut out).unwrap();
    parser.end(&mut out).unwrap();
    serde_json::to_value(&*parser.answer().message()).unwrap()
}

#[test]
fn last_tool_result_carries_cache_marker() {
    let fields = json!({"provider": "openrouter", "id": "anthropic/claude-x"});
    let mut request = request(with(API, fields));
    let messages = json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}],
         "api": API, "provider": "openrouter", "model": "anthropic/claude-x", "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": []},
    ]);
    request.messages = serde_json::from_value::<Vec<Arc<wire::Message>>>(messages).unwrap();
    let body = build(&request).1;
    let marked =
        json!([{"type": "text", "text": "(no tool output)", "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(body["messages"][2]["content"], marked);
    assert_eq!(body["messages"][0]["content"][0].get("cache_control"), None);
}

#[test]
fn reasoning_details_are_kept_and_sent_back() {
    let text = |text: &str, signature: Value| json!({"type": "reasoning.text", "text": text, "index": 0, "signature": signature});
    let sealed = text("", json!("s"));
    let encrypted = json!({"type": "reasoning.encrypted", "id": "rs_1", "data": "e"});
    let mut message = answered(
        &newer(),
        &[
            json!({"reasoning": "One ", "reasoning_details": [text("One ", json!(null))]}),
            json!({"reasoning": "two.", "reasoning_details": [text("two.", json!("")), {"type": "odd"}]}),
            json!({"reasoning_details": [sealed, encrypted]}),
            json!({"content": "Done."}),
        ],
    );
    let details = json!([
        {"type": "reasoning.text", "text": "One two.", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "id": "rs_1", "data": "e"},
    ]);
    let signature = message["content"][0]["thinkingSignature"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(signature).unwrap(), details);
    assert_eq!(message["content"][0]["thinking"], "One two.");

    let mut again = newer();
    message["role"] = json!("assistant");
    again.messages = vec![Arc::new(serde_json::from_value(message).unwrap())];
    let turn = build(&again).1["messages"][0].clone();
    assert_eq!(turn["reasoning_details"], details);
    assert_eq!(turn.get("reasoning"), None);
    // Another model cannot read them.
    again.model.id = "another".to_owned();
    assert_eq!(build(&again).1["messages"][0].get("reasoning_details"), None);
}

#[test]
fn encrypted_details_alone_open_reasoning() {
    let encrypted = json!({"type": "reasoning.encrypted", "id": "a", "data": "e"});
    let call = json!({"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}});
    let deltas = [
        json!({"tool_calls": [call]}),
        json!({"reasoning_details": [encrypted]}),
    ];
    let message = answered(&newer(), &deltas);
    assert_eq!(message["content"][0]["thoughtSignature"], Value::Null);
    assert_eq!(message["content"][1]["type"], "thinking");
    // Without the convention the call keeps them.
    let message = answered(&request(model(API)), &deltas);
    assert!(
        message["content"][0]["thoughtSignature"]
            .as_str()
            .unwrap()
            .contains("reasoning.encrypted")
    );
}

#[test]
fn reasoning_precedes_text_of_same_event() {
    let delta = json!({"content": "Done.", "reasoning_content": "Hm."});
    let message = answered(&request(model(API)), &[delta]);
    assert_eq!(message["content"][0]["thinking"], "Hm.");
    assert_eq!(message["content"][1]["text"], "Done.");
}

#[test]
fn cached_tokens_beside_details_are_counted() {
    let chunk = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4}});
    let text = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    let (message, failed) = last(&run(&model(API), [text.as_bytes()]));
    assert!(!failed, "{message}");
    assert_eq!(
        (&message["usage"]["input"], &message["usage"]["cacheRead"]),
        (&json!(6), &json!(4))
    );
}

#[test]
fn opencode_routes_by_session_header() {
    let sent = |fields: Value| {
        let mut request = request(with(API, fields));
        request.session_id = Some("sid".to_owned());
        request.headers = vec![("x-own".to_owned(), "1".to_owned())];
        header(&build(&request).0, "x-opencode-session")
    };
    assert_eq!(sent(json!({"provider": "opencode-go"})).as_deref(), Some("sid"));
    assert_eq!(
        sent(json!({"baseUrl": "https://opencode.ai/zen/v1"})).as_deref(),
        Some("sid")
    );
    assert_eq!(sent(json!({"baseUrl": "https://opencode.ai.example/v1"})), None);
}

#[test]
fn reasoning_of_opencode_go_returns_as_reasoning_content() {
    let mut request = request(with(API, json!({"provider": "opencode-go"})));
    let answer = json!({"role": "assistant", "api": API, "provider": "opencode-go", "model": "m", "stopReason": "stop",
        "content": [{"type": "thinking", "thinking": "why", "thinkingSignature": "reasoning"}, {"type": "text", "text": "a"}]});
    request.messages = vec![Arc::new(serde_json::from_value(answer).unwrap())];
    let turn = build(&request).1["messages"][0].clone();
    assert_eq!(
        (&turn["reasoning_content"], turn.get("reasoning")),
        (&json!("why"), None)
    );
}
