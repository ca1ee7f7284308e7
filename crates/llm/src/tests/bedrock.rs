//! Streams of Bedrock: recorded ones, cut and split at every byte, damaged ones, and what the recordings do not cover.

use serde_json::{Value, json};
use wire::Model;

use super::{fixture, joined, last, push_joined, request};
use crate::answer::Fault;
use crate::bedrock;
use crate::event::ModelEvent;
use crate::family::{Family, Flow};
use crate::framing::Framing;
use crate::ids::CallNumbers;
use crate::limits::MAX_EVENT_BYTES;

const API: &str = "bedrock-converse-stream";

fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn bytes(case: &Value) -> Vec<u8> {
    let frames = case["hex"].as_array().unwrap();
    frames
        .iter()
        .flat_map(|hex| from_hex(hex.as_str().unwrap()))
        .collect()
}

/// A frame with text headers.
pub(super) fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        head.extend_from_slice(value.as_bytes());
    }
    raw_frame(&head, payload.as_bytes())
}

fn raw_frame(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = u32::try_from(16 + head.len() + payload.len()).unwrap();
    let mut out = total.to_be_bytes().to_vec();
    out.extend_from_slice(&u32::try_from(head.len()).unwrap().to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(head);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

pub(super) fn event(kind: &str, payload: &Value) -> Vec<u8> {
    frame(
        &[(":event-type", kind), (":message-type", "event")],
        &payload.to_string(),
    )
}

fn run<'a>(model: &Model, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ModelEvent> {
    let family = Family::of(API).unwrap();
    let mut parser = family.parser(&request(model.clone()), &CallNumbers::default());
    let mut framing = family.framing();
    let mut out = Vec::new();
    let feed = || -> Result<(), Fault> {
        for piece in pieces {
            framing.push(piece);
            while let Some(event) = framing.next()? {
                if parser.event(event.name, event.data, &mut out)? == Flow::Done {
                    return Ok(());
                }
            }
        }
        parser.end(&mut out)
    };
    match feed() {
        Ok(()) => parser.answer().done(&mut out),
        Err(fault) => parser.answer().failed(wire::StopReason::Error, fault, &mut out),
    }
    out
}

fn play(frames: &[Vec<u8>]) -> Vec<ModelEvent> {
    run(&super::model(API), [frames.concat().as_slice()])
}

/// Events as pi recorded them, in our terms.
fn expected(case: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    for event in case["events"].as_array().unwrap() {
        let mut event = event.clone();
        if event["type"] == "toolcall_start" {
            let index = usize::try_from(event["contentIndex"].as_u64().unwrap()).unwrap();
            let call = &case["message"]["content"][index];
            event["id"] = call["id"].clone();
            event["toolName"] = call["name"].clone();
        }
        push_joined(event, &mut out);
    }
    out
}

#[test]
fn bedrock_streams_match_recorded_events_and_messages() {
    let file = fixture("bedrock_streams.json");
    let model: Model = serde_json::from_value(file["model"].clone()).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let events = run(&model, [bytes(case).as_slice()]);
        assert_eq!(joined(&events), expected(case), "{name}");
        let (mut message, _) = last(&events);
        let mut wanted = case["message"].clone();
        if name == "guardrail" {
            wanted["errorMessage"] = json!("Provider stopped with: guardrail_intervened");
        }
        message["role"] = json!("assistant");
        super::drop_newer(&mut message);
        for message in [&mut message, &mut wanted] {
            for cost in message["usage"]["cost"].as_object_mut().unwrap().values_mut() {
                *cost = json!(format!("{:.12}", cost.as_f64().unwrap()));
            }
        }
        assert_eq!(message, wanted, "{name}");
    }
}

#[test]
fn bedrock_stream_splits_give_same_events() {
    let file = fixture("bedrock_streams.json");
    let model: Model = serde_json::from_value(file["model"].clone()).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let bytes = bytes(case);
        let whole = run(&model, [bytes.as_slice()]);
        assert_eq!(run(&model, bytes.chunks(1)), whole);
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(run(&model, [a, b]), whole, "split at {at}");
        }
    }
}

