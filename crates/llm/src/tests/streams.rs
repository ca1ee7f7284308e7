//! Recorded streams of the conformance kit: events and final messages as pi made them.

use std::collections::HashMap;

use serde_json::{Value, json};
use wire::Model;

use super::{fixture, joined, last, model, push_joined, run};
use crate::event::ModelEvent;

/// Events as pi recorded them, in our terms: deltas joined, a call's id and name with its start.
fn expected(recorded: &Value) -> Vec<Value> {
    let content = recorded["message"]["content"].as_array().unwrap();
    let mut out = Vec::new();
    for event in recorded["events"].as_array().unwrap() {
        let mut event = event.clone();
        if event["type"] == "toolcall_start" {
            let call = &content[usize::try_from(event["contentIndex"].as_u64().unwrap()).unwrap()];
            event["id"] = call["id"].clone();
            event["toolName"] = call["name"].clone();
        }
        push_joined(event, &mut out);
    }
    out
}

/// The recordings hold rounded costs.
fn round_cost(message: &mut Value) {
    for cost in message["usage"]["cost"].as_object_mut().unwrap().values_mut() {
        *cost = json!(format!("{:.12}", cost.as_f64().unwrap()));
    }
}

#[test]
fn recorded_streams_give_recorded_events_and_messages() {
    for recorded in fixture("streams.json").as_array().unwrap() {
        let name = recorded["name"].as_str().unwrap();
        let model: Model = serde_json::from_value(recorded["model"].clone()).unwrap();
        let events = run(&model, [recorded["sse"].as_str().unwrap().as_bytes()]);
        assert_eq!(joined(&events), expected(recorded), "{name}");
        let (mut message, failed) = last(&events);
        message["role"] = json!("assistant");
        super::drop_newer(&mut message);
        let mut recorded_message = recorded["message"].clone();
        round_cost(&mut message);
        round_cost(&mut recorded_message);
        assert_eq!(message, recorded_message, "{name}");
        assert_eq!(failed, recorded["message"]["stopReason"] == "error", "{name}");
    }
}

#[test]
fn stream_splits_give_same_events() {
    for recorded in short_recordings() {
        let model: Model = serde_json::from_value(recorded["model"].clone()).unwrap();
        let bytes = recorded["sse"].as_str().unwrap().as_bytes();
        let whole = run(&model, [bytes]);
        assert_eq!(run(&model, bytes.chunks(1)), whole);
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(run(&model, [a, b]), whole, "split at {at}");
        }
    }
}

#[test]
fn stream_cut_anywhere_ends_in_one_error() {
    for recorded in short_recordings() {
        let model: Model = serde_json::from_value(recorded["model"].clone()).unwrap();
        let sse = recorded["sse"].as_str().unwrap();
        let whole = serde_json::to_value(last(&run(&model, [sse.as_bytes()])).0).unwrap();
        for at in 0..sse.len() {
            let events = run(&model, [&sse.as_bytes()[..at]]);
            let ends = events.iter().filter(|event| event.is_last()).count();
            assert_eq!(ends, 1, "{} cut at {at}", recorded["name"]);
            let (message, failed) = last(&events);
            if failed {
                let text = message["errorMessage"].as_str().unwrap();
                assert!(crate::is_retryable(text), "{text}");
            } else {
                // Only what says nothing any more may be missing: usage and the last line ends.
                assert_eq!(
                    message["content"], whole["content"],
                    "{} cut at {at}",
                    recorded["name"]
                );
                assert_eq!(message["stopReason"], whole["stopReason"]);
            }
        }
    }
}

/// Recordings that are cut and split at every byte: the first few of each family.
fn short_recordings() -> Vec<Value> {
    let mut taken = HashMap::<String, usize>::new();
    let mut all = fixture("streams.json").as_array().unwrap().clone();
    all.retain(|recorded| {
        let count = taken.entry(recorded["model"]["api"].to_string()).or_default();
        *count += 1;
        *count <= 6
    });
    all
}

fn anthropic(frames: &[Value]) -> Vec<ModelEvent> {
    let text: String = frames
        .iter()
        .map(|frame| format!("event: {}\ndata: {frame}\n\n", frame["type"].as_str().unwrap()))
        .collect();
    run(&model("anthropic-messages"), [text.as_bytes()])
}

fn completions(chunks: &[Value]) -> Vec<ModelEvent> {
    let text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    run(&model("openai-completions"), [text.as_bytes()])
}

