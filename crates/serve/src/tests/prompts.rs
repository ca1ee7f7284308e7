//! `prompt_result` and `session_settled` for clients of today's oh-my-pi.

use std::sync::Arc;
use std::time::Instant;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::event::ChangeReason;
use wire::message::StopReason;
use wire::reply::{Accepted, CommandStage, Disposition};
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

fn end(stop_reason: StopReason) -> Event {
    end_with(AssistantMessage {
        stop_reason,
        ..AssistantMessage::begin("api", "p", "m", 0)
    })
}

fn end_with(answer: AssistantMessage) -> Event {
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
        let begun = [Event::AgentStart, end(StopReason::Stop)];
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
fn pending_wakeup_delays_session_settled() {
    let mut omp = encoder(Dialect::OmpNow);
    let mut out = Vec::new();
    omp.pending_wakeup(true, &mut out);
    assert!(out.is_empty());
    prompt(&mut omp, "1", Disposition::Started);
    let run = [Event::AgentStart, end(StopReason::Stop), SETTLED];
    assert_eq!(events(&mut omp, &run), [result("1", true, "completed", false)]);
    omp.pending_wakeup(false, &mut out);
    assert_eq!(own(&out), [json!({"type": "session_settled"})]);
    omp.pending_wakeup(false, &mut out);
    assert_eq!(own(&out).len(), 1, "once");
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
    let run = [Event::AgentStart, queue(&[]), end(StopReason::Stop), SETTLED];
    let expected = [
        result("2", true, "completed", true),
        json!({"type": "session_settled"}),
    ];
    assert_eq!(events(&mut omp, &run), expected);
}

#[test]
fn failed_run_reports_provider_error() {
    for (text, status, retryable) in [
        ("529 Overloaded", Some(529), true),
        ("ValidationException: Wrong", Some(400), false),
        ("503 fetch failed", None, true),
    ] {
        let mut omp = encoder(Dialect::OmpNow);
        prompt(&mut omp, "1", Disposition::Started);
        let answer = AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.to_owned()),
            http_status: status,
            ..AssistantMessage::begin("api", "p", "m", 0)
        };
        let run = [Event::AgentStart, end_with(answer), SETTLED];
        let mut expected = result("1", true, "error", true);
        expected["error"] = json!({"message": text, "provider": "p", "model": "m", "retryable": retryable});
        if let Some(status) = status {
            expected["error"]["httpStatus"] = status.into();
        }
        assert_eq!(events(&mut omp, &run)[0], expected);
    }
}

#[test]
fn joined_prompt_is_reported_before_prompt_of_run() {
    let mut omp = encoder(Dialect::OmpNow);
    prompt(&mut omp, "1", Disposition::Started);
    events(&mut omp, &[Event::AgentStart, queue(&["more"])]);
    prompt(&mut omp, "2", Disposition::Queued);
    let reported = events(&mut omp, &[queue(&[]), end(StopReason::Stop), SETTLED]);
    let ids: Vec<_> = reported.iter().filter_map(|line| line["id"].as_str()).collect();
    assert_eq!(ids, ["2", "1"]);
}

#[test]
fn session_change_with_queue_settles() {
    let mut omp = encoder(Dialect::OmpNow);
    prompt(&mut omp, "1", Disposition::Started);
    let aborted = Event::AgentSettled { aborted: true };
    let run = [Event::AgentStart, queue(&["later"]), aborted];
    assert_eq!(events(&mut omp, &run), [result("1", true, "aborted", false)]);
    let changed = Event::SessionChanged {
        reason: ChangeReason::New,
        session_id: "s".to_owned(),
        session_file: None,
        session_name: None,
        message_count: 0,
    };
    let settled = json!({"type": "session_settled"});
    assert_eq!(events(&mut omp, std::slice::from_ref(&changed)), [settled]);
    assert_eq!(events(&mut omp, &[changed]), [] as [Value; 0], "once");
}

#[test]
fn tree_move_with_queue_leaves_queued_prompt_open() {
    let mut omp = encoder(Dialect::OmpNow);
    prompt(&mut omp, "1", Disposition::Started);
    prompt(&mut omp, "2", Disposition::Queued);
    let aborted = Event::AgentSettled { aborted: true };
    let moved = Event::SessionChanged {
        reason: ChangeReason::Tree,
        session_id: "s".to_owned(),
        session_file: None,
        session_name: None,
        message_count: 0,
    };
    let run = [Event::AgentStart, queue(&["later"]), aborted, moved];
    assert_eq!(events(&mut omp, &run), [result("1", true, "aborted", false)]);
    let next = [Event::AgentStart, queue(&[]), end(StopReason::Stop), SETTLED];
    let settled = json!({"type": "session_settled"});
    assert_eq!(
        events(&mut omp, &next),
        [result("2", true, "completed", true), settled]
    );
}

