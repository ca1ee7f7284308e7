//! Requests as the real agent sent them (conformance kit), and what the recordings do not cover.

use std::sync::Arc;

use auth::Secret;
use serde_json::{Value, json};
use wire::{Model, ThinkingLevel};

use super::{fixture, model, request};
use crate::family::Family;
use crate::http::HttpRequest;
use crate::request::{CacheRetention, ModelRequest};

pub(super) fn build(request: &ModelRequest) -> (HttpRequest, Value) {
    let http = Family::of(&request.model.api).unwrap().request(request).unwrap();
    let body = serde_json::from_slice(&http.body).unwrap();
    (http, body)
}

pub(super) fn header(http: &HttpRequest, name: &str) -> Option<String> {
    http.headers
        .get(name)
        .map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn requests_match_recording() {
    let recorded = fixture("requests.json");
    for case in recorded["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut request = ModelRequest::new(serde_json::from_value(case["model"].clone()).unwrap(), 0);
        request.system_prompt = "SYSTEM".to_owned();
        request.messages =
            serde_json::from_value::<Vec<Arc<wire::Message>>>(case["messages"].clone()).unwrap();
        request.thinking = ThinkingLevel::parse(case["thinking"].as_str().unwrap()).unwrap();
        request.api_key = Some(Secret::new(case["key"].as_str().unwrap()));
        if case["tools"] == true {
            request.tools = serde_json::from_value(recorded["tools"].clone()).unwrap();
        }
        request.session_id = case["session"].as_str().map(str::to_owned);
        if case["long"] == true {
            request.cache_retention = CacheRetention::Long;
        }
        let (http, mut body) = build(&request);
        assert_eq!(http.url.strip_prefix("${mock}").unwrap(), case["path"], "{name}");
        for (key, value) in case["headers"].as_object().unwrap() {
            assert_eq!(header(&http, key).as_deref(), value.as_str(), "{name}: {key}");
        }
        assert_eq!(
            http.headers.len(),
            case["headers"].as_object().unwrap().len(),
            "{name}"
        );
        if case["body"].get("tools").is_none() {
            let tools = body.as_object_mut().unwrap().remove("tools");
            assert_eq!(tools.is_some(), case["tools"] == true, "{name}");
        }
        assert_eq!(body, case["body"], "{name}");
    }
}

pub(super) fn with(api: &str, fields: Value) -> Model {
    let mut model = serde_json::to_value(model(api)).unwrap();
    for (key, value) in fields.as_object().unwrap() {
        model[key] = value.clone();
    }
    serde_json::from_value(model).unwrap()
}

#[test]
fn reasoning_request_follows_server_format() {
    let body = |fields: Value, level: ThinkingLevel| {
        let mut request = request(with("openai-completions", fields));
        request.thinking = level;
        build(&request).1
    };
    let (on, off) = (ThinkingLevel::High, ThinkingLevel::Off);
    assert_eq!(body(json!({}), on)["reasoning_effort"], "high");
    assert_eq!(
        body(json!({"thinkingLevelMap": {"off": "none"}}), off)["reasoning_effort"],
        "none"
    );
    assert!(
        body(json!({"provider": "xai"}), on)
            .get("reasoning_effort")
            .is_none()
    );
    let router = json!({"provider": "openrouter", "baseUrl": "https://openrouter.ai/api/v1"});
    assert_eq!(body(router.clone(), on)["reasoning"], json!({"effort": "high"}));
    assert_eq!(body(router, off)["reasoning"], json!({"effort": "none"}));
    let deepseek = body(json!({"provider": "deepseek"}), on);
    assert_eq!(
        (&deepseek["thinking"], &deepseek["reasoning_effort"]),
        (&json!({"type": "enabled"}), &json!("high"))
    );
    let zai = json!({"provider": "zai"});
    assert_eq!(body(zai.clone(), off)["thinking"], json!({"type": "disabled"}));
    let thinks = body(zai, on);
    assert_eq!(
        (&thinks["thinking"], thinks.get("reasoning_effort")),
        (&json!({"type": "enabled", "clear_thinking": false}), None)
    );
    // A model that cannot leave it out is not told to: it would reason all the same, in the middle of the answer.
    let always = json!({"provider": "zai", "thinkingLevelMap": {"off": null}, "compat": {"supportsReasoningEffort": true}});
    assert_eq!(body(always.clone(), off)["thinking"]["type"], "enabled");
    assert_eq!(body(always, on)["reasoning_effort"], "high");
    assert_eq!(
        body(json!({"compat": {"thinkingFormat": "qwen"}}), off)["enable_thinking"],
        false
    );
    assert_eq!(
        body(json!({"provider": "together"}), on)["reasoning"],
        json!({"enabled": true})
    );
    let template = json!({"compat": {"thinkingFormat": "qwen-chat-template"}});
    assert_eq!(
        body(template, on)["chat_template_kwargs"],
        json!({"enable_thinking": true, "preserve_thinking": true})
    );
    assert!(
        body(json!({"reasoning": false}), on)
            .get("reasoning_effort")
            .is_none()
    );
}

#[test]
fn compat_flags_override_guesses() {
    let fields = json!({"compat": {"supportsStore": false, "supportsDeveloperRole": false, "maxTokensField": "max_tokens",
        "supportsUsageInStreaming": false, "supportsStrictMode": false, "sendSessionAffinityHeaders": true}});
    let mut request = request(with("openai-completions", fields));
    request.system_prompt = "S".to_owned();
    request.session_id = Some("sid".to_owned());
    request.tools =
        serde_json::from_value(json!([{"name": "t", "description": "d", "parameters": {"type": "object"}}]))
            .unwrap();
    let (http, body) = build(&request);
    assert!(body.get("store").is_none() && body.get("stream_options").is_none());
    assert_eq!(body["max_tokens"], 32000);
    assert_eq!(body["messages"][0]["role"], "system");
    assert!(body["tools"][0]["function"].get("strict").is_none());
    assert_eq!(header(&http, "x-session-affinity").as_deref(), Some("sid"));
    request.cache_retention = CacheRetention::None;
    assert_eq!(header(&build(&request).0, "x-session-affinity"), None);
}

#[test]
fn prompt_cache_key_is_sent_only_to_openai() {
    let mut request = request(with(
        "openai-completions",
        json!({"baseUrl": "https://api.openai.com/v1/"}),
    ));
    request.session_id = Some("sid".to_owned());
    let (http, body) = build(&request);
    assert_eq!(http.url, "https://api.openai.com/v1/chat/completions");
    assert_eq!(body["prompt_cache_key"], "sid");
    assert!(body.get("prompt_cache_retention").is_none());
    request.cache_retention = CacheRetention::Long;
    assert_eq!(build(&request).1["prompt_cache_retention"], "24h");
    request.model.base_url = "http://localhost".to_owned();
    request.cache_retention = CacheRetention::Short;
    assert!(build(&request).1.get("prompt_cache_key").is_none());
}

#[test]
fn caller_headers_take_precedence() {
    let mut request = request(model("anthropic-messages"));
    request.api_key = Some(Secret::new("first"));
    request.headers = vec![
        ("X-Api-Key".into(), "second".into()),
        ("x-own".into(), "1".into()),
    ];
    let (http, _) = build(&request);
    assert_eq!(header(&http, "x-api-key").as_deref(), Some("second"));
    assert_eq!(header(&http, "x-own").as_deref(), Some("1"));
    assert!(!format!("{http:?}").contains("second"));
    request.headers = vec![("bad header".into(), "hidden".into())];
    let error = Family::Anthropic.request(&request).unwrap_err().to_string();
    assert!(error.contains("bad header") && !error.contains("hidden"));
}

#[test]
fn subscription_token_is_sent_as_bearer_without_disguise() {
    let mut request = request(model("anthropic-messages"));
    request.system_prompt = "S".to_owned();
    request.api_key = Some(Secret::new("sk-ant-oat01-x"));
    let (http, body) = build(&request);
    assert_eq!(
        header(&http, "authorization").as_deref(),
        Some("Bearer sk-ant-oat01-x")
    );
    assert_eq!(header(&http, "x-api-key"), None);
    assert_eq!(
        header(&http, "anthropic-beta").as_deref(),
        Some("oauth-2025-04-20,interleaved-thinking-2025-05-14")
    );
    assert_eq!(body["system"].as_array().unwrap().len(), 1);
}

/// The token of `ANTHROPIC_AUTH_TOKEN` is among the caller's headers.
#[test]
fn token_in_headers_needs_no_key_header() {
    let mut request = request(model("anthropic-messages"));
    request.api_key = Some(Secret::new(Secret::AMBIENT));
    request.headers = vec![("Authorization".into(), "Bearer token".into())];
    let (http, _) = build(&request);
    assert_eq!(header(&http, "authorization").as_deref(), Some("Bearer token"));
    assert_eq!(header(&http, "x-api-key"), None);
}

#[test]
fn anthropic_thinking_budget_fits_max_tokens() {
    let body = |max: u64, asked: Option<u64>| {
        let mut request = request(with("anthropic-messages", json!({"maxTokens": max})));
        request.thinking = ThinkingLevel::Medium;
        request.output.asked = asked;
        let body = build(&request).1;
        (body["max_tokens"].as_u64().unwrap(), body["thinking"].clone())
    };
    let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget, "display": "summarized"});
    assert_eq!(body(32000, None), (32000, enabled(8192)));
    assert_eq!(body(32000, Some(4000)), (12192, enabled(8192)));
    assert_eq!(body(8192, None), (8192, enabled(7168)));
    assert_eq!(body(1500, None), (1500, json!({"type": "disabled"})));
}

