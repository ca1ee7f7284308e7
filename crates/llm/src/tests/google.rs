//! What the recordings of the Gemini API do not cover.

use serde_json::{Value, json};

use super::requests::{build, with};
use super::{last, model, request, run};
use crate::event::ModelEvent;
use crate::family::Family;
use crate::ids::CallNumbers;

const API: &str = "google-generative-ai";

fn stream(chunks: &[Value]) -> Vec<ModelEvent> {
    let text: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\r\n\r\n"))
        .collect();
    run(&model(API), [text.as_bytes()])
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts}}]})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason}]})
}

#[test]
fn google_signatures_stay_with_their_blocks() {
    let events = stream(&[
        parts(
            json!([{"text": "Think", "thought": true}, {"text": "ing", "thought": true, "thoughtSignature": "dGg="}]),
        ),
        parts(json!([{"text": "An"}, {"text": "swer"}, {"text": "", "thoughtSignature": "dHh0"}])),
        parts(json!([{"functionCall": {"name": "t"}, "thoughtSignature": "Y2Fs"}, {"executableCode": {}}])),
        finish("STOP"),
    ]);
    let (message, failed) = last(&events);
    assert!(!failed, "{message}");
    let content = json!([
        {"type": "thinking", "thinking": "Thinking", "thinkingSignature": "dGg="},
        {"type": "text", "text": "Answer", "textSignature": "dHh0"},
        {"type": "toolCall", "id": "t_0_1", "name": "t", "arguments": {}, "thoughtSignature": "Y2Fs"},
    ]);
    assert_eq!(message["content"], content);
    assert_eq!(message["stopReason"], "toolUse");
}

#[test]
fn google_calls_have_unique_ids() {
    let call = |id: Value| json!({"functionCall": {"name": "t", "args": {"a": [1, 2.5]}, "id": id}});
    let events = stream(&[
        parts(json!([
            call(json!("x")),
            call(json!("x")),
            call(Value::Null),
            call(json!("y"))
        ])),
        finish("MAX_TOKENS"),
    ]);
    let (message, _) = last(&events);
    let ids: Vec<&str> = (0..4)
        .map(|at| message["content"][at]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["x", "t_0_1", "t_0_2", "y"]);
    assert_eq!(message["content"][1]["arguments"], json!({"a": [1, 2.5]}));
    assert_eq!(message["stopReason"], "toolUse");
}

#[test]
fn google_numbers_calls_without_id_through_all_answers() {
    let numbers = CallNumbers::default();
    let chunk = parts(json!([{"functionCall": {"name": "t"}}])).to_string();
    let ids = [(); 2].map(|()| {
        let mut parser = Family::Google.parser(&request(model(API)), &numbers);
        parser.event("", &chunk, &mut Vec::new()).unwrap();
        json!(parser.answer().message().content)[0]["id"].clone()
    });
    assert_eq!(ids, ["t_0_1", "t_0_2"]);
}

#[test]
fn google_safety_stops_are_final_malformed_calls_not() {
    for (reason, again) in [
        ("SAFETY", false),
        ("RECITATION", false),
        ("SOMETHING_NEW", false),
        ("MALFORMED_FUNCTION_CALL", true),
    ] {
        let events = stream(&[parts(json!([{"text": "x"}])), finish(reason)]);
        let (message, failed) = last(&events);
        let text = message["errorMessage"].as_str().unwrap();
        assert!(failed && text.contains(reason), "{text}");
        assert_eq!(crate::is_retryable(text), again, "{text}");
        assert_eq!(message["content"][0]["text"], "x");
    }
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}});
    let (message, failed) = last(&stream(&[blocked]));
    assert!(failed);
    assert_eq!(
        message["errorMessage"],
        "The provider blocked the prompt: PROHIBITED_CONTENT"
    );
    assert_eq!(message["usage"]["input"], 9);
}

#[test]
fn google_truncated_streams_and_errors_fail() {
    let (message, failed) = last(&stream(&[parts(json!([{"text": "half"}]))]));
    assert!(failed);
    assert_eq!(message["errorMessage"], "Stream ended without finish_reason");
    let error = json!({"error": {"code": 503, "message": "Too busy", "status": "UNAVAILABLE"}});
    let (message, _) = last(&stream(&[parts(json!([{"text": "half"}])), error.clone()]));
    assert_eq!(message["errorMessage"], error.to_string());
    assert!(crate::is_retryable(&error.to_string()));
}

fn contents(id: &str, messages: Value) -> Value {
    let mut request = request(with(API, json!({"id": id})));
    request.messages = serde_json::from_value(messages).unwrap();
    build(&request).1["contents"].clone()
}

