//! What the recordings of the Responses API do not cover.

use serde_json::{Value, json};
use wire::ThinkingLevel;

use super::requests::{build, header, with};
use super::{joined, last, model, request, run};
use crate::event::ModelEvent;
use crate::request::{CacheRetention, ModelRequest};

const API: &str = "openai-responses";

fn stream(frames: &[Value]) -> Vec<ModelEvent> {
    let text: String = frames
        .iter()
        .map(|frame| format!("event: {}\ndata: {frame}\n\n", frame["type"].as_str().unwrap()))
        .collect();
    run(&model(API), [text.as_bytes()])
}

fn added(place: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": place, "item": item})
}

fn done(place: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": place, "item": item})
}

fn delta(kind: &str, place: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": place, "delta": delta})
}

fn ended(kind: &str, response: Value) -> Value {
    json!({"type": format!("response.{kind}"), "response": response})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "t", "arguments": arguments})
}

#[test]
fn responses_items_may_interleave_and_change_ids() {
    let mut last_call = call("b", "{\"y\":2}");
    last_call["id"] = json!("another");
    let events = stream(&[
        added(0, call("a", "")),
        added(1, call("b", "")),
        delta("function_call_arguments", 1, "{\"y\":"),
        delta("function_call_arguments", 0, "{\"x\":1}"),
        done(0, call("a", "{\"x\":1}")),
        delta("function_call_arguments", 1, "2}"),
        done(1, last_call),
        ended("completed", json!({"status": "completed"})),
    ]);
    let (message, failed) = last(&events);
    assert!(!failed, "{message}");
    assert_eq!(message["content"][0]["arguments"], json!({"x": 1}));
    assert_eq!(message["content"][1]["arguments"], json!({"y": 2}));
    assert_eq!(message["content"][1]["id"], "b|fc_b");
    assert_eq!(message["stopReason"], "toolUse");
}

#[test]
fn content_only_in_item_end_is_emitted() {
    let text = json!({"type": "message", "id": "m1", "phase": "commentary",
        "content": [{"type": "output_text", "text": "Hi "}, {"type": "refusal", "refusal": "no"}]});
    let events = stream(&[
        added(0, json!({"type": "message", "id": "m1"})),
        delta("output_text", 0, "Hi"),
        done(0, text),
        added(1, json!({"type": "web_search_call", "id": "w"})),
        delta("odd", 1, "lost"),
        done(2, call("late", "{\"z\":3}")),
        ended("completed", json!({"status": "completed"})),
    ]);
    let (message, failed) = last(&events);
    assert!(!failed, "{message}");
    assert_eq!(message["content"][0]["text"], "Hi no");
    assert_eq!(
        message["content"][0]["textSignature"],
        "{\"v\":1,\"id\":\"m1\",\"phase\":\"commentary\"}"
    );
    assert_eq!(message["content"][1]["arguments"], json!({"z": 3}));
    assert_eq!(joined(&events)[1]["delta"], "Hi no");
}

#[test]
fn responses_reasoning_items_are_kept_verbatim() {
    let item = json!({"id": "r", "type": "reasoning", "summary": [{"type": "summary_text", "text": "One."},
        {"type": "summary_text", "text": "Two."}], "encrypted_content": "e"});
    let part_done = json!({"type": "response.reasoning_summary_part.done", "output_index": 0});
    let events = stream(&[
        added(0, json!({"id": "r", "type": "reasoning", "summary": []})),
        delta("reasoning_summary_text", 0, "One."),
        part_done.clone(),
        delta("reasoning_summary_text", 0, "Two."),
        part_done,
        done(0, item.clone()),
        added(1, json!({"id": "s", "type": "reasoning"})),
        delta("reasoning_text", 1, "open"),
        done(
            1,
            json!({"id": "s", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "open"}]}),
        ),
        ended("completed", json!({"status": "completed"})),
    ]);
    let (message, _) = last(&events);
    assert_eq!(message["content"][0]["thinking"], "One.\n\nTwo.");
    assert_eq!(message["content"][0]["thinkingSignature"], item.to_string());
    assert_eq!(message["content"][1]["thinking"], "open");
    let all = joined(&events);
    assert_eq!(all[1]["delta"], "One.\n\nTwo.\n\n");
    assert_eq!(all[2]["content"], "One.\n\nTwo.");
}

