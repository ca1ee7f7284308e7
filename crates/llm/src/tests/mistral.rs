//! Mistral, of which there are no recordings: requests and streams by the book (providers.md 7).

use serde_json::{Value, json};
use wire::ThinkingLevel;

use super::requests::{build, header, with};
use super::{last, model, request, run};
use crate::event::ModelEvent;

const API: &str = "mistral-conversations";

/// An answer with reasoning, text and two calls of which one has no id.
pub(super) fn recording() -> String {
    let chunk = |delta: Value| json!({"id": "m1", "choices": [{"delta": delta}]});
    let thought = |text: &str| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
    let call = |id: &str, index: u64, arguments: Value| json!({"id": id, "index": index, "function": {"name": "t", "arguments": arguments}});
    let chunks = [
        chunk(json!({"role": "assistant", "content": ""})),
        chunk(json!({"content": [thought("Thi"), thought("nk.")]})),
        chunk(json!({"content": [{"type": "text", "text": "An"}]})),
        chunk(json!({"content": "swer"})),
        chunk(
            json!({"tool_calls": [call("abcdefghi", 0, json!("{\"x\":")), call("null", 1, json!({"y": 2}))]}),
        ),
        chunk(json!({"tool_calls": [call("null", 0, json!("1}"))]})),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}),
    ];
    let text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!("{text}data: [DONE]\n\n")
}

fn stream(text: &str) -> Vec<ModelEvent> {
    run(&model(API), [text.as_bytes()])
}

#[test]
fn mistral_parts_strings_and_calls_are_decoded() {
    let (message, failed) = last(&stream(&recording()));
    assert!(!failed, "{message}");
    let content = &message["content"];
    assert_eq!(content[0]["thinking"], "Think.");
    assert_eq!(content[1]["text"], "Answer");
    assert_eq!(
        (&content[2]["id"], &content[2]["arguments"]),
        (&json!("abcdefghi"), &json!({"x": 1}))
    );
    assert_eq!(content[3]["arguments"], json!({"y": 2}));
    assert_eq!(content[3]["id"].as_str().unwrap().len(), 9);
    assert_eq!(content.as_array().unwrap().len(), 4);
    assert_eq!(message["stopReason"], "toolUse");
    assert_eq!(message["usage"]["totalTokens"], 15);
}

#[test]
fn mistral_cached_tokens_are_counted_apart() {
    for cached in [
        json!({"prompt_tokens_details": {"cached_tokens": 4}}),
        json!({"prompt_token_details": {"cached_tokens": 4}}),
        json!({"num_cached_tokens": 4}),
    ] {
        let mut usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
        usage
            .as_object_mut()
            .unwrap()
            .extend(cached.as_object().unwrap().clone());
        let chunk =
            json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": usage});
        let (message, _) = last(&stream(&format!("data: {chunk}\n\n")));
        let usage = &message["usage"];
        assert_eq!(
            (&usage["input"], &usage["cacheRead"]),
            (&json!(6), &json!(4)),
            "{cached}"
        );
    }
}

#[test]
fn mistral_stream_splits_agree_and_cuts_fail() {
    let text = recording();
    let whole = stream(&text);
    let finish = text.find("finish_reason").unwrap();
    for at in 0..text.len() {
        let (a, b) = text.as_bytes().split_at(at);
        assert_eq!(run(&model(API), [a, b]), whole, "split at {at}");
        let events = run(&model(API), [a]);
        let (message, failed) = last(&events);
        assert_eq!(events.iter().filter(|event| event.is_last()).count(), 1);
        if at < finish {
            assert!(failed && crate::is_retryable(message["errorMessage"].as_str().unwrap()));
        }
    }
}

#[test]
fn mistral_finish_reasons_map_to_stop_reasons() {
    for (reason, stop) in [
        ("stop", "stop"),
        ("model_length", "length"),
        ("new", "stop"),
        ("error", "error"),
    ] {
        let chunk = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]});
        let (message, failed) = last(&stream(&format!("data: {chunk}\n\n")));
        assert_eq!(message["stopReason"], stop);
        assert_eq!(failed, stop == "error");
        if failed {
            let text = message["errorMessage"].as_str().unwrap();
            assert!(crate::is_retryable(text), "{text}");
        }
    }
}

#[test]
fn mistral_requests_use_its_dialect() {
    let mut request = request(with(API, json!({"baseUrl": "https://api.mistral.ai"})));
    let messages = json!([
        {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image", "data": "aa", "mimeType": "image/png"}]},
        {"role": "assistant", "api": API, "provider": "p", "model": "m", "stopReason": "toolUse", "content": [
            {"type": "thinking", "thinking": "why"}, {"type": "text", "text": "a"},
            {"type": "toolCall", "id": "abcdefghi", "name": "t", "arguments": {"x": 1}}]},
        {"role": "toolResult", "toolCallId": "abcdefghi", "toolName": "t", "content": [], "isError": true},
    ]);
    request.messages = serde_json::from_value(messages).unwrap();
    request.system_prompt = "S".to_owned();
    request.session_id = Some("sid".to_owned());
    request.thinking = ThinkingLevel::Low;
    let (http, body) = build(&request);
    assert_eq!(http.url, "https://api.mistral.ai/v1/chat/completions");
    assert_eq!(header(&http, "x-affinity").as_deref(), Some("sid"));
    assert_eq!(body["prompt_cache_key"], "sid");
    assert_eq!(body["prompt_mode"], "reasoning");
    assert_eq!(body["max_tokens"], 32000);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "Look"},
                {"type": "image_url", "image_url": "data:image/png;base64,aa"}]},
            {"role": "assistant",
             "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}, {"type": "text", "text": "a"}],
             "tool_calls": [{"id": "abcdefghi", "type": "function", "function": {"name": "t", "arguments": "{\"x\":1}"}}]},
            {"role": "tool", "tool_call_id": "abcdefghi", "name": "t",
             "content": [{"type": "text", "text": "[tool error] (no tool output)"}]},
        ])
    );
    request.model.id = "mistral-medium-3.5".to_owned();
    assert_eq!(build(&request).1["reasoning_effort"], "high");
    request.thinking = ThinkingLevel::Off;
    let body = build(&request).1;
    assert!(body.get("reasoning_effort").is_none() && body.get("prompt_mode").is_none());
    let map = json!({"off": "none", "low": "low", "medium": null});
    request.model = with(API, json!({"id": "mistral-large-4", "thinkingLevelMap": map}));
    for (level, effort) in [
        (ThinkingLevel::Off, "none"),
        (ThinkingLevel::Low, "low"),
        (ThinkingLevel::Medium, "high"),
    ] {
        request.thinking = level;
        assert_eq!(build(&request).1["reasoning_effort"], effort, "{level}");
    }
}
