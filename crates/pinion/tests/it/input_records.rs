//! `--record-inputs`: what the program writes down of a session can be replayed, and says no keys.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use agent::record::{ReplayError, replay, sessions};
use agent::{Effect, Input};
use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};
use wire::Event;

use crate::kit::{LONG, Pi, World, of_type};

const KEY: &str = "sk-planted-0123456789abcdef";

fn start(world: &World) -> (Pi, PathBuf) {
    let file = world.dir.root().join("inputs.jsonl");
    let pi = world.start_with(&["--record-inputs", file.to_str().unwrap()]);
    (pi, file)
}

/// What a replay of a session came to: the inputs by name, and every event that the machine tells.
fn replayed(file: &Path, session: u64) -> Result<(Vec<String>, Vec<Event>), ReplayError> {
    let text = fs::read_to_string(file).unwrap();
    let (mut inputs, mut events) = (Vec::new(), Vec::new());
    replay(text.lines(), session, |step| {
        inputs.push(name(&step.input));
        events.extend(step.effects.into_iter().filter_map(|effect| match effect {
            Effect::Emit(event) => Some(event),
            _ => None,
        }));
    })?;
    Ok((inputs, events))
}

fn name(input: &Input) -> String {
    let value = match input {
        Input::Change(change) => serde_json::to_value(change).unwrap(),
        input => serde_json::to_value(input).unwrap(),
    };
    match value {
        Value::String(name) => name,
        Value::Object(map) => map.keys().next().unwrap().clone(),
        other => other.to_string(),
    }
}

/// Tools, steering, a retry, an abort, a compaction, settings, todos, a shell command and another session.
#[test]
fn recorded_session_replays_byte_for_byte() {
    let world = World::new([
        Reply::text(["Looking."])
            .gate("steer")
            .then_tool("c1", "bash", json!({"command": "echo found"})),
        Reply::text(["Steered."]),
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["Tried again."]),
        Reply::text(["Too "]).gate("abort").then_text(["long."]),
        Reply::text(["All of it."]),
        Reply::text(["Another session."]),
    ]);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let (pi, file) = start(&world);
    pi.prompt(&"Look for the word elephant. ".repeat(40));
    world.server.wait_gate("steer", LONG).unwrap();
    pi.data(json!({"type": "steer", "message": "And zebra."}));
    pi.data(json!({"type": "set_steering_mode", "mode": "all"}));
    world.server.release("steer");
    pi.settled();
    pi.say("Once more.");
    pi.data(json!({"type": "bash", "command": "echo outside"}));
    pi.data(json!({"type": "set_todos", "phases": [{"name": "A", "tasks": [{"content": "a", "status": "pending"}]}]}));
    pi.prompt("Talk.");
    pi.wait_update("text_delta");
    pi.get("abort");
    pi.settled();
    pi.get("compact");
    pi.get("new_session");
    pi.say("Hello.");
    let lines = pi.lines();
    pi.finish();

    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(sessions(text.lines()), [1]);
    let (inputs, events) = replayed(&file, 1).unwrap();
    for needed in [
        "open",
        "branch",
        "prompt",
        "enqueue",
        "settings",
        "model",
        "tool",
        "context",
        "retry_due",
        "add",
        "todos",
        "abort",
        "compact",
        "compacted",
    ] {
        assert!(inputs.iter().any(|input| input == needed), "{needed}: {inputs:?}");
    }
    assert_eq!(inputs.iter().filter(|input| *input == "open").count(), 2);
    let compacted = |event: &Event| matches!(event, Event::CompactionEnd { result: Some(_), .. });
    assert!(events.iter().any(compacted));
    // The record holds the session that the client saw, not another session that replays as well.
    for kind in [
        "message_end",
        "turn_end",
        "agent_end",
        "tool_execution_end",
        "auto_retry_start",
    ] {
        let mut told: Vec<String> = of_type(&lines, kind).iter().map(ToString::to_string).collect();
        let own = events.iter().filter(|event| event.name() == kind);
        let mut own: Vec<String> = own
            .map(|event| {
                let mut line = serde_json::to_value(event).unwrap();
                // Only clients of the newest pi see it (dialects.md 5, row 36).
                if let Some(result) = line.get_mut("result").and_then(Value::as_object_mut) {
                    result.remove("structuredContent");
                }
                line.to_string()
            })
            .collect();
        told.sort();
        own.sort();
        assert!(!told.is_empty(), "{kind}");
        assert_eq!(told, own, "{kind}");
    }
}

#[test]
fn record_says_no_key_and_is_private() {
    let world = World::new([Reply::text(["Ok."])]);
    let mut models = testkit::workspace::default_models(&world.server.url());
    models["providers"]["mock-anthropic"]["apiKey"] = json!(KEY);
    world.dir.write_models(&models).unwrap();
    let (pi, file) = start(&world);
    // The key is known from the first request on.
    pi.say("Hi");
    world.server.push(Reply::text(["Thanks."]));
    pi.say(&format!("My key is {KEY}, keep it."));
    pi.finish();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("My key is ") && !text.contains(KEY));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    replayed(&file, 1).unwrap();
}

#[test]
fn record_never_overwrites_a_file() {
    let world = World::new([]);
    let file = world.dir.root().join("mine");
    fs::write(&file, "precious").unwrap();
    let done = world.run(&["--record-inputs", file.to_str().unwrap(), "-p", "Hi"], "");
    assert_ne!(done.code, Some(0));
    assert!(done.err.contains("--record-inputs"), "{}", done.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}