/// Two calls by another model and their results, one with an image, one an error.
fn two_calls(by: &str) -> Value {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"p": 1}});
    let image = json!({"type": "image", "data": "aa", "mimeType": "image/png"});
    json!([
        {"role": "user", "content": [{"type": "text", "text": ""}, image]},
        {"role": "assistant", "content": [call("a|1"), call("b|2")], "api": API, "provider": "p", "model": by, "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": "a|1", "toolName": "read", "content": [image]},
        {"role": "toolResult", "toolCallId": "b|2", "toolName": "read", "content": [{"type": "text", "text": "gone"}], "isError": true},
        {"role": "user", "content": " and?"},
    ])
}

#[test]
fn old_gemini_gets_images_after_all_results() {
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "aa"}});
    let call = json!({"functionCall": {"args": {"p": 1}, "name": "read"}});
    assert_eq!(
        contents("gemini-2.5-pro", two_calls("other")),
        json!([
            {"parts": [picture], "role": "user"},
            {"parts": [call, call], "role": "model"},
            {"parts": [
                {"functionResponse": {"name": "read", "response": {"output": "(see attached image)"}}},
                {"functionResponse": {"name": "read", "response": {"error": "gone"}}},
            ], "role": "user"},
            {"parts": [{"text": "Tool result image:"}, picture], "role": "user"},
            {"parts": [{"text": " and?"}], "role": "user"},
        ])
    );
}

#[test]
fn gemini_3_gets_inline_images_and_signature_placeholder() {
    let given = contents("gemini-3-pro-preview", two_calls("other"));
    assert_eq!(given.as_array().unwrap().len(), 4);
    assert_eq!(
        given[2]["parts"][0]["functionResponse"]["parts"][0]["inlineData"]["data"],
        "aa"
    );
    assert_eq!(
        given[1]["parts"][0]["thoughtSignature"],
        "skip_thought_signature_validator"
    );
    assert!(given[1]["parts"][1].get("thoughtSignature").is_none());
}

#[test]
fn google_hosted_models_receive_call_ids() {
    let given = contents("claude-x", two_calls("other"));
    assert_eq!(given[1]["parts"][0]["functionCall"]["id"], "a_1");
    assert_eq!(given[2]["parts"][0]["functionResponse"]["id"], "a_1");
}

#[test]
fn google_sends_back_only_valid_signatures() {
    let messages = json!([{"role": "assistant", "api": API, "provider": "p", "model": "m", "stopReason": "stop", "content": [
        {"type": "thinking", "thinking": "t", "thinkingSignature": "no base64!"},
        {"type": "text", "text": "a", "textSignature": "YQ=="},
        {"type": "text", "text": " ", "textSignature": "YWE"},
        {"type": "text", "text": "", "textSignature": "YWFh"},
    ]}]);
    assert_eq!(
        contents("m", messages)[0]["parts"],
        json!([
            {"text": "t", "thought": true},
            {"text": "a", "thoughtSignature": "YQ=="},
            {"text": "", "thoughtSignature": "YWFh"},
        ])
    );
}

#[test]
fn google_tool_schemas_have_no_const() {
    let mut request = request(model(API));
    let schema = json!({
        "type": "object",
        "properties": {
            "const": {"const": "a"},
            "level": {"anyOf": [{"const": 1, "description": "one"}, {"const": null}, {"const": 2, "enum": [2, 3]}]},
            "like": {"type": "object", "default": {"const": "data"}},
        },
    });
    let tools = json!([{"name": "t", "description": "d", "parameters": schema}]);
    request.tools = serde_json::from_value(tools).unwrap();
    let (_, body) = build(&request);
    let sent = &body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["properties"];
    let expected = json!({
        "const": {"enum": ["a"]},
        "level": {"anyOf": [{"enum": [1], "description": "one"}, {"const": null}, {"const": 2, "enum": [2, 3]}]},
        "like": {"type": "object", "default": {"const": "data"}},
    });
    assert_eq!(sent, &expected);
}

#[test]
fn google_empty_text_is_omitted_if_wanted() {
    let chunks = [
        parts(json!([{"functionCall": {"name": "t"}}])),
        parts(json!([{"text": ""}])),
        finish("STOP"),
    ];
    let blocks = |omits_empty_text: bool| {
        let mut request = request(model(API));
        request.conventions.omits_empty_text = omits_empty_text;
        let family = Family::of(API).unwrap();
        let mut parser = family.parser(&request, &CallNumbers::default());
        let mut out = Vec::new();
        for chunk in &chunks {
            assert!(parser.event("", &chunk.to_string(), &mut out).is_ok());
        }
        assert!(parser.end(&mut out).is_ok());
        parser.answer().done(&mut out);
        last(&out).0["content"].as_array().unwrap().len()
    };
    assert_eq!((blocks(false), blocks(true)), (2, 1));
}
