//! Commands as they come from gateways: reading them, which of them workers refuse, and what happens to a command that another worker
//! had begun. Pure.

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use serde_json::{Value, json};

use super::child::Line;
use crate::bus::{Begun, Frame};

/// Which gateway waits for the response.
const GATEWAY: &str = "Pinion-Gateway";
/// The idempotency key, in letters and digits.
const KEY: &str = "Pinion-Key";

/// The response to a command whose worker was lost between its beginning and its response.
pub(crate) const MAY_HAVE_RUN: &str = "The worker that had this command was lost. The command may have run; read the state of the session before you send it again";

/// A command of the queue.
pub(crate) struct Command {
    pub(crate) sequence: u64,
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

/// Decides it from the record.
pub(crate) fn fate(begun: Begun, kind: &str) -> Fate {
    match begun {
        Begun::New(sequence) => Fate::Run(sequence),
        Begun::Answered(response) => Fate::Answer(response),
        Begun::Before(sequence) if is_repeatable(kind) => Fate::Run(sequence),
        Begun::Before(sequence) => Fate::Unknown(sequence),
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

#[cfg(test)]
mod tests {
    use super::{Fate, fate};
    use crate::bus::Begun;

    #[test]
    fn begun_commands_run_again_only_if_harmless() {
        assert_eq!(fate(Begun::New(4), "prompt"), Fate::Run(4));
        assert_eq!(fate(Begun::Before(4), "prompt"), Fate::Unknown(4));
        assert_eq!(fate(Begun::Before(4), "bash"), Fate::Unknown(4));
        assert_eq!(fate(Begun::Before(4), "set_model"), Fate::Run(4));
        assert_eq!(
            fate(Begun::Answered("{}".into()), "prompt"),
            Fate::Answer("{}".into())
        );
    }
}
