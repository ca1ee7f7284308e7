//! What a client has negotiated with its gateway: numbers, updates without repetition, an event filter. Pure.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::bus::DIALECT;
use crate::worker::agent_line::AgentLine;

/// Version of the protocol, as `hello` reports it.
const PROTOCOL: &str = "1.1.0";

/// How events about messages begin: agents write the type first.
const MESSAGE: &str = r#"{"type":"message_"#;
const UPDATE: &str = r#"{"type":"message_update""#;

/// The options of one connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    sequence: bool,
    deltas: bool,
    events: Option<HashSet<String>>,
}

/// A command that the gateway answers itself.
#[derive(Debug, PartialEq)]
pub(crate) enum Local {
    /// With this data.
    Answer(Value),
    /// With the events after this number.
    Replay(u64),
}

/// The first line of a connection.
pub(crate) fn ready() -> String {
    json!({
        "type": "ready",
        "version": env!("CARGO_PKG_VERSION"),
        "protocolVersion": 1,
        "supportedProtocolVersions": [1],
    })
    .to_string()
}

impl Connection {
    /// Handles a command that concerns the connection; none for a command of the session. `seq` is the number of the last event.
    pub(crate) fn handle(&mut self, command: &Map<String, Value>, seq: u64, instance: &str) -> Option<Local> {
        match command.get("type").and_then(Value::as_str)? {
            "hello" => Some(Local::Answer(self.hello(command, seq, instance))),
            "set_event_filter" => {
                self.filter(command.get("events"));
                Some(Local::Answer(
                    json!({"events": command.get("events").cloned().unwrap_or_default()}),
                ))
            }
            "negotiate_protocol" => Some(Local::Answer(json!({"protocolVersion": 1}))),
            "replay" => {
                let named = command.get("instance").and_then(Value::as_str);
                let after = command.get("after").and_then(Value::as_u64)?;
                (named.is_none_or(|named| named == instance)).then_some(Local::Replay(after))
            }
            _ => None,
        }
    }

    fn hello(&mut self, command: &Map<String, Value>, seq: u64, instance: &str) -> Value {
        let flag = |name: &str| command.get(name).and_then(Value::as_bool);
        self.sequence = flag("sequence").unwrap_or(self.sequence);
        self.deltas = flag("deltas").unwrap_or(self.deltas);
        if command.contains_key("events") {
            self.filter(command.get("events"));
        }
        // The agent of the worker speaks one dialect to all gateways, and has no connection to this client.
        let mut refused: Vec<&str> = ["heartbeat", "sessions", "ui"]
            .into_iter()
            .filter(|name| command.get(*name).is_some_and(|value| !value.is_null()))
            .collect();
        let dialect = command.get("dialect").and_then(Value::as_str);
        if dialect.is_some_and(|dialect| !["auto", DIALECT].contains(&dialect)) {
            refused.push("dialect");
        }
        let refused: Vec<Value> = refused
            .into_iter()
            .map(|name| json!({"field": name, "reason": "not available through a gateway"}))
            .collect();
        json!({
            "protocolVersion": PROTOCOL,
            "version": env!("CARGO_PKG_VERSION"),
            "instanceId": instance,
            "dialect": DIALECT,
            "events": self.events.as_ref().map(|events| {
                let mut events: Vec<&String> = events.iter().collect();
                events.sort();
                events
            }),
            "deltas": self.deltas,
            "sequence": self.sequence,
            "lastSeq": seq,
            "heartbeat": null,
            "sessions": null,
            "ui": null,
            "refused": refused,
        })
    }

    fn filter(&mut self, events: Option<&Value>) {
        self.events = events.and_then(Value::as_array).map(|events| {
            let names = events.iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        });
    }

    /// Returns true if the client gets the event as the answer so far.
    pub(crate) fn expands(&self, line: &str) -> bool {
        !self.deltas && line.starts_with(UPDATE) && self.wants("message_update")
    }

