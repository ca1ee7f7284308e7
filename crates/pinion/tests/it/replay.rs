//! Numbers of events, events sent again, snapshots.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, text};

fn numbered(pi: &Pi) {
    assert_eq!(
        pi.data(json!({"type": "hello", "sequence": true}))["sequence"],
        true
    );
}

/// The lines that have a number.
fn events(lines: &[Value]) -> Vec<Value> {
    let with = lines.iter().filter(|line| line.get("seq").is_some());
    with.cloned().collect()
}

fn numbers(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["seq"].as_u64()).collect()
}

/// Asks for a replay; gives the answer and the events that followed it.
fn replay(pi: &Pi, after: u64) -> (Value, Vec<Value>) {
    let before = pi.lines().len();
    let data = pi.data(json!({"type": "replay", "after": after}));
    pi.get("get_context_usage");
    let lines = pi.lines().split_off(before);
    let at = lines.iter().position(|line| line["command"] == "replay").unwrap();
    (data, events(&lines[at..]))
}

#[test]
fn sequence_numbers_start_at_one_without_gaps() {
    let world = World::new([Reply::text(["one ", "two ", "three"]), Reply::text(["four"])]);
    let pi = world.start();
    numbered(&pi);
    pi.say("Go");
    pi.say("Again");
    let lines = pi.lines();
    let unnumbered = lines.iter().filter(|line| line.get("seq").is_none());
    assert!(
        unnumbered
            .clone()
            .all(|line| line["type"] == "response" || line["type"] == "ready"),
        "{unnumbered:?}"
    );
    let numbers = numbers(&lines);
    assert!(numbers.len() > 20);
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    pi.finish();
}

#[test]
fn replay_repeats_missed_events_verbatim() {
    let world = World::new([Reply::text(["one ", "two"])]);
    let pi = world.start();
    numbered(&pi);
    pi.say("Go");
    let sent = events(&pi.lines());
    for after in [0, 3, sent.len() as u64] {
        let (data, again) = replay(&pi, after);
        assert_eq!(data["events"], again.len(), "{data}");
        assert_eq!(data["lastSeq"], sent.len());
        assert!(data.get("snapshot").is_none());
        assert_eq!(again, sent[usize::try_from(after).unwrap()..]);
    }
}

#[test]
fn replay_during_answer_leaves_no_gap() {
    let world = World::new([Reply::text(["one "]).gate("mid").then_text(["two"])]);
    let pi = world.start();
    numbered(&pi);
    pi.prompt("Go");
    world.server.wait_gate("mid", LONG).unwrap();
    // The last thing that comes before the gate.
    pi.wait_update("text_end");
    let (data, again) = replay(&pi, 0);
    let last = data["lastSeq"].as_u64().unwrap();
    assert_eq!(numbers(&again), (1..=last).collect::<Vec<_>>(), "{again:#?}");
    let before = pi.lines().len();
    world.server.release("mid");
    pi.settled();
    let rest = numbers(&pi.lines()[before..]);
    assert_eq!(rest.first(), Some(&(last + 1)));
    assert!(rest.windows(2).all(|pair| pair[1] == pair[0] + 1));
}

#[test]
fn replay_beyond_buffer_returns_snapshot() {
    // More bytes of events than are kept: every update repeats the whole answer.
    let long = "x".repeat(400_000);
    let world = World::new([
        Reply::text([long.as_str()]),
        Reply::text([long.as_str()]),
        Reply::text(["end"]),
    ]);
    let pi = world.start();
    numbered(&pi);
    for prompt in ["One", "Two", "Three"] {
        pi.say(prompt);
    }
    let (data, again) = replay(&pi, 1);
    assert!(again.is_empty());
    let snapshot = &data["snapshot"];
    assert_eq!(snapshot["messages"], pi.get("get_messages")["messages"]);
    assert_eq!(snapshot["state"], pi.state());
    assert_eq!(snapshot["message"], Value::Null);
    let last = data["lastSeq"].as_u64().unwrap();
    let (data, again) = replay(&pi, last - 1);
    assert_eq!((&data["events"], again.len()), (&json!(1), 1));
}

#[test]
fn replay_snapshot_contains_partial_answer() {
    let call = json!({"path": "Cargo.toml"});
    let world = World::new([
        Reply::text(["I look "])
            .gate("mid")
            .then_text(["at it."])
            .then_tool("c1", "read", call),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("mid", LONG).unwrap();
    pi.wait_update("text_delta");
    let data = pi.get("replay");
    let snapshot = &data["snapshot"];
    assert_eq!(text(&snapshot["message"]), "I look ");
    assert_eq!(snapshot["message"]["model"], "claude-mock");
    assert_eq!(snapshot["state"]["isStreaming"], true);
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 1);
    world.server.release("mid");
    pi.settled();
    assert_eq!(pi.get("replay")["snapshot"]["message"], Value::Null);
    pi.finish();
}

#[test]
fn invalid_replay_numbers_are_refused() {
    let world = World::new([]);
    let pi = world.start();
    let error = pi.error(json!({"type": "replay", "after": 0}));
    assert!(error.contains("hello"), "{error}");
    numbered(&pi);
    let error = pi.error(json!({"type": "replay", "after": 5}));
    assert_eq!(error, "No event has the number 5 yet; the last one is 0");
    let (data, again) = replay(&pi, 0);
    assert_eq!((&data["events"], again.len()), (&json!(0), 0));
    pi.error(json!({"type": "replay", "after": -1}));
    pi.finish();
}

#[test]
fn sequence_numbers_count_only_filtered_events() {
    let world = World::new([Reply::text(["one ", "two"])]);
    let pi = world.start();
    pi.data(
        json!({"type": "hello", "sequence": true, "events": ["agent_start", "agent_end", "agent_settled"]}),
    );
    pi.prompt("Go");
    pi.settled();
    assert_eq!(numbers(&pi.lines()), [1, 2, 3]);
}