#[test]
fn responses_end_events_map_to_stop_reasons() {
    let usage = json!({"input_tokens": 10, "output_tokens": 3, "total_tokens": 13, "input_tokens_details": {"cached_tokens": 4}});
    for (kind, response, stop, text) in [
        ("completed", json!({"usage": usage}), "stop", Value::Null),
        (
            "incomplete",
            json!({"usage": usage, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
            "length",
            Value::Null,
        ),
        (
            "completed",
            json!({"usage": usage, "status": "incomplete"}),
            "length",
            Value::Null,
        ),
        (
            "incomplete",
            json!({"usage": usage, "incomplete_details": {"reason": "content_filter"}}),
            "error",
            json!("incomplete: content_filter"),
        ),
        (
            "failed",
            json!({"usage": usage, "error": {"code": "server_error", "message": "Sorry"}}),
            "error",
            json!("server_error: Sorry"),
        ),
        (
            "failed",
            json!({"usage": usage, "error": null, "incomplete_details": {"reason": "why"}}),
            "error",
            json!("incomplete: why"),
        ),
    ] {
        let events = stream(&[
            added(0, json!({"type": "message", "id": "m"})),
            delta("output_text", 0, "Hi"),
            ended(kind, response),
        ]);
        let (message, failed) = last(&events);
        assert_eq!(failed, stop == "error");
        assert_eq!(
            (&message["stopReason"], &message["errorMessage"]),
            (&json!(stop), &text)
        );
        assert_eq!(message["usage"]["input"], 6);
        assert_eq!(message["usage"]["cacheRead"], 4);
        assert_eq!(message["usage"]["totalTokens"], 13);
        assert_eq!(message["content"][0]["text"], "Hi");
    }
}

#[test]
fn responses_error_events_show_code_and_message() {
    for (event, text) in [
        (
            json!({"type": "error", "code": "server_error", "message": "Busy"}),
            "Error Code server_error: Busy",
        ),
        (
            json!({"type": "error", "error": {"code": 503, "message": "Busy"}}),
            "Error Code 503: Busy",
        ),
        (json!({"type": "error", "code": null, "message": "Busy"}), "Busy"),
    ] {
        assert_eq!(last(&stream(&[event])).0["errorMessage"], text);
    }
}

#[test]
fn responses_stream_without_final_event_fails() {
    let (message, failed) = last(&stream(&[done(0, call("a", "{}"))]));
    assert!(failed);
    assert!(crate::is_retryable(message["errorMessage"].as_str().unwrap()));
    assert_eq!(message["content"][0]["id"], "a|fc_a");
}

fn ask(fields: Value) -> ModelRequest {
    request(with(API, fields))
}

fn with_history(fields: Value, messages: Value) -> Vec<Value> {
    let mut request = ask(fields);
    request.messages = serde_json::from_value(messages).unwrap();
    build(&request).1["input"].as_array().unwrap().clone()
}

#[test]
fn thinking_off_uses_model_mapping_or_is_omitted() {
    let reasoning = |fields: Value| build(&ask(fields)).1["reasoning"].clone();
    assert_eq!(reasoning(json!({})), json!({"effort": "none"}));
    assert_eq!(
        reasoning(json!({"thinkingLevelMap": {"off": "minimal"}})),
        json!({"effort": "minimal"})
    );
    assert_eq!(reasoning(json!({"thinkingLevelMap": {"off": null}})), Value::Null);
    assert_eq!(reasoning(json!({"provider": "github-copilot"})), Value::Null);
    assert_eq!(reasoning(json!({"reasoning": false})), Value::Null);
    let mut mapped = ask(json!({"thinkingLevelMap": {"minimal": "low"}}));
    mapped.thinking = ThinkingLevel::Minimal;
    let body = build(&mapped).1;
    assert_eq!(body["reasoning"], json!({"effort": "low", "summary": "auto"}));
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert!(build(&ask(json!({}))).1.get("include").is_none());
    let grok = ask(json!({"provider": "xai", "thinkingLevelMap": {"off": null}}));
    assert_eq!(build(&grok).1["include"], json!(["reasoning.encrypted_content"]));
    let mut one = ask(json!({}));
    one.output.asked = Some(1);
    assert_eq!(build(&one).1["max_output_tokens"], 16);
}

#[test]
fn session_hints_follow_cache_setting() {
    let mut request = ask(json!({"compat": {"sendSessionIdHeader": false}}));
    request.session_id = Some("sid".to_owned());
    request.cache_retention = CacheRetention::Long;
    let (http, body) = build(&request);
    assert_eq!(header(&http, "session_id"), None);
    assert_eq!(header(&http, "x-client-request-id").as_deref(), Some("sid"));
    assert_eq!(body["prompt_cache_key"], "sid");
    assert_eq!(body["prompt_cache_retention"], "24h");
    request.model = with(API, json!({}));
    request.conventions.dashed_session_header = true;
    let (http, _) = build(&request);
    assert_eq!(header(&http, "session_id"), None);
    assert_eq!(header(&http, "session-id").as_deref(), Some("sid"));
    request.cache_retention = CacheRetention::None;
    let (http, body) = build(&request);
    assert_eq!(header(&http, "x-client-request-id"), None);
    assert!(body.get("prompt_cache_key").is_none());
}

fn answer(model: &str, content: Value) -> Value {
    json!({"role": "assistant", "content": content, "api": API, "provider": "p", "model": model, "stopReason": "stop"})
}

#[test]
fn reasoning_is_sent_back_only_before_its_output() {
    let thought = json!({"type": "thinking", "thinking": "t", "thinkingSignature": "{\"id\":\"r\",\"type\":\"reasoning\"}"});
    let odd = json!({"type": "thinking", "thinking": "t", "thinkingSignature": "no json"});
    let text = json!({"type": "text", "text": "A"});
    let input = with_history(
        json!({}),
        json!([
            answer("m", json!([thought, odd, text, text, thought])),
            answer("m", json!([thought])),
        ]),
    );
    let shape: Vec<(&str, &str)> = input
        .iter()
        .map(|item| (item["type"].as_str().unwrap(), item["id"].as_str().unwrap()))
        .collect();
    assert_eq!(
        shape,
        [("reasoning", "r"), ("message", "msg_0"), ("message", "msg_0_1")]
    );
}

#[test]
fn calls_of_other_model_lose_item_ids() {
    let call = json!({"type": "toolCall", "id": "c1|fc_1", "name": "t", "arguments": {"a": 1}});
    let result = json!({"role": "toolResult", "toolCallId": "c1|fc_1", "toolName": "t", "content": [
        {"type": "text", "text": "seen"}, {"type": "image", "data": "aa", "mimeType": "image/png"}]});
    for (provider, by, id, call_id) in [
        ("openai", "m", json!("fc_1"), "c1"),
        ("openai", "sister", Value::Null, "c1"),
        ("p", "sister", Value::Null, "c1_fc_1"),
    ] {
        let mut answer = answer(by, json!([call]));
        answer["provider"] = json!(provider);
        let input = with_history(json!({"provider": provider}), json!([answer, result]));
        assert_eq!((&input[0]["id"], &input[0]["call_id"]), (&id, &json!(call_id)));
        assert_eq!(input[0]["arguments"], "{\"a\":1}");
        assert_eq!(input[1]["call_id"], call_id);
        assert_eq!(
            input[1]["output"],
            json!([{"type": "input_text", "text": "seen"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aa"}])
        );
    }
}

#[test]
fn long_text_ids_are_shortened() {
    let text = json!({"type": "text", "text": "A", "textSignature": "x".repeat(90)});
    let input = with_history(json!({}), json!([answer("m", json!([text]))]));
    let id = input[0]["id"].as_str().unwrap();
    assert!(id.starts_with("msg_") && id.len() <= 64, "{id}");
}

#[test]
fn azure_responses_use_own_address_and_key() {
    for (base, url) in [
        (
            "https://x.openai.azure.com",
            "https://x.openai.azure.com/openai/v1/responses?api-version=v1",
        ),
        (
            "https://x.openai.azure.com/openai/",
            "https://x.openai.azure.com/openai/v1/responses?api-version=v1",
        ),
        (
            "https://x.openai.azure.com/openai/v1",
            "https://x.openai.azure.com/openai/v1/responses?api-version=v1",
        ),
        (
            "https://x.openai.azure.com/openai/v1/responses",
            "https://x.openai.azure.com/openai/v1/responses?api-version=v1",
        ),
        (
            "https://x.services.ai.azure.com",
            "https://x.services.ai.azure.com/openai/v1/responses?api-version=v1",
        ),
        (
            "http://127.0.0.1:9",
            "http://127.0.0.1:9/responses?api-version=v1",
        ),
    ] {
        let mut request = request(with("azure-openai-responses", json!({"baseUrl": base})));
        request.api_key = Some(auth::Secret::new("k"));
        request.cache_retention = CacheRetention::Long;
        let (http, body) = build(&request);
        assert_eq!(http.url, url);
        assert_eq!(header(&http, "api-key").as_deref(), Some("k"));
        assert_eq!(header(&http, "authorization"), None);
        assert_eq!(body["store"], false);
        assert!(body.get("prompt_cache_retention").is_none());
    }
    let bare = request(with("azure-openai-responses", json!({"baseUrl": ""})));
    let error = crate::family::Family::of(&bare.model.api).unwrap().request(&bare);
    assert_eq!(
        error.unwrap_err().to_string(),
        "AZURE_OPENAI_BASE_URL is required for provider p but is not set."
    );
}

#[test]
fn cache_writes_and_service_tiers_are_priced() {
    let cost = |tier: Value| {
        let usage = json!({"input_tokens": 20, "output_tokens": 3, "total_tokens": 23,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 6}});
        let response = json!({"status": "completed", "usage": usage, "service_tier": tier});
        let (message, _) = last(&stream(&[ended("completed", response)]));
        let usage = &message["usage"];
        assert_eq!(
            (&usage["input"], &usage["cacheRead"], &usage["cacheWrite"]),
            (&json!(10), &json!(4), &json!(6))
        );
        usage["cost"]["total"].as_f64().unwrap()
    };
    let plain = cost(json!("default"));
    assert!((cost(json!("priority")) / plain - 2.0).abs() < 1e-9);
    assert!((cost(json!("flex")) / plain - 0.5).abs() < 1e-9);
    assert!((cost(json!(null)) - plain).abs() < 1e-12);
}

#[test]
fn encrypted_reasoning_may_come_with_whole_response() {
    let bare = json!({"id": "r", "type": "reasoning", "summary": []});
    let mut whole = bare.clone();
    whole["encrypted_content"] = json!("e");
    let events = stream(&[
        done(0, bare),
        ended(
            "completed",
            json!({"status": "completed", "output": [{"type": "message", "id": "m"}, whole]}),
        ),
    ]);
    let signature = last(&events).0["content"][0]["thinkingSignature"].clone();
    let item: Value = serde_json::from_str(signature.as_str().unwrap()).unwrap();
    assert_eq!(item, whole);
}

#[test]
fn token_of_chatgpt_login_omits_refused_fields() {
    let body = |key: &str| {
        let mut request = ask(
            json!({"provider": "openai", "baseUrl": "https://api.openai.com/v1",
            "compat": {"supportsMidConvoEffort": true}}),
        );
        request.api_key = Some(auth::Secret::new(key));
        request.cache_retention = CacheRetention::Long;
        request.thinking = ThinkingLevel::High;
        request.temperature = Some(0.5);
        build(&request).1
    };
    let keyed = body("sk-1");
    assert_eq!(keyed["temperature"], 0.5);
    assert!(keyed.get("max_output_tokens").is_some() && keyed.get("prompt_cache_retention").is_some());
    assert_eq!(keyed["reasoning"]["effort"], "medium");
    let token = body("eyJ");
    for name in [
        "max_output_tokens",
        "prompt_cache_retention",
        "prompt_cache_options",
        "temperature",
    ] {
        assert!(token.get(name).is_none(), "{name}");
    }
    assert_eq!(token["reasoning"]["effort"], "high");
}