fn stop(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn redacted_thinking_keeps_its_payload() {
    let mut frames = vec![
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "xyz"}}),
    ];
    frames.push(json!({"type": "content_block_stop", "index": 0}));
    frames.extend(stop("end_turn"));
    let (message, _) = last(&anthropic(&frames));
    let block = json!({"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "xyz", "redacted": true});
    assert_eq!(message["content"], json!([block]));
}

#[test]
fn abnormal_stop_reasons_fail_with_their_texts() {
    for (reason, text) in [
        ("refusal", "The model refused to complete the request"),
        ("sensitive", "Provider stopped with: sensitive"),
        (
            "model_context_window_exceeded",
            "Unhandled stop reason: model_context_window_exceeded",
        ),
    ] {
        let (message, failed) = last(&anthropic(&stop(reason)));
        assert!(failed);
        assert_eq!(message["errorMessage"], text);
    }
    let events =
        completions(&[json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "content_filter"}]})]);
    assert_eq!(
        last(&events).0["errorMessage"],
        "Provider finish_reason: content_filter"
    );
}

#[test]
fn malformed_argument_json_is_repaired_or_refused() {
    let cut_off = "Unterminated string in JSON at position 11 (line 1 column 12)\n\nReceived arguments:\n{\"a\": \"half";
    // The last one is a call whose arguments were encoded twice.
    let [number, list, twice] = ["5", "[1]", "\"{}\""]
        .map(|args| format!("Tool arguments must be a JSON object\n\nReceived arguments:\n{args}"));
    for (args, expected, error) in [
        ("", json!({}), None),
        ("null", json!({}), None),
        ("[]", json!({}), None),
        ("5", json!({}), Some(number.as_str())),
        ("[1]", json!({}), Some(list.as_str())),
        ("\"{}\"", json!({}), Some(twice.as_str())),
        // Half a command may mean something else, so the call must not run.
        ("{\"a\": \"half", json!({}), Some(cut_off)),
        ("{\"a\": \"tab\there\"}", json!({"a": "tab\there"}), None),
    ] {
        let call = call_with(args);
        assert_eq!(call["arguments"], expected, "{args}");
        assert_eq!(call["argumentsError"].as_str(), error, "{args}");
    }
}

