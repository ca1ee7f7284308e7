//! What must hold of everything the program prints and of every session file it leaves (GUARANTEES.md 1 to 4).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use testkit::driver::Line;

/// The output with each line whole that came in chunks (protocol version 2 of oh-my-pi).
pub(crate) fn joined(lines: &[Line]) -> Vec<Line> {
    let mut whole = Vec::with_capacity(lines.len());
    let mut bytes = Vec::new();
    for line in lines {
        if line.value["type"] != "rpc_chunk" {
            whole.push(line.clone());
            continue;
        }
        bytes.extend(STANDARD.decode(line.value["data"].as_str().unwrap()).unwrap());
        if line.value["byteLength"] == bytes.len() {
            let value = Arc::new(serde_json::from_slice(&bytes).unwrap());
            whole.push(Line {
                value,
                ..line.clone()
            });
            bytes.clear();
        }
    }
    assert!(bytes.is_empty(), "a line lacks chunks");
    whole
}

/// Where in a run the output is.
#[derive(Default)]
struct Place {
    run: bool,
    turn: bool,
    /// A run has ended and `agent_settled` or another run must follow.
    unsettled: bool,
    message: Option<Value>,
    /// Deltas of the open message by block.
    deltas: BTreeMap<u64, String>,
    tools: BTreeSet<String>,
}

/// Checks the output of a process that was idle when its stdin was closed. `sent` are the ids of its commands.
pub(crate) fn output(lines: &[Line], sent: &[String]) {
    // Each session of the process has a place of its own; the first one has no name.
    let mut places: BTreeMap<String, Place> = BTreeMap::new();
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in lines.iter().enumerate() {
        let value = line.value.as_ref();
        assert!(line.json && value.is_object(), "no JSON object: {value}");
        let kind = value["type"]
            .as_str()
            .unwrap_or_else(|| panic!("no type: {value}"));
        assert_eq!(
            kind == "ready",
            number == 0,
            "ready is the first line, once: {value}"
        );
        if kind == "response" {
            let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
            assert!(keys.contains(&"success"), "{value}");
            if let Some(id) = value["id"].as_str() {
                *answered.entry(id.to_owned()).or_default() += 1;
            }
        } else {
            let session = value["session"].as_str().unwrap_or_default();
            places.entry(session.to_owned()).or_default().event(kind, value);
        }
    }
    let once: BTreeMap<String, usize> = sent.iter().map(|id| (id.clone(), 1)).collect();
    assert_eq!(answered, once, "each id is answered once");
    for (session, place) in places {
        let Place {
            run,
            turn,
            unsettled,
            message,
            tools,
            ..
        } = place;
        assert!(
            !run && !turn && !unsettled && message.is_none() && tools.is_empty(),
            "something was left open in session {session:?}"
        );
    }
}

impl Place {
    fn event(&mut self, kind: &str, value: &Value) {
        let inside = ["turn_", "message_", "tool_execution_"]
            .iter()
            .any(|start| kind.starts_with(start));
        // A message of an extension needs no run (pi-core.md 1.11).
        let is_note = kind.starts_with("message_") && value["message"]["role"] == "custom";
        if is_note && !self.run {
            return;
        }
        assert!(self.run || !inside, "outside of a run: {value}");
        match kind {
            "agent_start" => {
                assert!(!self.run, "a run inside a run");
                self.run = true;
                self.unsettled = false;
            }
            "agent_end" => {
                assert!(
                    self.run && !self.turn && self.message.is_none() && self.tools.is_empty(),
                    "{value}"
                );
                self.run = false;
                self.unsettled = true;
            }
            "agent_settled" => {
                assert!(!self.run && value["aborted"].is_boolean(), "{value}");
                self.unsettled = false;
            }
            "turn_start" => assert!(!std::mem::replace(&mut self.turn, true), "{value}"),
            "turn_end" => assert!(std::mem::take(&mut self.turn), "{value}"),
            "message_start" => {
                assert!(self.message.is_none(), "a message inside a message: {value}");
                self.message = Some(value["message"].clone());
                self.deltas.clear();
            }
            "message_update" => self.update(&value["assistantMessageEvent"]),
            "message_end" => self.message_end(&value["message"]),
            "tool_execution_start" => {
                let id = value["toolCallId"].as_str().unwrap().to_owned();
                assert!(self.tools.insert(id), "started twice: {value}");
            }
            "tool_execution_update" => assert!(self.tools.contains(value["toolCallId"].as_str().unwrap())),
            "tool_execution_end" => {
                assert!(
                    self.tools.remove(value["toolCallId"].as_str().unwrap()),
                    "not started: {value}"
                );
                assert!(value["isError"].is_boolean(), "{value}");
            }
            _ => {}
        }
    }

