//! Requests to Bedrock, Vertex and Azure as the real agent sent them, and what the recordings do not cover.

use std::collections::HashMap;
use std::sync::Arc;

use auth::{Environment, Secret};
use serde_json::{Value, json};
use wire::ThinkingLevel;

use super::requests::{build, header, with};
use super::{fixture, request};
use crate::LlmError;
use crate::family::Family;
use crate::request::{CacheRetention, ModelRequest};

/// An environment of these variables; `run` answers commands with what `echo` would.
pub(super) fn environment<const N: usize>(variables: [(&str, &str); N]) -> Environment {
    from_map(variables.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())))
}

pub(super) fn from_map(variables: impl IntoIterator<Item = (String, String)>) -> Environment {
    let map: HashMap<String, String> = variables.into_iter().collect();
    Environment::new(
        move |name| map.get(name).cloned(),
        |_| None,
        |command| command.strip_prefix("echo ").map(str::to_owned),
    )
}

fn recorded(case: &Value, tools: &Value) -> ModelRequest {
    let mut request = ModelRequest::new(serde_json::from_value(case["model"].clone()).unwrap(), 0);
    request.system_prompt = case["system"].as_str().unwrap().to_owned();
    request.messages = serde_json::from_value::<Vec<Arc<wire::Message>>>(case["messages"].clone()).unwrap();
    request.thinking = ThinkingLevel::parse(case["thinking"].as_str().unwrap()).unwrap();
    request.session_id = case["session"].as_str().map(str::to_owned);
    if case["tools"] == true {
        request.tools = serde_json::from_value(tools.clone()).unwrap();
    }
    request.cache_retention = match case["cache"].as_str() {
        Some("long") => CacheRetention::Long,
        Some("none") => CacheRetention::None,
        _ => CacheRetention::Short,
    };
    let env = case["env"].as_object().unwrap();
    request.environment = from_map(
        env.iter()
            .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())),
    );
    request.api_key = Some(Secret::new(case["key"].as_str().unwrap_or(Secret::AMBIENT)));
    request
}

#[test]
fn cloud_requests_match_recording() {
    let file = fixture("cloud_requests.json");
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let (http, mut body) = build(&recorded(case, &file["tools"]));
        assert_eq!(http.url.strip_prefix("${mock}").unwrap(), case["path"], "{name}");
        for (key, value) in case["headers"].as_object().unwrap() {
            // Signatures are made when the request is sent.
            if !value.as_str().unwrap().starts_with("AWS4") {
                assert_eq!(header(&http, key).as_deref(), value.as_str(), "{name}: {key}");
            }
        }
        if name == "vertex-history" {
            // Newer models refuse unsigned calls, which the recorded agent did not know.
            let call = &mut body["contents"][1]["parts"][2];
            let mark = call.as_object_mut().unwrap().remove("thoughtSignature");
            assert_eq!(mark.unwrap(), "skip_thought_signature_validator");
            // Nor did it know that they see the ids of calls.
            for place in [
                "/contents/1/parts/2/functionCall",
                "/contents/1/parts/3/functionCall",
                "/contents/2/parts/0/functionResponse",
                "/contents/2/parts/1/functionResponse",
            ] {
                let part = body.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
                assert!(part.remove("id").is_some(), "{name}: {place}");
            }
        }
        if name.starts_with("azure-") {
            // The recorded agent let Azure keep the conversations.
            assert_eq!(body.as_object_mut().unwrap().remove("store"), Some(json!(false)));
        }
        assert_eq!(body, case["body"], "{name}");
    }
}

