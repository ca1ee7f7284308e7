//! What the recorded transcripts say about models: get-available-models, models-comments, cycle-model, no-model,
//! default-model-from-settings, thinking-*, unknown-provider-exit.

use serde_json::json;
use wire::ThinkingLevel::{self, High, Low, Medium, Off, Xhigh};

use crate::tests::{MOCKS, names, shop};
use crate::{StartRequest, cycle, scope, start};

fn request(model: &str) -> StartRequest {
    StartRequest {
        model: Some(model.to_owned()),
        ..StartRequest::default()
    }
}

#[test]
fn available_models_match_recording() {
    let shop = shop(MOCKS, "", &[]);
    let models = shop.registry.models();
    let wanted = json!({"id": "claude-mock", "name": "Claude Mock", "api": "anthropic-messages",
        "provider": "mock-anthropic", "baseUrl": "http://mock/anthropic", "reasoning": true, "input": ["text", "image"],
        "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}, "contextWindow": 200000,
        "maxTokens": 32000});
    assert_eq!(serde_json::to_string(models[0]).unwrap(), wanted.to_string());
    let order = [
        "mock-anthropic/claude-mock",
        "mock-anthropic/claude-plain",
        "mock-openai/gpt-mock",
        "mock-responses/resp-mock",
        "mock-google/gemini-mock",
    ];
    assert_eq!(names(&models), order);
    assert_eq!(
        (models[4].context_window, models[4].max_tokens),
        (1_000_000, 65_536)
    );
}