    fn update(&mut self, event: &Value) {
        let open = self
            .message
            .as_ref()
            .unwrap_or_else(|| panic!("no open message: {event}"));
        assert_eq!(open["role"], "assistant");
        let index = event["contentIndex"].as_u64().unwrap();
        let so_far = self.deltas.entry(index).or_default();
        match event["type"].as_str().unwrap() {
            "text_delta" | "thinking_delta" | "toolcall_delta" => {
                so_far.push_str(event["delta"].as_str().unwrap())
            }
            "text_end" | "thinking_end" => {
                let whole = event["content"].as_str().unwrap();
                // In the Responses API a blank line follows every part of a summary, as if there were another (a recorded
                // transcript shows it); the block's end tells what counts.
                if event["type"] == "thinking_end" && so_far.strip_suffix("\n\n") == Some(whole) {
                    whole.clone_into(so_far);
                }
                assert_eq!(*so_far, whole, "deltas and end differ")
            }
            _ => {}
        }
    }

    fn message_end(&mut self, message: &Value) {
        let open = self
            .message
            .take()
            .unwrap_or_else(|| panic!("never started: {message}"));
        assert_eq!(open["role"], message["role"]);
        for (index, deltas) in &self.deltas {
            let block = &message["content"][usize::try_from(*index).unwrap()];
            if let Some(whole) = block["text"].as_str().or_else(|| block["thinking"].as_str()) {
                assert_eq!(whole, deltas, "deltas and message differ");
            }
        }
    }
}

/// Checks a session file, and that it holds the messages that were told, in their order.
pub(crate) fn file(path: &Path, lines: &[Value]) {
    let entries = entries(path);
    let name = path.display();
    let mut known = BTreeSet::new();
    for entry in &entries {
        let parent = entry["parentId"].as_str();
        assert!(
            parent.is_none_or(|parent| known.contains(parent)),
            "{name}: no such parent: {entry}"
        );
        assert!(
            known.insert(entry["id"].as_str().unwrap()),
            "{name}: id used twice: {entry}"
        );
        assert!(entry["timestamp"].is_string(), "{name}: {entry}");
    }
    let on_disk: Vec<String> = entries.iter().filter_map(message_of).collect();
    let known: HashSet<&String> = on_disk.iter().collect();
    let mut rest = on_disk.iter();
    // Events before the last change of sessions may belong to another file.
    let changed = lines
        .iter()
        .rposition(|line| CHANGES.iter().any(|change| line["command"] == *change) && line["success"] == true);
    for (at, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line["type"] == "message_end")
    {
        let is_before_change = changed.is_some_and(|changed| at < changed);
        // Without its time, a message of another file may be equal to one of this file.
        if is_before_change && line["message"]["role"] == "custom" {
            continue;
        }
        let told = without_time(&line["message"]);
        if known.contains(&told) {
            assert!(
                rest.any(|message| *message == told),
                "{name}: in another order: {line}"
            );
        } else {
            assert!(is_before_change, "{name}: not on disk: {line}");
        }
    }
}

/// The message of an entry, in the form that [`without_time`] gives for events.
fn message_of(entry: &Value) -> Option<String> {
    match entry["type"].as_str()? {
        "message" => Some(canonical(&entry["message"])),
        "custom_message" => {
            let members = ["customType", "content", "display", "details"];
            let mut message = Map::from_iter([("role".to_owned(), "custom".into())]);
            let known = members.iter().filter_map(|name| Some((name, entry.get(*name)?)));
            message.extend(known.map(|(name, value)| ((*name).to_owned(), value.clone())));
            Some(canonical(&Value::Object(message)))
        }
        _ => None,
    }
}

/// Messages of extensions and the like have the time of their entry, which is another.
fn without_time(message: &Value) -> String {
    let mut message = message.clone();
    if message["role"] == "custom" {
        message.as_object_mut().unwrap().remove("timestamp");
    }
    canonical(&message)
}

/// Commands after which the process works on another session.
const CHANGES: [&str; 6] = [
    "reset",
    "new_session",
    "switch_session",
    "fork",
    "branch",
    "clone",
];

/// The header of a session file.
pub(crate) fn header(path: &Path) -> Value {
    let content = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(content.lines().next().unwrap()).unwrap()
}

/// The messages of a session file, all branches.
pub(crate) fn messages(path: &Path) -> Vec<Value> {
    let entries = entries(path);
    entries
        .iter()
        .filter_map(|entry| entry.get("message").cloned())
        .collect()
}

/// Their roles.
pub(crate) fn roles(path: &Path) -> Vec<Value> {
    messages(path)
        .iter()
        .map(|message| message["role"].clone())
        .collect()
}

/// A text that is equal for equal values.
fn canonical(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    value.to_string()
}

/// The entries of a session file, after a proper header.
pub(crate) fn entries(path: &Path) -> Vec<Value> {
    let content = std::fs::read_to_string(path).unwrap();
    assert!(content.ends_with('\n'), "torn: {}", path.display());
    let mut values = content
        .lines()
        .map(|line| Value::Object(serde_json::from_str::<Map<_, _>>(line).unwrap()));
    let header = values.next().unwrap();
    assert_eq!(header["type"], "session");
    assert_eq!(header["version"], 3);
    assert!(
        header["id"].is_string() && header["cwd"].is_string() && header["timestamp"].is_string(),
        "{header}"
    );
    values.collect()
}
