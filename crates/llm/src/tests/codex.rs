//! ChatGPT's own endpoint: requests, and what its streams have that others have not. Copilot's headers in the families it
//! is asked in.

use std::sync::Arc;

use auth::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use wire::ThinkingLevel;

use super::requests::{build, header, with};
use super::{joined, last, request, run};
use crate::family::Family;
use crate::request::{CacheRetention, ModelRequest};

/// A token as ChatGPT's logins have it.
pub(super) fn token() -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc-7"}});
    format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn codex(fields: Value) -> ModelRequest {
    let mut fields = fields;
    fields["provider"] = json!("openai-codex");
    let mut request = request(with("openai-codex-responses", fields));
    request.api_key = Some(Secret::new(&token()));
    request
}

#[test]
fn codex_request_has_expected_form() {
    let mut request = codex(json!({"thinkingLevelMap": {"minimal": "low"}}));
    request.system_prompt = "S".to_owned();
    request.session_id = Some("sid".to_owned());
    request.thinking = ThinkingLevel::Minimal;
    request.tools =
        serde_json::from_value(json!([{"name": "t", "description": "d", "parameters": {"type": "object"}}]))
            .unwrap();
    let messages = json!([
        {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image", "data": "aa", "mimeType": "image/png"}]},
        {"role": "assistant", "api": "openai-codex-responses", "provider": "openai-codex", "model": "m", "stopReason": "toolUse", "content": [
            {"type": "thinking", "thinking": "T", "thinkingSignature": "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"encrypted_content\":\"e\"}"},
            {"type": "toolCall", "id": "call_1|fc_1", "name": "t", "arguments": {"a": 1}}]},
        {"role": "toolResult", "toolCallId": "call_1|fc_1", "toolName": "t", "content": [{"type": "text", "text": "R"}]},
    ]);
    request.messages = serde_json::from_value::<Vec<Arc<wire::Message>>>(messages).unwrap();
    let (http, body) = build(&request);
    assert_eq!(http.url, "http://127.0.0.1:9/codex/responses");
    assert_eq!(
        body,
        json!({
            "model": "m", "store": false, "stream": true, "instructions": "S",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Look."},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aa"}]},
                {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"},
                {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "t", "arguments": "{\"a\":1}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "R"},
            ],
            "text": {"verbosity": "low"}, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "sid",
            "tool_choice": "auto", "parallel_tool_calls": true,
            "tools": [{"type": "function", "name": "t", "description": "d", "parameters": {"type": "object"}, "strict": null}],
            "reasoning": {"effort": "low", "summary": "auto"},
        })
    );
    let headers = [
        ("authorization", format!("Bearer {}", token())),
        ("chatgpt-account-id", "acc-7".to_owned()),
        ("originator", "pinion".to_owned()),
        ("openai-beta", "responses=experimental".to_owned()),
        ("accept", "text/event-stream".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("session_id", "sid".to_owned()),
        ("x-client-request-id", "sid".to_owned()),
    ];
    for (name, value) in &headers {
        assert_eq!(header(&http, name).as_ref(), Some(value), "{name}");
    }
    assert_eq!(http.headers.len(), headers.len());
}

#[test]
fn codex_request_omits_disabled_options() {
    let mut request = codex(json!({}));
    request.session_id = Some("sid".to_owned());
    request.cache_retention = CacheRetention::None;
    request.output.asked = Some(5);
    let (http, body) = build(&request);
    // Without a word the endpoint would choose a level.
    assert_eq!(body["reasoning"], json!({"effort": "none"}));
    let always = codex(json!({"thinkingLevelMap": {"off": null}}));
    assert!(build(&always).1.get("reasoning").is_none());
    for name in ["tools", "max_output_tokens", "prompt_cache_key", "temperature"] {
        assert!(body.get(name).is_none(), "{name}");
    }
    assert_eq!(header(&http, "session_id"), None);
    assert!(!body["instructions"].as_str().unwrap().is_empty());
    for base in [
        "http://h/backend-api",
        "http://h/backend-api/",
        "http://h/backend-api/codex",
        "http://h/backend-api/codex/responses/",
    ] {
        request.model.base_url = base.to_owned();
        assert_eq!(build(&request).0.url, "http://h/backend-api/codex/responses");
    }
}

