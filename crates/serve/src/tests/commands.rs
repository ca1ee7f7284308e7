//! The commands of a connection under both kinds of rules: those of stdio and those of a server with many clients.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use session::{ClientId, Origin};
use wire::{Command, Dialect, Event, Reply};

use crate::connection::{
    Connection, ConnectionRules, EventNumbers, FixedOption, FollowUp, NegotiatedOptions, UnknownNumber,
};
use crate::encode::{Encoder, Form};
use crate::manner::Manner;
use crate::parse::{Inbound, parse_line};

/// Events 3 to 9 are kept.
struct Kept;

impl EventNumbers for Kept {
    fn last(&self) -> u64 {
        9
    }

    fn count_after(&self, number: u64) -> Option<usize> {
        (2..=9).contains(&number).then(|| 9 - number as usize)
    }
}

fn stdio() -> ConnectionRules {
    ConnectionRules {
        version: "1.0".to_owned(),
        instance: None,
        fixed: &[],
        unknown_number: UnknownNumber::Error,
    }
}

fn shared() -> ConnectionRules {
    ConnectionRules {
        instance: Some("me".into()),
        fixed: &[FixedOption {
            name: "deltas",
            wish: |wishes| &mut wishes.deltas,
            value: "true",
            reason: "one form",
        }],
        unknown_number: UnknownNumber::Snapshot,
        ..stdio()
    }
}

fn answer(
    rules: &ConnectionRules,
    options: &NegotiatedOptions,
    line: &Value,
) -> Result<(Value, FollowUp), String> {
    let Inbound::Request(request) = parse_line(line.to_string().as_bytes()) else {
        panic!("{line} is not a command");
    };
    let Command::Connection(command) = request.command else {
        panic!("{line} is for a session");
    };
    let (outcome, follow_up) = rules.answer(command, options, &Kept, None);
    let reply = match outcome? {
        Reply::Hello(welcome) => serde_json::to_value(welcome),
        Reply::Replayed(replayed) => serde_json::to_value(replayed),
        Reply::Protocol(protocol) => serde_json::to_value(protocol),
        other => panic!("{other:?}"),
    };
    Ok((reply.unwrap(), follow_up))
}

fn options() -> NegotiatedOptions {
    NegotiatedOptions::new(Manner::of(Dialect::Pi)).with_numbers()
}

/// The events that are sent again, or the text of the error. Without a session every snapshot is an error.
fn sent_again(rules: &ConnectionRules, params: Value) -> Result<u64, String> {
    let mut line = json!({ "type": "replay" });
    line.as_object_mut()
        .unwrap()
        .extend(params.as_object().unwrap().clone());
    let (reply, follow_up) = answer(rules, &options(), &line)?;
    let FollowUp::SendAgain(after) = follow_up else {
        panic!("{follow_up:?}");
    };
    assert_eq!(reply["lastSeq"], 9);
    assert_eq!(
        reply.get("instanceId").and_then(Value::as_str),
        rules.instance.as_deref()
    );
    assert_eq!(reply["events"], 9 - after);
    Ok(after)
}

const SNAPSHOT: &str = "There is no session to show";

#[test]
fn replay_of_kept_events_sends_them_again() {
    for rules in [stdio(), shared()] {
        assert_eq!(sent_again(&rules, json!({ "after": 5 })), Ok(5));
        assert_eq!(sent_again(&rules, json!({ "after": 9 })), Ok(9));
        let lost = sent_again(&rules, json!({ "after": 1 }));
        assert_eq!(lost, Err(SNAPSHOT.to_owned()));
        assert_eq!(sent_again(&rules, json!({})), Err(SNAPSHOT.to_owned()));
    }
}

#[test]
fn replay_with_instance_needs_the_same_process() {
    let own = json!({ "after": 5, "instance": "me" });
    let other = json!({ "after": 5, "instance": "other" });
    assert_eq!(sent_again(&shared(), own.clone()), Ok(5));
    assert_eq!(sent_again(&shared(), other.clone()), Err(SNAPSHOT.to_owned()));
    // A connection without an instance id never gave one to its client.
    assert_eq!(sent_again(&stdio(), own), Err(SNAPSHOT.to_owned()));
    assert_eq!(sent_again(&stdio(), other), Err(SNAPSHOT.to_owned()));
}