#[test]
fn models_json_with_comments_matches_recording() {
    let text = "// comment\n{ \"providers\": { \"c\": { \"baseUrl\": \"http://127.0.0.1:9/x\", \"api\": \
        \"anthropic-messages\", \"apiKey\": \"k\", \"models\": [ { \"id\": \"m\" }, ] } } }\n";
    let shop = shop(text, "", &[]);
    let wanted = json!({"id": "m", "name": "m", "api": "anthropic-messages", "provider": "c",
        "baseUrl": "http://127.0.0.1:9/x", "reasoning": false, "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 128000, "maxTokens": 16384});
    assert_eq!(
        serde_json::to_string(shop.registry.find("c", "m").unwrap()).unwrap(),
        wanted.to_string()
    );
}

/// An override that changes only the URL keeps the catalogue's data.
#[test]
fn built_in_anthropic_override_matches_recording() {
    let text = r#"{"providers": {"anthropic": {"baseUrl": "http://mock/anthropic"}}}"#;
    let shop = shop(text, "", &[("ANTHROPIC_API_KEY", "sk-ant-test")]);
    let wanted = json!({"id": "claude-sonnet-4-5", "name": "Claude Sonnet 4.5 (latest)", "api": "anthropic-messages",
        "provider": "anthropic", "baseUrl": "http://mock/anthropic", "reasoning": true, "input": ["text", "image"],
        "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}, "contextWindow": 200000,
        "maxTokens": 64000, "compat": {"supportsStrictTools": true}, "inputLimits": {"maxRequestBytes": 33_554_432, "images":
            {"maxPerRequest": 100, "resize": {"maxWidth": 2000, "maxHeight": 2000, "maxBytes": 4_718_592, "jpegQuality": 80}}},
        "promptCache": {"short": 300, "long": 3600}, "type": "chat"});
    let model = shop.registry.find("anthropic", "claude-sonnet-4-5").unwrap();
    assert_eq!(serde_json::to_string(model).unwrap(), wanted.to_string());
}

#[test]
fn model_cycling_matches_recording() {
    let shop = shop(MOCKS, "", &[]);
    let mut model = start(&shop.registry, &request("mock-anthropic/claude-mock"))
        .unwrap()
        .model;
    let mut seen = Vec::new();
    for _ in 0..5 {
        let next = cycle(&shop.registry, &[], &model, false).unwrap();
        assert!(!next.is_scoped && next.level.is_none());
        seen.push((next.model.id.clone(), next.model.clamp_thinking(Medium)));
        model = next.model;
    }
    let wanted = [
        ("claude-plain", Off),
        ("gpt-mock", Medium),
        ("resp-mock", Medium),
        ("gemini-mock", Medium),
        ("claude-mock", Medium),
    ];
    assert_eq!(seen, wanted.map(|(id, level)| (id.to_owned(), level)));
}

#[test]
fn scoped_model_cycling_matches_recording() {
    let shop = shop(MOCKS, "", &[]);
    let patterns = ["mock-anthropic/claude-mock".to_owned()];
    let (one, warnings) = scope(&shop.registry, &patterns, false);
    assert!(warnings.is_empty());
    assert_eq!(cycle(&shop.registry, &one, &one[0].model, true), None);
    let other = shop.registry.find("mock-openai", "gpt-mock").unwrap();
    assert_eq!(cycle(&shop.registry, &one, other, false), None);
    let only = cycle(&shop.registry, &one, other, true).unwrap();
    assert_eq!((only.model.id.as_str(), only.is_scoped), ("claude-mock", true));
    let patterns = ["claude-mock".to_owned(), "mock-*/resp*:xhigh".to_owned()];
    let (two, _) = scope(&shop.registry, &patterns, false);
    let next = cycle(&shop.registry, &two, &two[0].model, false).unwrap();
    assert_eq!(
        (next.model.id.as_str(), next.level, next.is_scoped),
        ("resp-mock", Some(Xhigh), true)
    );
}

/// Where pi has a placeholder whose prompts fail, there is the offline model.
#[test]
fn missing_models_fall_back_to_offline() {
    let shop = shop(r#"{"providers": {}}"#, "", &[]);
    let started = start(&shop.registry, &StartRequest::default()).unwrap();
    assert_eq!(
        (started.model.provider.as_str(), started.model.id.as_str()),
        ("offline", "echo")
    );
    assert_eq!(started.thinking, Off);
    assert_eq!(names(&shop.registry.models()), ["offline/echo"]);
    assert_eq!(cycle(&shop.registry, &[], &started.model, true), None);
    assert_eq!(shop.registry.catalogue().read_count(), 0);
    let script = start(&shop.registry, &request("offline/script")).unwrap();
    assert_eq!((script.model.id.as_str(), script.warnings.len()), ("script", 0));
}

#[test]
fn default_model_comes_from_settings() {
    let shop = shop(MOCKS, "", &[]);
    let settings = StartRequest {
        default_provider: Some("mock-google".into()),
        default_model: Some("gemini-mock".into()),
        default_thinking: Some(Low),
        ..StartRequest::default()
    };
    let started = start(&shop.registry, &settings).unwrap();
    assert_eq!(
        (started.model.id.as_str(), started.thinking),
        ("gemini-mock", Low)
    );
}

#[test]
fn start_thinking_level_matches_recording() {
    let shop = shop(MOCKS, "", &[]);
    let table: [(&str, Option<ThinkingLevel>, Option<ThinkingLevel>, ThinkingLevel); 7] = [
        ("mock-anthropic/claude-mock", None, None, Medium),
        ("mock-anthropic/claude-mock", Some(High), None, High),
        ("mock-anthropic/claude-mock:low", None, Some(High), Low),
        ("mock-anthropic/claude-mock:low", Some(High), None, High),
        ("mock-anthropic/claude-mock:xhigh", None, None, High),
        ("mock-responses/resp-mock:xhigh", None, None, Xhigh),
        ("mock-anthropic/claude-plain:high", None, None, Off),
    ];
    for (model, thinking, session_thinking, wanted) in table {
        let request = StartRequest {
            thinking,
            session_thinking,
            ..request(model)
        };
        assert_eq!(
            start(&shop.registry, &request).unwrap().thinking,
            wanted,
            "{model}"
        );
    }
}

#[test]
fn unknown_provider_error_matches_recording() {
    let shop = shop(MOCKS, "", &[]);
    let request = StartRequest {
        provider: Some("nobody".into()),
        ..request("x")
    };
    let error = start(&shop.registry, &request).unwrap_err().to_string();
    assert_eq!(
        error,
        "Unknown provider \"nobody\". Use --list-models to see available providers/models."
    );
}