#[test]
fn codex_token_without_account_is_refused_before_request() {
    for bad in ["plain-key", "a.b.c", "a.e30.c"] {
        let mut request = codex(json!({}));
        request.api_key = Some(Secret::new(bad));
        let error = Family::OpenAiCodex.request(&request).unwrap_err().to_string();
        assert!(
            error.contains("no ChatGPT account") && !error.contains(bad),
            "{error}"
        );
        request.headers = vec![("ChatGPT-Account-Id".to_owned(), "by-hand".to_owned())];
        assert_eq!(
            header(&build(&request).0, "chatgpt-account-id").as_deref(),
            Some("by-hand")
        );
    }
}

/// Every event in one text.
fn stream(end: &Value) -> String {
    let events = [
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "codex.rate_limits", "plan_type": "plus"}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "msg_1"}}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"}),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "lo ü"}),
        json!({"type": "response.output_item.done", "output_index": 0,
            "item": {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hello ü"}]}}),
        end.clone(),
    ];
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(line).collect()
}

#[test]
fn codex_answer_ends_map_to_stop_reasons() {
    let model = codex(json!({})).model;
    let usage = json!({"input_tokens": 10, "output_tokens": 3, "total_tokens": 13, "input_tokens_details": {"cached_tokens": 4}});
    let cut_off = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": usage});
    let table = [
        (
            json!({"type": "response.completed", "response": {"status": "completed", "usage": usage}}),
            "stop",
        ),
        (
            json!({"type": "response.done", "response": {"status": "completed", "usage": usage}}),
            "stop",
        ),
        (
            json!({"type": "response.done", "response": {"usage": usage}}),
            "stop",
        ),
        (
            json!({"type": "response.incomplete", "response": cut_off}),
            "length",
        ),
    ];
    for (end, reason) in table {
        let text = stream(&end);
        let whole = run(&model, [text.as_bytes()]);
        let (message, failed) = last(&whole);
        assert!(!failed, "{message}");
        assert_eq!(message["stopReason"], reason, "{end}");
        assert_eq!(message["content"][0]["text"], "Hello ü");
        assert_eq!(
            (&message["usage"]["input"], &message["usage"]["cacheRead"]),
            (&json!(6), &json!(4))
        );
        // However the bytes are cut.
        let bytewise = run(&model, text.as_bytes().chunks(1));
        assert_eq!(last(&bytewise).0["content"], message["content"]);
        assert_eq!(joined(&bytewise), joined(&whole));
    }
    let failed = json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "boom"}}});
    let (message, is_error) = last(&run(&model, [stream(&failed).as_bytes()]));
    assert!(
        is_error && message["errorMessage"] == "server_error: boom",
        "{message}"
    );
    let text = stream(&failed);
    let (before, _) = text.split_at(text.find("event: response.failed").unwrap());
    let (message, is_error) = last(&run(&model, [before.as_bytes()]));
    assert!(
        is_error && message["content"][0]["text"] == "Hello ü",
        "{message}"
    );
}

#[test]
fn copilot_headers_are_sent_in_all_families() {
    for api in ["anthropic-messages", "openai-completions", "openai-responses"] {
        let mut request = request(with(api, json!({"provider": "github-copilot"})));
        request.api_key = Some(Secret::new("tid=1;exp=2"));
        let (http, _) = build(&request);
        let head = |http, name| header(http, name).unwrap_or_default();
        assert_eq!(head(&http, "authorization"), "Bearer tid=1;exp=2", "{api}");
        assert_eq!(header(&http, "x-api-key"), None, "{api}");
        assert_eq!(head(&http, "x-initiator"), "user", "{api}");
        assert_eq!(head(&http, "openai-intent"), "conversation-edits", "{api}");
        assert_eq!(header(&http, "copilot-vision-request"), None, "{api}");
        let more = json!([
            {"role": "assistant", "api": api, "provider": "github-copilot", "model": "m", "stopReason": "toolUse",
             "content": [{"type": "toolCall", "id": "c1", "name": "t", "arguments": {}}]},
            {"role": "toolResult", "toolCallId": "c1", "toolName": "t", "content": [{"type": "image", "data": "aa", "mimeType": "image/png"}]},
        ]);
        request
            .messages
            .extend(serde_json::from_value::<Vec<Arc<wire::Message>>>(more).unwrap());
        let (http, _) = build(&request);
        assert_eq!(head(&http, "x-initiator"), "agent", "{api}");
        assert_eq!(head(&http, "copilot-vision-request"), "true", "{api}");
    }
}