/// The response to a slash command of an extension.
fn command(encoder: &mut Encoder, stage: CommandStage) -> (usize, Vec<Value>) {
    let id = RawValue::from_string("\"1\"".to_owned()).ok();
    command_with(encoder, id, Ok(Reply::Accepted(Accepted::by_command(stage))))
}

fn command_with(
    encoder: &mut Encoder,
    id: Option<Box<RawValue>>,
    outcome: Result<Reply, String>,
) -> (usize, Vec<Value>) {
    let response = Response {
        id,
        command: Some("prompt".into()),
        outcome,
    };
    let mut out = Vec::new();
    encoder.response(&response, Instant::now(), &mut out);
    let text = String::from_utf8(out.clone()).unwrap();
    (text.matches("\"type\":\"response\"").count(), own(&out))
}

#[test]
fn slash_command_is_answered_once_and_reported_at_its_end() {
    let mut omp = encoder(Dialect::OmpNow);
    assert_eq!(command(&mut omp, CommandStage::Begun), (1, vec![]));
    // The run of another prompt ends while the command works.
    prompt(&mut omp, "2", Disposition::Started);
    let other = events(&mut omp, &[Event::AgentStart, end(StopReason::Stop), SETTLED]);
    assert_eq!(other[0], result("2", true, "completed", true));
    assert_eq!(other.len(), 2);
    let ended = command(&mut omp, CommandStage::Ended(false));
    assert_eq!(ended.0, 0);
}

#[test]
fn slash_command_without_run_completes_locally() {
    let mut omp = encoder(Dialect::OmpNow);
    command(&mut omp, CommandStage::Begun);
    let expected = result("1", false, "completed", true);
    assert_eq!(command(&mut omp, CommandStage::Ended(false)), (0, vec![expected]));
}

#[test]
fn slash_command_with_run_is_reported_after_it() {
    let mut omp = encoder(Dialect::OmpNow);
    command(&mut omp, CommandStage::Begun);
    assert_eq!(command(&mut omp, CommandStage::Ended(true)), (0, vec![]));
    let run = events(&mut omp, &[Event::AgentStart, end(StopReason::Stop), SETTLED]);
    assert_eq!(run[0], result("1", true, "completed", true));
}

#[test]
fn slash_command_given_up_with_session_fails() {
    let mut omp = encoder(Dialect::OmpNow);
    command(&mut omp, CommandStage::Begun);
    let mut expected = result("1", false, "error", true);
    expected["error"] = json!({"message": "gone", "retryable": false});
    assert_eq!(
        command(&mut omp, CommandStage::GivenUp("gone")),
        (0, vec![expected])
    );
    let mut other = encoder(Dialect::PiDelta);
    command(&mut other, CommandStage::Begun);
    let mut out = Vec::new();
    let response = Response {
        id: RawValue::from_string("1".to_owned()).ok(),
        command: Some("prompt".into()),
        outcome: Ok(Reply::Accepted(Accepted::by_command(CommandStage::GivenUp(
            "gone",
        )))),
    };
    other.response(&response, Instant::now(), &mut out);
    let line: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        (&line["success"], &line["error"]),
        (&json!(false), &json!("gone"))
    );
}

#[test]
fn slash_command_without_id_is_answered_once() {
    let mut omp = encoder(Dialect::OmpNow);
    let stage = |stage| Ok(Reply::Accepted(Accepted::by_command(stage)));
    assert_eq!(
        command_with(&mut omp, None, stage(CommandStage::Begun)),
        (1, vec![])
    );
    // The response to another prompt without an id.
    assert_eq!(command_with(&mut omp, None, Err("busy".to_owned())), (1, vec![]));
    let mut expected = result("1", false, "error", true);
    expected["error"] = json!({"message": "gone", "retryable": false});
    expected.as_object_mut().unwrap().remove("id");
    assert_eq!(
        command_with(&mut omp, None, stage(CommandStage::GivenUp("gone"))),
        (0, vec![expected])
    );
}

#[test]
fn clients_of_other_dialects_hear_of_end_of_slash_command() {
    let mut other = encoder(Dialect::PiDelta);
    assert_eq!(command(&mut other, CommandStage::Begun), (0, vec![]));
    assert_eq!(command(&mut other, CommandStage::Ended(false)), (1, vec![]));
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
        let run = [Event::AgentStart, end(StopReason::Stop), SETTLED];
        assert_eq!(events(&mut other, &run), [] as [Value; 0], "{dialect:?}");
    }
}