#[test]
fn bedrock_stream_cut_anywhere_gives_retryable_error() {
    let file = fixture("bedrock_streams.json");
    let model: Model = serde_json::from_value(file["model"].clone()).unwrap();
    let case = &file["cases"][1];
    let bytes = bytes(case);
    let usage = from_hex(case["hex"].as_array().unwrap().last().unwrap().as_str().unwrap());
    for at in 0..bytes.len() {
        let events = run(&model, [&bytes[..at]]);
        assert_eq!(events.iter().filter(|event| event.is_last()).count(), 1);
        let (message, failed) = last(&events);
        // Only the usage may be missing.
        assert_eq!(failed, at < bytes.len() - usage.len(), "cut at {at}");
        if failed {
            assert!(crate::is_retryable(message["errorMessage"].as_str().unwrap()));
        }
    }
}

#[test]
fn bedrock_checksum_detects_any_changed_byte() {
    let model = super::model(API);
    let text = |text: &str| {
        event(
            "contentBlockDelta",
            &json!({"contentBlockIndex": 0, "delta": {"text": text}}),
        )
    };
    let good = [text("one"), text("two")].concat();
    let first = text("one").len();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        let events = run(&model, [bad.as_slice()]);
        let (message, failed) = last(&events);
        let error = message["errorMessage"].as_str().unwrap();
        assert!(
            failed && error.starts_with("terminated: damaged event stream"),
            "{at}: {error}"
        );
        assert!(crate::is_retryable(error));
        assert_eq!(
            message["content"].as_array().unwrap().len(),
            usize::from(at >= first)
        );
    }
}

#[test]
fn bedrock_frames_are_bounded_and_headers_parsed() {
    let mut prelude = u32::try_from(MAX_EVENT_BYTES + 1).unwrap().to_be_bytes().to_vec();
    prelude.extend_from_slice(&0_u32.to_be_bytes());
    prelude.extend_from_slice(&crc32fast::hash(&prelude).to_be_bytes());
    let (message, _) = last(&play(&[prelude]));
    assert!(message["errorMessage"].as_str().unwrap().contains("larger than"));
    for (total, headers) in [(15_u32, 0_u32), (0, 0), (20, 5), (16, u32::MAX)] {
        let mut prelude = total.to_be_bytes().to_vec();
        prelude.extend_from_slice(&headers.to_be_bytes());
        prelude.extend_from_slice(&crc32fast::hash(&prelude).to_be_bytes());
        let (message, _) = last(&play(&[prelude, vec![0; 64]]));
        assert!(message["errorMessage"].as_str().unwrap().contains("lengths"));
    }
    let mut head = Vec::new();
    for (kind, len) in [(0_u8, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)] {
        head.extend_from_slice(&[1, b'x', kind]);
        head.extend(std::iter::repeat_n(1, len));
    }
    head.extend_from_slice(b"\x01y\x06\x00\x02\xff\xff");
    head.extend_from_slice(b"\x0b:event-type\x07\x00\x0bmessageStop");
    let mut framing = Framing::aws();
    framing.push(&raw_frame(&head, b"{}"));
    assert_eq!(framing.next().unwrap().unwrap().name, "messageStop");
    let cut = raw_frame(&head[..head.len() - 1], b"");
    framing.push(&cut);
    assert!(framing.next().unwrap_err().text.contains("headers"));
}