#[test]
fn bedrock_region_comes_from_arn_url_or_environment() {
    const EU: &str = "https://bedrock-runtime.eu-central-1.amazonaws.com";
    const ARN: &str = "arn:aws:bedrock:ap-south-1:1:inference-profile/x";
    let region = ("AWS_REGION", "us-west-2");
    let url = |id: &str, base: &str, variables: &[(&str, &str)]| {
        let mut request = request(with(
            "bedrock-converse-stream",
            json!({"id": id, "baseUrl": base}),
        ));
        let owned = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        request.environment = from_map(owned);
        let (http, _) = build(&request);
        http.url.split("/model/").next().unwrap().to_owned()
    };
    let standard = |region: &str| format!("https://bedrock-runtime.{region}.amazonaws.com");
    assert_eq!(url("m", EU, &[]), EU);
    assert_eq!(url("m", EU, &[region]), standard("us-west-2"));
    assert_eq!(
        url("m", EU, &[("AWS_DEFAULT_REGION", "eu-west-3")]),
        standard("eu-west-3")
    );
    assert_eq!(
        url("m", EU, &[("AWS_REGION", "cn-north-1")]),
        "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"
    );
    assert_eq!(url(ARN, EU, &[region]), standard("ap-south-1"));
    assert_eq!(url("m", "", &[]), standard("us-east-1"));
    assert_eq!(
        url("m", "https://gateway.example/b/", &[region]),
        "https://gateway.example/b"
    );
    assert_eq!(
        url(
            "m",
            EU,
            &[("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://x"), region]
        ),
        "http://x"
    );
}

#[test]
fn bedrock_keeps_own_headers_and_adds_custom() {
    let mut request = request(with("bedrock-converse-stream", json!({})));
    request.api_key = Some(Secret::new("token-of-bedrock"));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    request.headers = vec![
        pair("Authorization", "Bearer other"),
        pair("X-Amz-Date", "never"),
        pair("x-team", "a"),
    ];
    let (http, _) = build(&request);
    assert_eq!(header(&http, "authorization").unwrap(), "Bearer token-of-bedrock");
    assert_eq!(header(&http, "x-team").unwrap(), "a");
    assert_eq!(header(&http, "x-amz-date"), None);
    request.environment = environment([("AWS_BEDROCK_SKIP_AUTH", "1")]);
    assert_eq!(header(&build(&request).0, "authorization"), None, "signed later");
}

#[test]
fn bedrock_skips_blank_text_and_foreign_images() {
    let mut request = request(with("bedrock-converse-stream", json!({"id": "amazon.nova"})));
    let image = |kind: &str| json!({"type": "image", "data": "aa", "mimeType": kind});
    let hidden = json!({"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "c2Vj", "redacted": true});
    let call = json!({"type": "toolCall", "id": "t", "name": "read", "arguments": {}});
    let blank = json!({"type": "text", "text": " \n"});
    let answer = |content: Value| {
        json!({"role": "assistant", "content": content, "stopReason": "toolUse",
        "api": "bedrock-converse-stream", "provider": "p", "model": "amazon.nova"})
    };
    request.messages = serde_json::from_value(json!([
        {"role": "user", "content": " "},
        answer(json!([blank, hidden, call])),
        {"role": "toolResult", "toolCallId": "t", "toolName": "read", "content": [blank]},
        answer(json!([blank])),
        {"role": "user", "content": [image("image/jpg"), image("image/bmp"), blank]},
    ]))
    .unwrap();
    let (_, body) = build(&request);
    let expected = json!([
        {"role": "user", "content": [{"text": "<empty>"}]},
        {"role": "assistant", "content": [
            {"reasoningContent": {"redactedContent": "c2Vj"}},
            {"toolUse": {"toolUseId": "t", "name": "read", "input": {}}},
        ]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "<empty>"}], "status": "success"}}]},
        {"role": "user", "content": [
            {"image": {"source": {"bytes": "aa"}, "format": "jpeg"}},
            {"text": "(image omitted: the provider does not take this kind)"},
        ]},
    ]);
    assert_eq!(body["messages"], expected);
}

fn vertex(base: &str, id: &str, key: &str, variables: &[(&str, &str)]) -> Result<String, LlmError> {
    let mut request = request(with("google-vertex", json!({"id": id, "baseUrl": base})));
    request.api_key = Some(Secret::new(key));
    let owned = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    request.environment = from_map(owned);
    Family::of("google-vertex")
        .unwrap()
        .request(&request)
        .map(|http| http.url)
}

