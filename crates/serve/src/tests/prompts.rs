//! `prompt_result` and `session_settled` for clients of today's oh-my-pi.

use std::sync::Arc;
use std::time::Instant;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::message::StopReason;
use wire::reply::{Accepted, Disposition};
use wire::{AssistantMessage, Dialect, Event, Message, Reply, Response};

use crate::encode::Encoder;
use crate::manner::Spoken;

fn encoder(dialect: Dialect) -> Encoder {
    Encoder::speaking(Spoken::new(dialect))
}

/// The lines that follow the usual ones.
fn own(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let names = ["prompt_result", "session_settled"];
    lines
        .filter(|line| names.iter().any(|name| line["type"] == *name))
        .collect()
}

fn prompt(encoder: &mut Encoder, id: &str, disposition: Disposition) -> Vec<Value> {
    let response = Response {
        id: RawValue::from_string(json!(id).to_string()).ok(),
        command: Some("prompt".into()),
        outcome: Ok(Reply::Accepted(Accepted::new(disposition))),
    };
    let mut out = Vec::new();
    encoder.response(&response, Instant::now(), &mut out);
    own(&out)
}

fn events(encoder: &mut Encoder, events: &[Event]) -> Vec<Value> {
    let mut out = Vec::new();
    for event in events {
        encoder.event(event, Instant::now(), &mut out);
    }
    own(&out)
}

fn end(stop_reason: StopReason, error: Option<&str>) -> Event {
    let answer = AssistantMessage {
        stop_reason,
        error_message: error.map(str::to_owned),
        ..AssistantMessage::begin("api", "p", "m", 0)
    };
    Event::AgentEnd {
        messages: vec![Arc::new(Message::Assistant(answer))],
        will_retry: false,
        limit: None,
        result: None,
        result_error: None,
    }
}

fn queue(messages: &[&str]) -> Event {
    Event::QueueUpdate {
        steering: Vec::new(),
        follow_up: messages.iter().map(ToString::to_string).collect(),
    }
}

const SETTLED: Event = Event::AgentSettled { aborted: false };

fn result(id: &str, invoked: bool, status: &str, settled: bool) -> Value {
    json!({"type": "prompt_result", "id": id, "agentInvoked": invoked, "status": status, "sessionSettled": settled})
}

#[test]
fn accepted_prompt_gets_one_result() {
    let mut omp = encoder(Dialect::OmpNow);
    for id in ["1", "2"] {
        assert_eq!(prompt(&mut omp, id, Disposition::Started), [] as [Value; 0]);
        let begun = [Event::AgentStart, end(StopReason::Stop, None)];
        assert_eq!(events(&mut omp, &begun), [] as [Value; 0]);
        let expected = [
            result(id, true, "completed", true),
            json!({"type": "session_settled"}),
        ];
        assert_eq!(events(&mut omp, &[SETTLED]), expected);
    }
    let handled = [result("3", false, "completed", true)];
    assert_eq!(prompt(&mut omp, "3", Disposition::Handled), handled);
}

#[test]
fn queued_prompt_stays_open_until_delivered() {
    let mut omp = encoder(Dialect::OmpNow);
    prompt(&mut omp, "1", Disposition::Started);
    events(&mut omp, &[Event::AgentStart, queue(&["later"])]);
    prompt(&mut omp, "2", Disposition::Queued);
    let aborted = Event::AgentSettled { aborted: true };
    assert_eq!(
        events(&mut omp, &[aborted]),
        [result("1", true, "aborted", false)]
    );
    let run = [
        Event::AgentStart,
        queue(&[]),
        end(StopReason::Stop, None),
        SETTLED,
    ];
    let expected = [
        result("2", true, "completed", true),
        json!({"type": "session_settled"}),
    ];
    assert_eq!(events(&mut omp, &run), expected);
}

#[test]
fn failed_run_reports_provider_error() {
    for retried in [false, true] {
        let mut omp = encoder(Dialect::OmpNow);
        prompt(&mut omp, "1", Disposition::Started);
        let mut run = vec![Event::AgentStart, end(StopReason::Error, Some("529"))];
        run.extend(retried.then(|| Event::AutoRetryEnd {
            success: false,
            attempt: 3,
            final_error: Some("529".to_owned()),
        }));
        run.push(SETTLED);
        let mut expected = result("1", true, "error", true);
        expected["error"] = json!({"message": "529", "provider": "p", "model": "m", "retryable": retried});
        assert_eq!(events(&mut omp, &run)[0], expected);
    }
}

#[test]
fn other_dialects_get_no_prompt_results() {
    for dialect in Dialect::ALL
        .into_iter()
        .filter(|dialect| *dialect != Dialect::OmpNow)
    {
        let mut other = encoder(dialect);
        assert_eq!(prompt(&mut other, "1", Disposition::Handled), [] as [Value; 0]);
        prompt(&mut other, "2", Disposition::Started);
        let run = [Event::AgentStart, end(StopReason::Stop, None), SETTLED];
        assert_eq!(events(&mut other, &run), [] as [Value; 0], "{dialect:?}");
    }
}