#[test]
fn router_requests_carry_cache_markers_for_claude() {
    let fields = json!({"provider": "openrouter", "baseUrl": "https://openrouter.ai/api/v1", "id": "anthropic/claude-x"});
    let mut request = request(with("openai-completions", fields));
    request.system_prompt = "S".to_owned();
    request.tools =
        serde_json::from_value(json!([{"name": "t", "description": "d", "parameters": {"type": "object"}}]))
            .unwrap();
    let body = build(&request).1;
    let marker = json!({"type": "ephemeral"});
    assert_eq!(body["messages"][0]["content"][0]["cache_control"], marker);
    assert_eq!(body["messages"][1]["content"][0]["cache_control"], marker);
    assert_eq!(body["tools"][0]["cache_control"], marker);
}

#[test]
fn copilot_initiator_header_follows_last_message() {
    let mut request = request(with("openai-completions", json!({"provider": "github-copilot"})));
    assert_eq!(header(&build(&request).0, "x-initiator").as_deref(), Some("user"));
    let result = json!({"role": "toolResult", "toolCallId": "c", "content": [{"type": "image", "data": "aa", "mimeType": "image/png"}]});
    request.messages.push(serde_json::from_value(result).unwrap());
    let (http, _) = build(&request);
    assert_eq!(header(&http, "x-initiator").as_deref(), Some("agent"));
    assert_eq!(header(&http, "copilot-vision-request").as_deref(), Some("true"));
}

#[test]
fn tool_result_images_follow_in_user_message() {
    let mut request = request(model("openai-completions"));
    let messages = json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}],
         "api": "openai-completions", "provider": "p", "model": "m", "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": [{"type": "image", "data": "aa", "mimeType": "image/png"}]},
    ]);
    request.messages = serde_json::from_value(messages).unwrap();
    let body = build(&request).1;
    assert_eq!(
        body["messages"][2],
        json!({"role": "tool", "content": "(see attached image)", "tool_call_id": "c1"})
    );
    assert_eq!(
        body["messages"][3]["content"][0]["text"],
        "Attached image(s) from tool result:"
    );
    assert_eq!(
        body["messages"][3]["content"][1]["image_url"]["url"],
        "data:image/png;base64,aa"
    );
}