#[test]
fn vertex_host_follows_location() {
    const BASE: &str = "https://{location}-aiplatform.googleapis.com";
    const END: &str = ":streamGenerateContent?alt=sse";
    let at = |location: &str| {
        let place = [("GCLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", location)];
        vertex(BASE, "gemini-x", Secret::AMBIENT, &place).unwrap()
    };
    for (location, host) in [
        ("us-central1", "us-central1-aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ] {
        let path = format!("v1/projects/p/locations/{location}/publishers/google/models/gemini-x");
        assert_eq!(at(location), format!("https://{host}/{path}{END}"));
    }
    let url = |base: &str, id: &str| vertex(base, id, "key-of-google", &[]).unwrap();
    assert_eq!(
        url(BASE, "gemini-x"),
        format!("https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-x{END}")
    );
    assert_eq!(
        url("https://gw.example/v1beta1/", "meta/llama"),
        format!("https://gw.example/v1beta1/publishers/meta/models/llama{END}")
    );
    assert_eq!(
        url("https://gw.example/vertex", "models/x"),
        format!("https://gw.example/vertex/v1/models/x{END}")
    );
    let missing = |variables: &[(&str, &str)]| vertex(BASE, "m", "<authenticated>", variables).unwrap_err();
    assert_eq!(
        missing(&[]).to_string(),
        "GOOGLE_CLOUD_PROJECT or GCLOUD_PROJECT is required for provider p but is not set."
    );
    assert_eq!(
        missing(&[("GOOGLE_CLOUD_PROJECT", "p")]).to_string(),
        "GOOGLE_CLOUD_LOCATION is required for provider p but is not set."
    );
}

#[test]
fn azure_address_prefers_environment_variables() {
    let url = |base: &str, variables: &[(&str, &str)]| {
        let mut request = request(with("azure-openai-responses", json!({"baseUrl": base})));
        let owned = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        request.environment = from_map(owned);
        build(&request).0.url
    };
    let resource = ("AZURE_OPENAI_RESOURCE_NAME", "mine");
    assert_eq!(
        url("https://x.example", &[resource]),
        "https://mine.openai.azure.com/openai/v1/responses?api-version=v1"
    );
    let base = ("AZURE_OPENAI_BASE_URL", "https://gw.example/azure/?x=1");
    assert_eq!(
        url("", &[resource, base, ("AZURE_OPENAI_API_VERSION", "2026-01-01")]),
        "https://gw.example/azure/responses?api-version=2026-01-01"
    );
    assert_eq!(
        url("https://m.cognitiveservices.azure.com:443/", &[]),
        "https://m.cognitiveservices.azure.com:443/openai/v1/responses?api-version=v1"
    );
}

#[test]
fn bedrock_reasoning_fields_follow_model() {
    let fields = |id: &str, level: ThinkingLevel| {
        let mut request = request(with("bedrock-converse-stream", json!({"id": id})));
        request.thinking = level;
        build(&request).1["additionalModelRequestFields"].clone()
    };
    let claude = fields("us.anthropic.claude-opus-4-7-v1", ThinkingLevel::High);
    assert_eq!(
        claude["thinking"]["block_binding"]["prefix_mismatch_behavior"],
        "drop_block"
    );
    assert_eq!(
        claude["anthropic_beta"],
        json!(["thinking-binding-controls-2026-08-01"])
    );
    let older = fields("us.anthropic.claude-opus-4-6-v1", ThinkingLevel::High);
    assert_eq!(older["thinking"].get("block_binding"), None);
    for (id, level, expected) in [
        (
            "openai.gpt-oss-120b-1:0",
            ThinkingLevel::Minimal,
            json!({"reasoning_effort": "low"}),
        ),
        (
            "openai.gpt-oss-120b-1:0",
            ThinkingLevel::High,
            json!({"reasoning_effort": "high"}),
        ),
        (
            "us.openai.gpt-6-luna",
            ThinkingLevel::Minimal,
            json!({"reasoning": {"effort": "low"}}),
        ),
        (
            "us.openai.gpt-6-luna",
            ThinkingLevel::Medium,
            json!({"reasoning": {"effort": "medium"}}),
        ),
        ("us.openai.gpt-6-luna", ThinkingLevel::Off, Value::Null),
        ("amazon.nova-pro-v1:0", ThinkingLevel::High, Value::Null),
    ] {
        assert_eq!(fields(id, level), expected, "{id} {level}");
    }
}
