//! What must hold for one session: the transcript of its client against the stored log and the work of its commands.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use crate::place::is;

/// What one client did and saw.
#[derive(Default)]
pub(crate) struct Transcript {
    /// Texts of prompts, and whether they were accepted; none if no response came.
    pub(crate) prompts: BTreeMap<String, Option<bool>>,
    /// Numbered events.
    pub(crate) events: BTreeMap<u64, Value>,
    /// Waits for a response; true if a fault was near.
    pub(crate) waits: Vec<(Duration, bool)>,
    /// Connections through a gateway.
    pub(crate) reconnects: u64,
}

/// The broken rules of one session. `ran` is how often its tool command ran.
pub(crate) fn problems(session: &str, log: &[Value], ran: usize, seen: &Transcript) -> Vec<String> {
    let mut problems = chain(session, log);
    let messages: Vec<&Value> = log.iter().filter_map(|entry| entry.get("message")).collect();
    problems.extend(prompts(&messages, seen));
    problems.extend(calls(session, &messages, ran));
    problems.extend(events(session, &messages, seen));
    problems
}

/// One writer: each entry follows the one before it.
fn chain(session: &str, log: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut parent = Value::Null;
    let mut ids = HashSet::new();
    for entry in log.iter().skip(1) {
        if entry.get("parentId") != Some(&parent) {
            problems.push(format!("{session}: two writers at {entry}"));
        }
        parent = entry.get("id").cloned().unwrap_or_default();
        if !ids.insert(parent.to_string()) {
            problems.push(format!("{session}: an id is there twice: {parent}"));
        }
    }
    problems
}

/// Accepted prompts are stored once, others at most once.
fn prompts(messages: &[&Value], seen: &Transcript) -> Vec<String> {
    let mut users: HashMap<&str, u64> = HashMap::new();
    for message in messages.iter().filter(|message| is(message, "role", "user")) {
        let text = message.pointer("/content/0/text").and_then(Value::as_str);
        *users.entry(text.unwrap_or_default()).or_default() += 1;
    }
    let wrong = seen.prompts.iter().filter_map(|(text, state)| {
        let count = users.get(text.as_str()).copied().unwrap_or(0);
        (count > 1 || (*state == Some(true) && count != 1))
            .then(|| format!("{text}: accepted {state:?}, stored {count} times"))
    });
    wrong.collect()
}

/// A command ran once for each call that succeeded, and at most once for each that may have run.
fn calls(session: &str, messages: &[&Value], ran: usize) -> Vec<String> {
    let (mut succeeded, mut unknown) = (0, 0);
    let mut results = HashSet::new();
    let mut problems = Vec::new();
    for result in messages
        .iter()
        .filter(|message| is(message, "role", "toolResult"))
    {
        if !results.insert(result.get("toolCallId").map(Value::to_string)) {
            problems.push(format!("{session}: a call has two results: {result}"));
        }
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        if result.get("isError") == Some(&Value::Bool(false)) {
            succeeded += 1;
        } else if !text.unwrap_or_default().contains("did not run") {
            unknown += 1;
        }
    }
    // A call whose answer ended as aborted has no result, and did not begin.
    if ran < succeeded || ran > succeeded + unknown {
        problems.push(format!(
            "{session}: a command ran {ran} times; {succeeded} calls succeeded and {unknown} may have run"
        ));
    }
    problems
}

/// Events have no gaps, runs follow one another, and each message that ended in front of the client is stored.
fn events(session: &str, messages: &[&Value], seen: &Transcript) -> Vec<String> {
    let mut problems = Vec::new();
    let gap = seen
        .events
        .keys()
        .zip(1..)
        .find(|(number, expected)| **number != *expected);
    if let Some((number, expected)) = gap {
        problems.push(format!("{session}: event {expected} is missing before {number}"));
    }
    let mut is_open = false;
    for event in seen.events.values() {
        match event.get("type").and_then(Value::as_str) {
            Some("agent_start") if is_open => {
                problems.push(format!("{session}: a run begins in a run: {event}"));
            }
            Some("agent_start") => is_open = true,
            Some("agent_end") => is_open = false,
            Some("message_end") => {
                let message = event.get("message").cloned().unwrap_or_default();
                let same = |name: &str, other: &Value| other.get(name) == message.get(name);
                let is_stored = messages
                    .iter()
                    .any(|other| same("role", other) && same("timestamp", other) && same("content", other));
                if !is_stored {
                    problems.push(format!(
                        "{session}: a client saw a message that is not stored: {event}"
                    ));
                }
            }
            _ => {}
        }
    }
    if is_open {
        problems.push(format!("{session}: a run has no end"));
    }
    problems
}