/// The call of an answer that ends after these arguments.
fn call_with(args: &str) -> Value {
    let mut frames = vec![
        json!({"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "t", "name": "n", "input": {}}}),
        json!({"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": args}}),
        json!({"type": "content_block_stop", "index": 3}),
    ];
    frames.extend(stop("tool_use"));
    let (message, failed) = last(&anthropic(&frames));
    assert!(!failed);
    assert_eq!(message["stopReason"], "toolUse");
    message["content"][0].clone()
}

#[test]
fn arguments_beyond_parser_limits_are_refused() {
    // Without its arguments, a call means something else.
    let nested = |depth| format!("{{\"a\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    for (args, problem) in [
        ("{\"r\": \"x\", \"n\": 1e999}".to_owned(), "number out of range"),
        (
            "{\"r\": \"tab\there\", \"n\": 1e999}".to_owned(),
            "number out of range",
        ),
        (nested(100), "recursion limit exceeded"),
        (nested(127), "recursion limit exceeded"),
        (nested(128), "recursion limit exceeded"),
        (nested(1000), "recursion limit exceeded"),
    ] {
        let call = call_with(&args);
        assert_eq!(call["arguments"], json!({}), "{args}");
        let error = call["argumentsError"].as_str().unwrap_or_default();
        assert!(error.starts_with(problem) && error.ends_with(&args), "{error}");
    }
    assert_eq!(call_with(&nested(99))["argumentsError"], Value::Null);
}

#[test]
fn nonstandard_chat_completions_servers_are_decoded() {
    let call = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
    let events = completions(&[
        json!({"id": "c1", "model": "other", "choices": [{"delta": {"content": null, "reasoning": "why"}}]}),
        call(json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": {"x": 1}}})),
        call(json!({"index": 0, "id": "b", "function": {"name": "two", "arguments": "{\"y\":"}})),
        call(json!({"index": 0, "function": {"arguments": "2}"}})),
        call(json!({"function": {"name": "three"}, "index": 5})),
        json!({"choices": [{"delta": {"reasoning_details": [{"type": "reasoning.encrypted", "id": "a", "data": "e"}]}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls", "usage": {"prompt_tokens": 10.0, "completion_tokens": 2,
               "prompt_cache_hit_tokens": 4}}]}),
    ]);
    let (message, failed) = last(&events);
    assert!(!failed, "{message}");
    assert_eq!(message["responseModel"], "other");
    assert_eq!(message["content"][0]["thinkingSignature"], "reasoning");
    assert_eq!(message["content"][1]["arguments"], json!({"x": 1}));
    assert!(
        message["content"][1]["thoughtSignature"]
            .as_str()
            .unwrap()
            .contains("\"e\"")
    );
    assert_eq!(message["content"][2]["arguments"], json!({"y": 2}));
    assert_eq!(message["content"][3]["name"], "three");
    assert!(!message["content"][3]["id"].as_str().unwrap().is_empty());
    assert_eq!(message["usage"]["input"], 6);
    assert_eq!(message["usage"]["cacheRead"], 4);
}

#[test]
fn stream_error_shows_provider_text() {
    let events =
        completions(&[json!({"error": {"message": "Too busy", "metadata": {"raw": "upstream says no"}}})]);
    assert_eq!(last(&events).0["errorMessage"], "Too busy\nupstream says no");
}

#[test]
fn stream_error_without_message_shows_code() {
    for message in [json!(""), json!(null)] {
        let error = json!({"message": message, "code": 503});
        let (message, _) = last(&completions(&[json!({"error": error})]));
        assert_eq!(message["errorMessage"], error.to_string());
        assert!(crate::is_retryable(&error.to_string()));
    }
    let (message, _) = last(&run(
        &model("anthropic-messages"),
        [b"event: error\ndata:\n\n".as_slice()],
    ));
    assert_eq!(message["errorMessage"], "An unknown error occurred");
}

#[test]
fn anthropic_cache_writes_for_an_hour_are_priced() {
    let written = json!({"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 800});
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 1000, "cache_creation": written});
    let mut frames = vec![json!({"type": "message_start", "message": {"id": "i", "usage": usage}})];
    frames.extend(stop("end_turn"));
    // Another form neither ends the answer nor changes the count.
    frames[1]["usage"] =
        json!({"output_tokens": 5, "cache_creation_input_tokens": 1000, "cache_creation": 7});
    let (message, failed) = last(&anthropic(&frames));
    assert!(!failed, "{message}");
    assert_eq!(message["usage"]["cacheWrite1h"], 800);
    // Tokens kept for an hour cost twice the input.
    let cost = message["usage"]["cost"]["cacheWrite"].as_f64().unwrap();
    assert_eq!(format!("{cost:.6}"), "0.005550");
}

#[test]
fn unknown_stream_events_are_ignored() {
    let text = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"i\",\"usage\":{\"input_tokens\":\"odd\"}}}\n\n\
                event: new_thing\ndata: {\"type\":\"new_thing\"}\n\n\
                data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n\
                data: {\"type\":\"content_block_delta\",\"index\":9,\"delta\":{\"type\":\"text_delta\",\"text\":\"lost\"}}\n\n\
                data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\t!\"}}\n\n\
                data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                data: {\"type\":\"message_stop\"}\n\n";
    let (message, failed) = last(&run(&model("anthropic-messages"), [text.as_bytes()]));
    assert!(!failed, "{message}");
    assert_eq!(message["content"][0]["text"], "Hi\t!");
    assert_eq!(message["responseId"], "i");
}

#[test]
fn anthropic_keep_alive_events_of_gateways_are_ignored() {
    let text = "event: keep-alive\ndata:\n\nevent: heartbeat\ndata: still here\n\ndata:\n\n\
                data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n\
                data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                data: {\"type\":\"message_stop\"}\n\n";
    let (message, failed) = last(&run(&model("anthropic-messages"), [text.as_bytes()]));
    assert!(!failed, "{message}");
    assert_eq!(message["content"][0]["text"], "Hi");
}

#[test]
fn refusals_say_what_the_model_explains() {
    let delta = json!({"stop_reason": "refusal", "stop_details": {"explanation": "Not that."}});
    let frames = [
        json!({"type": "message_delta", "delta": delta}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(last(&anthropic(&frames)).0["errorMessage"], "Not that.");
}

#[test]
fn answer_of_fallback_model_has_its_name_and_price() {
    let allowed = json!([{"provider": "p", "model": "smaller", "cost": {"input": 1, "output": 1}}]);
    let mut json = serde_json::to_value(model("anthropic-messages")).unwrap();
    json["compat"] = json!({"allowedFallbackModels": allowed});
    let model: Model = serde_json::from_value(json).unwrap();
    let answered = |by: &str, first: Value| {
        let usage = json!({"input_tokens": 1_000_000, "output_tokens": 0});
        let mut frames = vec![
            json!({"type": "message_start", "message": {"id": "i", "model": by, "usage": usage}}),
            json!({"type": "content_block_start", "index": 0, "content_block": first}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "fallback"}}),
        ];
        frames.extend(stop("end_turn"));
        let text: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
        last(&run(&model, [text.as_bytes()]))
    };
    let (message, failed) = answered("smaller", json!({"type": "fallback"}));
    assert!(!failed, "{message}");
    assert_eq!(message["responseModel"], "smaller");
    assert_eq!(message["usage"]["cost"]["input"], 1.0);
    // A name for the same model is no news for clients of pi 0.74.
    let (message, _) = answered("m-2026", json!({"type": "fallback"}));
    assert_eq!(message.get("responseModel"), None);
    assert_eq!(message["usage"]["cost"]["input"], 3.0);
    let (message, failed) = answered("smaller", json!({"type": "text", "text": "Half"}));
    assert!(
        failed && message["errorMessage"].as_str().unwrap().contains("fallback"),
        "{message}"
    );
}
