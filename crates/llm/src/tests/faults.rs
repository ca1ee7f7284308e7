//! Providers that send too much or nonsense: always one error, never a panic.

use serde_json::json;

use super::{last, model, run};
use crate::limits::{MAX_ANSWER_BYTES, MAX_BLOCKS};

const APIS: [&str; 5] = [
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "google-generative-ai",
    "mistral-conversations",
];

#[test]
fn garbage_ends_in_one_error() {
    let texts: [&[u8]; 6] = [
        b"",
        b"<html>hello</html>",
        b"data: {\n\n",
        b"data: \xff\xfe\n\n",
        b"event: error\n\n",
        b"data: [1,2]\n\ndata: 7\n\n",
    ];
    for api in APIS {
        for text in texts {
            let events = run(&model(api), [text]);
            assert!(last(&events).1, "{api} {text:?}");
            assert_eq!(events.iter().filter(|event| event.is_last()).count(), 1);
        }
    }
}

#[test]
fn aborts_have_the_words_of_the_family_and_keep_what_came() {
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
        let mut parser = Family::of(api).unwrap().parser(&super::request(model(api)));
        let mut out = Vec::new();
        parser.event("", &data.to_string(), &mut out).unwrap();
        let before = out.len();
        assert_eq!(parser.abort(&mut out), text);
        assert_eq!(out.len(), before, "{api}: no block ends");
        assert_eq!(parser.answer().message().content.len(), 1);
    }
}

#[test]
fn an_answer_may_not_grow_without_end() {
    let piece = "x".repeat(1 << 20);
    let mut text = String::new();
    for _ in 0..=MAX_ANSWER_BYTES >> 20 {
        text.push_str(&format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"content": piece}}]})
        ));
    }
    let (message, failed) = last(&run(&model("openai-completions"), [text.as_bytes()]));
    assert!(failed);
    assert!(message["errorMessage"].as_str().unwrap().contains("larger than"));
    assert!(message["content"][0]["text"].as_str().unwrap().len() <= MAX_ANSWER_BYTES);
}

#[test]
fn ten_thousand_calls_are_taken_and_more_are_refused() {
    for (count, fails) in [(10_000, false), (MAX_BLOCKS + 1, true)] {
        let mut text = String::new();
        for index in 0..count {
            let call = json!({"index": index, "id": format!("c{index}"), "function": {"name": "n", "arguments": "{}"}});
            text.push_str(&format!(
                "data: {}\n\n",
                json!({"choices": [{"delta": {"tool_calls": [call]}}]})
            ));
        }
        text.push_str("data: {\"choices\":[{\"finish_reason\":\"tool_calls\"}]}\n\n");
        let (message, failed) = last(&run(&model("openai-completions"), [text.as_bytes()]));
        assert_eq!(failed, fails);
        if !fails {
            assert_eq!(message["content"].as_array().unwrap().len(), count);
        }
    }
}

#[test]
fn error_bodies_become_short_texts() {
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
