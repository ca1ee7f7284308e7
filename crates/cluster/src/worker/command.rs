//! Commands as they come from gateways: reading them, which of them workers refuse, and what happens to a command that another worker
//! had begun. Pure.

use std::time::{Duration, SystemTime};

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use serde_json::{Value, json};

use super::agent_line::AgentLine;
use super::child::Line;
use crate::bus::{Begun, Frame, RECORDED};
use crate::limits::COMMAND_AGE;

/// Which gateway waits for the response.
const GATEWAY: &str = "Pinion-Gateway";
/// The idempotency key, in letters and digits.
const KEY: &str = "Pinion-Key";

/// The response to a command whose worker was lost between its beginning and its response.
pub(crate) const MAY_HAVE_RUN: &str = "The worker that had this command was lost. The command may have run; read the state of the session before you send it again";

/// A command of the queue.
pub(crate) struct Command {
    pub(crate) sequence: u64,
    /// When NATS stored it.
    pub(crate) stored: SystemTime,
    pub(crate) gateway: String,
    pub(crate) key: String,
    pub(crate) line: Line,
}

/// The headers of a command.
pub(crate) fn headers(gateway: &str, key: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(GATEWAY, gateway);
    headers.insert(KEY, key);
    headers
}

impl Command {
    /// Reads a message of the queue; none if no gateway made it.
    pub(crate) fn read(message: &StreamMessage) -> Option<Self> {
        let word = |name: &str| -> Option<String> {
            let word = message.headers.get(name)?.as_str();
            let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_word.then(|| word.to_owned())
        };
        let Ok(Value::Object(line)) = serde_json::from_slice(&message.payload) else {
            return None;
        };
        Some(Self {
            sequence: message.sequence,
            stored: message.time.into(),
            gateway: word(GATEWAY)?,
            key: word(KEY)?,
            line,
        })
    }

    /// Its `type`.
    pub(crate) fn kind(&self) -> &str {
        self.line.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// A response that says that it failed.
    pub(crate) fn error(&self, reason: &str) -> String {
        let mut response = Line::new();
        if let Some(id) = self.line.get("id") {
            response.insert("id".to_owned(), id.clone());
        }
        response.insert("type".to_owned(), json!("response"));
        response.insert("command".to_owned(), json!(self.kind()));
        response.insert("success".to_owned(), json!(false));
        response.insert("error".to_owned(), json!(reason));
        Value::Object(response).to_string()
    }

    /// A response for the gateway that sent it.
    pub(crate) fn response(&self, line: &str) -> Frame {
        Frame::Response {
            gateway: self.gateway.clone(),
            key: self.key.clone(),
            line: line.to_owned(),
        }
    }
}

/// Lines that are answers of the client, and have no response themselves.
pub(crate) fn is_frame(kind: &str) -> bool {
    matches!(
        kind,
        "extension_ui_response" | "host_tool_update" | "host_tool_result" | "host_uri_result"
    )
}

/// The id of the shell command that an event is about.
pub(crate) fn shell_of(event: &AgentLine) -> Option<String> {
    if !event.kind().starts_with("bash_execution_") {
        return None;
    }
    event.get("id")
}

/// Why workers refuse a command.
pub(crate) fn refusal(kind: &str) -> Option<&'static str> {
    match kind {
        "new_session" | "reset" | "switch_session" | "fork" | "branch" | "clone" | "handoff"
        | "continue_session" | "open_session" | "close_session" | "delete_session" => {
            Some("Not available through a gateway, which has one session. Attach to another session instead")
        }
        "list_sessions" | "list_open_sessions" => {
            Some("Not available through a gateway. Use pinion sessions list URL")
        }
        _ => None,
    }
}

/// What to do with a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Give it to the agent; with the sequence of its record.
    Run(u64),
    /// Send the response that it got before.
    Answer(String),
    /// Say that it may have run; with the sequence of its record.
    Unknown(u64),
}

/// Decides it from the record and the time for which the command was queued.
pub(crate) fn fate(begun: Begun, kind: &str, age: Duration) -> Fate {
    match begun {
        Begun::Answered(response) => Fate::Answer(response),
        Begun::New(sequence) if age < COMMAND_AGE => Fate::Run(sequence),
        // The record of an old command may have expired.
        Begun::New(sequence) | Begun::Before(sequence) if is_repeatable(kind) => Fate::Run(sequence),
        Begun::New(sequence) | Begun::Before(sequence) => Fate::Unknown(sequence),
    }
}

/// True for commands that leave the session as it is when they run twice.
fn is_repeatable(kind: &str) -> bool {
    kind.starts_with("set_")
        || matches!(
            kind,
            "abort" | "abort_bash" | "abort_retry" | "clear_queue" | "reload_resources"
        )
}

/// True for commands that can change the working directory, themselves or by the run that they begin.
pub(crate) fn can_change_files(kind: &str) -> bool {
    RECORDED(kind) && !is_repeatable(kind)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{AgentLine, COMMAND_AGE, Fate, can_change_files, fate, shell_of};
    use crate::bus::Begun;

    #[test]
    fn begun_commands_run_again_only_if_harmless() {
        let fate = |begun, kind| fate(begun, kind, Duration::ZERO);
        assert_eq!(fate(Begun::New(4), "prompt"), Fate::Run(4));
        assert_eq!(fate(Begun::Before(4), "prompt"), Fate::Unknown(4));
        assert_eq!(fate(Begun::Before(4), "bash"), Fate::Unknown(4));
        assert_eq!(fate(Begun::Before(4), "set_model"), Fate::Run(4));
        assert_eq!(
            fate(Begun::Answered("{}".into()), "prompt"),
            Fate::Answer("{}".into())
        );
    }

    #[test]
    fn shell_events_name_their_command() {
        let id = |kind: &str| {
            let event = json!({"type": kind, "id": "7:s"});
            shell_of(&AgentLine::parse(event.to_string().as_bytes()).unwrap())
        };
        assert_eq!(id("bash_execution_start").as_deref(), Some("7:s"));
        assert_eq!(id("bash_execution_update").as_deref(), Some("7:s"));
        assert_eq!(id("extension_ui_request"), None);
    }

    #[test]
    fn settings_and_questions_change_no_files() {
        for kind in ["prompt", "steer", "follow_up", "continue", "bash", "rewind"] {
            assert!(can_change_files(kind), "{kind}");
        }
        for kind in [
            "set_model",
            "abort",
            "clear_queue",
            "get_state",
            "list_sessions",
            "replay",
        ] {
            assert!(!can_change_files(kind), "{kind}");
        }
    }

    #[test]
    fn command_older_than_its_record_may_have_run() {
        let fate = |begun, kind| fate(begun, kind, COMMAND_AGE);
        assert_eq!(fate(Begun::New(4), "prompt"), Fate::Unknown(4));
        assert_eq!(fate(Begun::New(4), "bash"), Fate::Unknown(4));
        assert_eq!(fate(Begun::New(4), "abort"), Fate::Run(4));
        assert_eq!(
            fate(Begun::Answered("{}".into()), "prompt"),
            Fate::Answer("{}".into())
        );
    }
}
