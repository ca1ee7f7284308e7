//! Tests of the API families: recorded requests and streams of the conformance kit, faults in process, faults over TCP; what
//! every family must do alike is in `families`.

mod bedrock;
mod cloud;
mod codex;
mod compat;
mod credentials;
mod encoded_history;
mod families;
mod faults;
mod google;
mod handover;
mod instructions;
mod judge;
mod lent;
mod logins;
mod mistral;
mod offline;
mod requests;
mod responses;
mod router;
mod server;
mod sse;
mod streams;
mod transform;

use std::sync::Arc;

use serde_json::{Value, json};
use wire::{Message, Model};

use crate::answer::Fault;
use crate::event::ModelEvent;
use crate::family::{Family, Flow, StreamParser};
use crate::ids::CallNumbers;
use crate::request::ModelRequest;
use crate::sse::SseScanner;
use crate::stream::end_of_body;

/// A model of the given API.
pub(crate) fn model(api: &str) -> Model {
    serde_json::from_value(json!({
        "id": "m", "name": "M", "api": api, "provider": "p", "baseUrl": "http://127.0.0.1:9", "reasoning": true,
        "input": ["text", "image"], "contextWindow": 1000, "maxTokens": 32000,
        "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
    }))
    .unwrap()
}

pub(crate) fn request(model: Model) -> ModelRequest {
    let mut request = ModelRequest::new(model, 0);
    request.messages = vec![Arc::new(Message::user("Hi.", 0))];
    request
}

/// A recorded file.
fn fixture(name: &str) -> Value {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Feeds a body to a parser in the given pieces, as the driver does.
fn run<'a>(model: &Model, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ModelEvent> {
    let request = request(model.clone());
    let mut parser = Family::of(&model.api)
        .unwrap()
        .parser(&request, &CallNumbers::default());
    let mut scanner = SseScanner::default();
    let mut out = Vec::new();
    for piece in pieces {
        scanner.push(piece);
        loop {
            match scanner.next().unwrap() {
                None => break,
                Some(event) => match parser.event(event.name, event.data, &mut out) {
                    Ok(Flow::More) => {}
                    Ok(Flow::Done) => {
                        parser.answer().done(&mut out);
                        return out;
                    }
                    Err(fault) => return fail(parser, fault, out),
                },
            }
        }
    }
    match end_of_body(&mut scanner, parser.as_mut(), &mut out) {
        Ok(()) => parser.answer().done(&mut out),
        Err(fault) => return fail(parser, fault, out),
    }
    out
}

fn fail(mut parser: Box<dyn StreamParser>, fault: Fault, mut out: Vec<ModelEvent>) -> Vec<ModelEvent> {
    parser.answer().failed(wire::StopReason::Error, fault, &mut out);
    out
}

/// The last event's message as JSON, and whether it is an error.
pub(crate) fn last(events: &[ModelEvent]) -> (Value, bool) {
    match events.last().unwrap() {
        ModelEvent::Done(message) => (serde_json::to_value(&**message).unwrap(), false),
        ModelEvent::Error { message, .. } => (serde_json::to_value(&**message).unwrap(), true),
        other => panic!("the last event is {other:?}"),
    }
}

/// Takes members out of a message that pi 0.74, which made the recordings, did not have (pi-1.5-delta.md 3).
fn drop_newer(message: &mut Value) {
    let message = message.as_object_mut().unwrap();
    for member in ["rawStopReason", "thinkingLevel"] {
        message.remove(member);
    }
    let usage = message["usage"].as_object_mut().unwrap();
    usage.remove("reasoning");
    usage["cost"].as_object_mut().unwrap().remove("totalFromProvider");
}

/// The stream events as JSON, with neighbouring deltas of one block joined.
fn joined(events: &[ModelEvent]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for event in events {
        let ModelEvent::Stream(event) = event else {
            continue;
        };
        push_joined(serde_json::to_value(event).unwrap(), &mut out);
    }
    out
}

fn push_joined(event: Value, out: &mut Vec<Value>) {
    if let Some(last) = out.last_mut() {
        let delta = event["type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("_delta"));
        if delta && last["type"] == event["type"] && last["contentIndex"] == event["contentIndex"] {
            let text = format!(
                "{}{}",
                last["delta"].as_str().unwrap(),
                event["delta"].as_str().unwrap()
            );
            last["delta"] = json!(text);
            return;
        }
    }
    out.push(event);
}