#[test]
fn redacted_bedrock_reasoning_round_trips() {
    let delta = |reasoning: Value| {
        let delta = json!({"contentBlockIndex": 0, "delta": {"reasoningContent": reasoning}});
        event("contentBlockDelta", &delta)
    };
    // Two pieces, each encoded by itself: "secre" and "t!".
    let events = play(&[
        delta(json!({"redactedContent": "c2VjcmU="})),
        delta(json!({"redactedContent": "dCE="})),
        delta(json!({"text": "must not mix"})),
        event("contentBlockStop", &json!({"contentBlockIndex": 0})),
        event("messageStop", &json!({"stopReason": "end_turn"})),
    ]);
    let (message, failed) = last(&events);
    assert!(!failed, "{message}");
    assert_eq!(
        message["content"],
        json!([{"type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "c2VjcmV0IQ==", "redacted": true}])
    );
}

#[test]
fn unknown_bedrock_events_are_ignored_malformed_calls_retried() {
    let text = json!({"contentBlockIndex": 0, "delta": {"text": "Hi"}});
    let usage = json!({"usage": {"inputTokens": 5, "outputTokens": "odd", "cacheWriteInputTokens": 9,
        "cacheDetails": [{"ttl": "5m", "inputTokens": 2}, {"ttl": "1h", "inputTokens": 7}]}});
    let events = play(&[
        event("messageStart", &json!({"role": "assistant"})),
        event(
            "contentBlockStart",
            &json!({"contentBlockIndex": 7, "start": {"image": {}}}),
        ),
        event("contentBlockDelta", &text),
        event(
            "contentBlockDelta",
            &json!({"contentBlockIndex": 0, "delta": {"toolUse": {"input": "x"}}}),
        ),
        event(
            "contentBlockDelta",
            &json!({"contentBlockIndex": 3, "delta": {"citation": {}}}),
        ),
        event("contentBlockStop", &json!({"contentBlockIndex": 3})),
        event("somethingNew", &json!([1, 2])),
        event("messageStop", &json!({"stopReason": "end_turn"})),
        event("metadata", &usage),
    ]);
    let (message, failed) = last(&events);
    assert!(!failed, "{message}");
    assert_eq!(message["content"], json!([{"type": "text", "text": "Hi"}]));
    assert_eq!(message["usage"]["cacheWrite1h"], 7);
    let stop = event("messageStop", &json!({"stopReason": "malformed_tool_use"}));
    let (message, failed) = last(&play(&[stop]));
    assert!(failed && crate::is_retryable(message["errorMessage"].as_str().unwrap()));
}

#[test]
fn bedrock_answer_is_accepted_up_to_size_limit() {
    let model = super::model(API);
    let delta = |text: &str| {
        let delta = json!({"contentBlockIndex": 0, "delta": {"text": text}});
        event("contentBlockDelta", &delta)
    };
    let stop = event("messageStop", &json!({"stopReason": "end_turn"}));
    // Small frames in pieces that fit none of them, then one frame in many pieces.
    let small = delta(&"x".repeat(1000)).repeat(6000);
    let large = delta(&"y".repeat(6_000_000));
    let body = [small.as_slice(), &large, &stop].concat();
    let (message, failed) = last(&run(&model, body.chunks(7001)));
    assert!(!failed);
    assert_eq!(message["content"][0]["text"].as_str().unwrap().len(), 12_000_000);
    let body = [large.as_slice(), &large, &large, &stop].concat();
    let (message, failed) = last(&run(&model, body.chunks(65_536)));
    assert!(failed && message["errorMessage"].as_str().unwrap().contains("larger than"));
}

#[test]
fn bedrock_refusals_have_texts_of_pi() {
    for case in fixture("bedrock_streams.json")["refusals"].as_array().unwrap() {
        let text = |at: usize| case[at].as_str().unwrap();
        let status = u16::try_from(case[0].as_u64().unwrap()).unwrap();
        let given = bedrock::error_text(status, text(1), text(2));
        if text(3).starts_with("Unknown: ") {
            // What a gateway says is no exception; its status says more than that word.
            assert_eq!(given, text(3).replace("Unknown:", "403"));
        } else {
            assert_eq!(given, text(3));
        }
    }
    assert_eq!(bedrock::error_text(502, "", ""), "502 status code (no body)");
    assert_eq!(
        bedrock::error_text(502, "", "<title>Bad Gateway</title>"),
        "502 Bad Gateway"
    );
    assert!(crate::is_retryable(&bedrock::error_text(
        429,
        "ThrottlingException",
        "{\"message\":\"Rate exceeded\"}"
    )));
    let echo = "{\"message\":\"No match. The Canonical String for this request should have been 'x-amz-security-token:t'\"}";
    let text = bedrock::error_text(403, "InvalidSignatureException", echo);
    assert_eq!(text, "InvalidSignatureException: No match.");
}