#[test]
fn replay_of_unknown_number_follows_the_rules() {
    let unknown = json!({ "after": 10 });
    assert_eq!(
        sent_again(&stdio(), unknown.clone()),
        Err("No event has the number 10 yet; the last one is 9".to_owned())
    );
    assert_eq!(sent_again(&shared(), unknown), Err(SNAPSHOT.to_owned()));
}

#[test]
fn replay_without_numbers_is_an_error() {
    let without = NegotiatedOptions::new(Manner::of(Dialect::Pi));
    let line = json!({ "type": "replay", "after": 1 });
    let error = answer(&stdio(), &without, &line).unwrap_err();
    assert!(
        error.contains("say hello with \"sequence\": true first"),
        "{error}"
    );
}

#[test]
fn hello_refuses_other_values_of_fixed_options() {
    let line = json!({ "type": "hello", "deltas": false, "heartbeat": 5, "dialect": "klingon" });
    let (reply, follow_up) = answer(&shared(), &options(), &line).unwrap();
    assert_eq!(reply["instanceId"], "me");
    assert_eq!(reply["heartbeat"], 5);
    let refused = reply["refused"].as_array().unwrap();
    let refused: Vec<_> = refused
        .iter()
        .map(|one| (&one["option"], &one["value"]))
        .collect();
    assert_eq!(
        refused,
        [
            (&json!("deltas"), &json!(false)),
            (&json!("dialect"), &json!("klingon"))
        ]
    );
    let FollowUp::Use(negotiated) = follow_up else {
        panic!("{follow_up:?}");
    };
    assert!(!negotiated.sets_form && !negotiated.sets_dialect && !negotiated.sets_ui);
    let granted = json!({ "type": "hello", "deltas": true });
    let (reply, _) = answer(&shared(), &options(), &granted).unwrap();
    assert_eq!(reply["refused"], json!([]), "{reply}");
}

#[test]
fn hello_over_stdio_sets_every_option() {
    let line = json!({ "type": "hello", "deltas": false, "dialect": "pi-delta", "ui": ["select"] });
    let (reply, follow_up) = answer(&stdio(), &options(), &line).unwrap();
    assert_eq!((reply.get("instanceId"), &reply["deltas"]), (None, &json!(false)));
    let FollowUp::Use(negotiated) = follow_up else {
        panic!("{follow_up:?}");
    };
    assert!(negotiated.sets_form && negotiated.sets_dialect && negotiated.sets_ui);
}

#[test]
fn protocol_is_the_same_for_both() {
    let line = json!({ "type": "get_protocol" });
    let (one, _) = answer(&stdio(), &options(), &line).unwrap();
    let (other, _) = answer(&shared(), &options(), &line).unwrap();
    assert_eq!(one, other);
    assert_eq!(one["version"], "1.0");
}

#[test]
fn left_out_session_has_no_heartbeat() {
    let mut connection = Connection::new(Encoder::new(Form::Delta), "1.0");
    let side: Arc<str> = "side".into();
    connection.join(&side);
    let hello = br#"{"type":"hello","sessions":["side"],"heartbeat":1}"#;
    let Inbound::Request(request) = parse_line(hello) else {
        panic!("hello is a command");
    };
    let Command::Connection(command) = request.command else {
        panic!("hello is for the connection");
    };
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "hello",
    };
    let now = Instant::now();
    let mut before = Vec::new();
    connection.answer(None, origin, command, None, now, &mut before);
    for session in [None, Some(&side)] {
        connection.event(session, &Event::AgentStart, now, &mut before);
    }
    let later = now + Duration::from_secs(2);
    let mut out = Vec::new();
    connection.tick(later, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("\"heartbeat\"") && text.contains("\"session\":\"side\""),
        "{text}"
    );
    assert!(connection.next_deadline().unwrap() > later);
}
