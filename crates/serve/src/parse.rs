//! A line to a command, or to the response that says why it is none (behaviour.md 1.2 to 1.4). What commands take is said
//! by the table in `wire`; what they do is not known here.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use wire::limits::{MAX_DEPTH, MAX_VALUES};
use wire::protocol::FRAMES;
use wire::table::{BadCommand, LineHead};
use wire::{Command, Response, values};

use crate::limits::MAX_NAME_ECHO;
use crate::scan;

/// How serde begins its error about a member that is there twice.
const REPEATED: &str = "duplicate field";

/// A command with what its response needs.
#[derive(Debug, Clone)]
pub struct Request {
    /// The `id`, any JSON value.
    pub id: Option<Box<RawValue>>,
    /// The session it is for; the first one when it does not say.
    pub session: Option<Box<str>>,
    /// The command's name as the client wrote it.
    pub name: String,
    /// The command.
    pub command: Command,
}

impl Request {
    /// The response to this request.
    pub fn respond(self, outcome: Result<wire::Reply, String>) -> Response {
        Response {
            id: self.id,
            command: Some(Value::String(self.name)),
            outcome,
        }
    }
}

/// What came in.
#[derive(Debug)]
pub enum Inbound {
    /// A command; it wants exactly one response.
    Request(Request),
    /// A frame that is no command: its name and the whole line. Never answered.
    Frame(&'static str, String),
    /// The line was no command; this is to be sent.
    Rejected(Response),
    /// The input is over; nothing comes after this.
    Eof,
}

/// Turns a line (without its line feed) into what it means. Never fails: what cannot be understood is a
/// [`Inbound::Rejected`] with the fitting response.
#[must_use]
pub fn parse_line(line: &[u8]) -> Inbound {
    let text = String::from_utf8_lossy(line);
    // Before serde sees the line: its recursion uses the stack, which nesting in the input must not decide.
    let found = scan::scan(text.as_bytes());
    if found.depth > MAX_DEPTH {
        return no_json(format!("nested deeper than {MAX_DEPTH} levels"));
    }
    // Before serde sees the line, too: it would make values of many times the memory of the text.
    if values::has_too_many(text.as_bytes()) {
        return no_json(format!("more than {MAX_VALUES} values"));
    }
    parse_text(&readable(text, found))
}

/// A line as [`parse_line`] reads it, for callers that pass it on. As in pi, whose decoder replaces invalid bytes by U+FFFD: the command
/// runs and its response has the `id`. JavaScript clients also send halves of surrogate pairs when they cut text. Pi reads them, so
/// the line must not be refused.
#[must_use]
pub fn line_text(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    let found = scan::scan(text.as_bytes());
    readable(text, found)
}

fn readable(text: Cow<'_, str>, found: scan::Scan) -> Cow<'_, str> {
    if found.lone_surrogate {
        return scan::repair(&text).into();
    }
    text
}

/// The answer to a line longer than `limit` bytes.
#[must_use]
pub fn too_long(limit: usize) -> Inbound {
    no_json(format!("line is longer than {limit} bytes"))
}

fn parse_text(text: &str) -> Inbound {
    let start = text.trim_ascii_start();
    // A blank line is a parse error, as in pi (dialects.md 1).
    if start.is_empty() {
        return no_json("Unexpected end of JSON input");
    }
    if !start.starts_with('{') {
        return match serde_json::from_str::<IgnoredAny>(text) {
            // JavaScript cannot ask null for its type; pi dies of it (behaviour.md 1.4).
            Ok(IgnoredAny) if start.starts_with("null") => no_json("null is not an object"),
            // For numbers, texts and arrays JavaScript finds `undefined` as the type, and pi says so.
            Ok(IgnoredAny) => unknown(None, None, "undefined"),
            Err(error) => no_json(error),
        };
    }
    // Only the head now: the command decides how the rest is read, and a frame is handed on as text.
    match serde_json::from_str::<LineHead<'_>>(text) {
        Ok(head) => parse_object(text, &head),
        Err(error) => match without_repeats(text, &error.to_string()) {
            Some(text) => parse_text(&text),
            None => no_json(error),
        },
    }
}

/// The line with the last of its members that repeat a name, as JavaScript reads it, if such members are the error.
fn without_repeats(text: &str, error: &str) -> Option<String> {
    let last = |text| serde_json::from_str::<Map<String, Value>>(text).ok();
    let members = error.starts_with(REPEATED).then(|| last(text))??;
    // Two names of one member are an error that stays.
    Some(Value::Object(members).to_string()).filter(|repaired| repaired != text)
}

fn parse_object(text: &str, head: &LineHead<'_>) -> Inbound {
    let id = || head.id.map(ToOwned::to_owned);
    let Some(kind) = head.kind.map(RawValue::get) else {
        // A line without a type has no name that the response could repeat (behaviour.md 1.3).
        return unknown(id(), None, "undefined");
    };
    let Ok(name) = serde_json::from_str::<Cow<'_, str>>(kind) else {
        // As JavaScript turns a value into text.
        let shown = if kind.starts_with('{') {
            "[object Object]"
        } else {
            kind
        };
        return unknown(id(), serde_json::from_str(cut(kind)).ok(), shown);
    };
    // Before the session is looked at: frames are never answered, not even with an error.
    if let Some((frame, _)) = FRAMES.into_iter().find(|(frame, _)| *frame == name) {
        return Inbound::Frame(frame, text.to_owned());
    }
    let session = match session(head.session) {
        Ok(session) => session,
        Err(error) => return reject(id(), Some(Value::from(cut(&name))), error),
    };
    match Command::parse(&name, text) {
        Ok(command) => Inbound::Request(Request {
            id: id(),
            session,
            name: name.into_owned(),
            command,
        }),
        Err(BadCommand::Unknown(name)) => {
            let name = cut(&name);
            unknown(id(), Some(Value::from(name)), name)
        }
        Err(BadCommand::Params(name, error)) => match without_repeats(text, &error.to_string()) {
            Some(text) => parse_text(&text),
            None => {
                let error = BadCommand::Params(name, error).to_string();
                reject(id(), Some(Value::from(name)), error)
            }
        },
    }
}

/// The handle in a line; null counts as none.
fn session(raw: Option<&RawValue>) -> Result<Option<Box<str>>, String> {
    match raw.map(|raw| serde_json::from_str::<Option<Box<str>>>(raw.get())) {
        None => Ok(None),
        Some(Ok(handle)) => Ok(handle),
        Some(Err(_)) => Err("session must be a string".to_owned()),
    }
}

/// The session that a frame is for; none when it does not say.
pub(crate) fn session_of(line: &str) -> Option<Box<str>> {
    let head: LineHead<'_> = serde_json::from_str(line).ok()?;
    session(head.session).ok()?
}

/// Cuts a name for an error text, so that a huge name does not make a huge response.
fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_NAME_ECHO))
        .unwrap_or_default()
}

fn no_json(reason: impl std::fmt::Display) -> Inbound {
    reject(
        None,
        Some(Value::from("parse")),
        format!("Failed to parse command: {reason}"),
    )
}

fn unknown(id: Option<Box<RawValue>>, command: Option<Value>, shown: &str) -> Inbound {
    reject(id, command, format!("Unknown command: {}", cut(shown)))
}

fn reject(id: Option<Box<RawValue>>, command: Option<Value>, error: String) -> Inbound {
    Inbound::Rejected(Response {
        id,
        command,
        outcome: Err(error),
    })
}
