//! The words of aborts and of HTTP errors, which differ from family to family. Faults that are the same for all are in
//! `families`.

use serde_json::json;

use super::model;
use crate::ids::CallNumbers;

#[test]
fn abort_text_follows_family_and_keeps_content() {
    use crate::family::Family;
    for (api, data, text) in [
        (
            "openai-responses",
            json!({"type": "response.output_item.added", "item": {"type": "message"}}),
            "Request was aborted",
        ),
        (
            "google-generative-ai",
            json!({"candidates": [{"content": {"parts": [{"text": "x"}]}}]}),
            "This operation was aborted",
        ),
        (
            "mistral-conversations",
            json!({"choices": [{"delta": {"content": "x"}}]}),
            "Request was aborted",
        ),
    ] {
        let mut parser = Family::of(api)
            .unwrap()
            .parser(&super::request(model(api)), &CallNumbers::default());
        let mut out = Vec::new();
        parser.event("", &data.to_string(), &mut out).unwrap();
        let before = out.len();
        assert_eq!(parser.abort(&mut out), text);
        assert_eq!(out.len(), before, "{api}: no block ends");
        assert_eq!(parser.answer().message().content.len(), 1);
    }
}

#[test]
fn error_bodies_are_shortened_to_text() {
    use crate::family::Family;
    let text = |family: Family, body: &str| family.error_text(502, body);
    for family in [
        Family::Anthropic,
        Family::OpenAiCompletions,
        Family::OpenAiResponses,
        Family::Google,
    ] {
        assert_eq!(text(family, ""), "502 status code (no body)");
        assert_eq!(
            text(family, "<html><title>Bad Gateway</title>"),
            "502 Bad Gateway"
        );
        assert_eq!(text(family, "plain words"), "502 plain words");
    }
    assert_eq!(
        text(Family::Anthropic, "{ \"error\": {\"message\": \"m\"} }"),
        "502 {\"error\":{\"message\":\"m\"}}"
    );
    assert_eq!(
        text(Family::OpenAiCompletions, "{\"error\": {\"message\": \"m\"}}"),
        "502 m"
    );
    assert_eq!(text(Family::OpenAiCompletions, "{\"error\": \"why\"}"), "502 why");
    assert_eq!(
        text(Family::OpenAiCompletions, "{\"detail\": \"why\"}"),
        "502 {\"detail\":\"why\"}"
    );
    assert_eq!(
        text(Family::Mistral, "{\"message\":\"m\"}"),
        "Mistral API error (502): {\"message\":\"m\"}"
    );
    let google = "{\"error\":{\"code\":502,\"message\":\"m\"}}";
    assert_eq!(text(Family::Google, &google.replace(':', ": ")), google);
    assert_eq!(text(Family::Google, &format!("[{google}]")), google);
    assert_eq!(
        text(Family::Google, "{\"id\": \"x5021\"}"),
        "502 {\"id\":\"x5021\"}"
    );
}

#[test]
fn error_objects_are_shown_whole_by_convention() {
    use crate::family::Family;
    let body = "{\"error\": {\"message\": \"m\", \"code\": \"1308\"}}";
    let object = "{\"message\":\"m\",\"code\":\"1308\"}";
    let text = |family: Family, model: (&str, &str), body: &str| family.error_object_text(model, 429, body);
    let chat = text(Family::OpenAiCompletions, ("openai-completions", "zai"), body).unwrap();
    assert_eq!(chat, format!("429: {object}"));
    assert!(!crate::is_retryable(&chat), "{chat}");
    for (api, provider, name) in [
        ("openai-responses", "openai", "OpenAI"),
        ("openai-responses", "mine", "mine"),
        ("azure-openai-responses", "azure", "Azure OpenAI"),
    ] {
        assert_eq!(
            text(Family::OpenAiResponses, (api, provider), body).unwrap(),
            format!("{name} API error (429): {object}")
        );
    }
    let bare = text(Family::OpenAiResponses, ("openai-responses", "mine"), "").unwrap();
    assert_eq!(bare, "mine API error (429): 429 status code (no body)");
    for (code, end) in [
        (
            "usage_limit_exceeded",
            "\nCheck your ChatGPT usage: https://chatgpt.com/settings/usage",
        ),
        (
            "workplace_individual_usage_limit_exceeded",
            " at admin.openai.com → Workspace → Usage limits.",
        ),
    ] {
        let body = format!("{{\"error\": {{\"code\": \"subscription_sharing_{code}\"}}}}");
        let used_up = text(Family::OpenAiResponses, ("openai-responses", "openai"), &body).unwrap();
        assert!(
            used_up.ends_with(end) && !crate::is_retryable(&used_up),
            "{used_up}"
        );
    }
    let raw = "{\"error\": {\"message\": \"m\", \"metadata\": {\"raw\": \"say \\\"no\\\"\"}}}";
    let routed = text(Family::OpenAiCompletions, ("openai-completions", "p"), raw).unwrap();
    assert!(routed.ends_with("\nsay \"no\""), "{routed}");
    for other in ["", "{\"detail\": 1}", "{\"error\": \"why\"}", "<html>"] {
        assert_eq!(
            text(Family::OpenAiCompletions, ("openai-completions", "p"), other),
            None
        );
    }
    assert_eq!(text(Family::Anthropic, ("anthropic-messages", "p"), body), None);
}