    fn wants(&self, name: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.contains(name))
    }

    /// An event as the client wants it; none if the client does not want it. `answer` is the answer before it, and follows it while the
    /// client wants updates with the answer so far.
    pub(crate) fn event(&self, line: String, answer: &mut Option<Answer>) -> Option<String> {
        let is_message = line.starts_with(MESSAGE);
        if self.sequence && self.events.is_none() && !is_message {
            return Some(line);
        }
        let Ok(Value::Object(mut event)) = serde_json::from_str(&line) else {
            return self.nested_event(line);
        };
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_update = name == "message_update";
        let is_wanted = self.wants(name);
        if is_message && !self.deltas {
            Answer::follow(answer, &event);
        }
        if !is_wanted {
            return None;
        }
        if !self.sequence {
            event.shift_remove("seq");
        }
        if is_update && !self.deltas {
            if let Some(answer) = answer {
                answer.expand(&mut event);
            }
        } else if is_update {
            event.shift_remove("message");
            if let Some(Value::Object(update)) = event.get_mut("assistantMessageEvent") {
                update.shift_remove("partial");
            }
        }
        Some(Value::Object(event).to_string())
    }

    /// An event that is nested deeper than `serde_json` builds a `Value`.
    fn nested_event(&self, line: String) -> Option<String> {
        let Some(mut event) = AgentLine::parse(line.as_bytes()) else {
            return Some(line);
        };
        if !self.sequence {
            event.remove("seq");
        }
        self.wants(event.kind()).then(|| event.text().unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::{Connection, Local};
    use serde_json::{Value, json};

    fn handle(connection: &mut Connection, command: Value) -> Option<Local> {
        connection.handle(command.as_object()?, 9, "s")
    }

    #[test]
    fn hello_chooses_numbers_and_deltas() {
        let mut connection = Connection::default();
        let update = json!({"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": "a"}, "seq": 3});
        let (text, mut answer) = (update.to_string(), None);
        assert!(connection.expands(&text));
        let plain: Value = serde_json::from_str(&connection.event(text, &mut answer).unwrap()).unwrap();
        assert_eq!(plain["message"]["content"][0]["text"], "a");
        assert_eq!(plain["message"], plain["assistantMessageEvent"]["partial"]);
        assert_eq!(plain.get("seq"), None);
        let reply = handle(
            &mut connection,
            json!({"type": "hello", "sequence": true, "deltas": true, "heartbeat": 5}),
        );
        let Some(Local::Answer(data)) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(
            (data["lastSeq"].as_u64(), data["refused"][0]["field"].as_str()),
            (Some(9), Some("heartbeat"))
        );
        assert_eq!(data["dialect"], "pi", "the dialect of the worker's agent");
        // The stream has whole messages now and then, and those of older workers in each update.
        let mut whole = update.clone();
        whole["message"] = json!({});
        for event in [update, whole] {
            let text = event.to_string();
            assert!(!connection.expands(&text));
            assert_eq!(
                connection.event(text, &mut answer).unwrap(),
                r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a"},"seq":3}"#
            );
        }
    }

    #[test]
    fn nested_event_follows_numbers_and_filter() {
        let mut connection = Connection::default();
        let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let line = format!(r#"{{"type":"tool_execution_end","result":{nested},"seq":3}}"#);
        let plain = format!(r#"{{"type":"tool_execution_end","result":{nested}}}"#);
        assert_eq!(connection.event(line.clone(), &mut None), Some(plain));
        handle(
            &mut connection,
            json!({"type": "hello", "sequence": true, "events": ["agent_end"]}),
        );
        assert_eq!(connection.event(line, &mut None), None);
    }

    #[test]
    fn replay_of_another_instance_goes_to_worker() {
        let mut connection = Connection::default();
        let command = json!({"type": "replay", "after": 4, "instance": "other"});
        assert_eq!(handle(&mut connection, command), None);
        let command = json!({"type": "replay", "after": 4, "instance": "s"});
        assert_eq!(handle(&mut connection, command), Some(Local::Replay(4)));
    }
}
