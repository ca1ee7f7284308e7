//! The first line of a session file: reading it leniently, making a new one, putting a damaged one together again.

use std::path::Path;

use serde_json::{Map, Value};
use wire::entry::SESSION_VERSION;
use wire::{Extra, SessionHeader};

use crate::paths::id_of_file_name;
use crate::stamp;

/// A header line with what other agents of the family add to it.
#[derive(Debug, Clone)]
pub(crate) struct HeaderLine {
    pub(crate) header: SessionHeader,
    /// The session's name in xcsh files (dialects.md 12).
    pub(crate) title: Option<String>,
    /// True if the line was repaired before it could be parsed.
    pub(crate) mended: bool,
}

/// A header for a new session: version 3, a fresh UUIDv7, the present time. `cwd` is the session's working directory; an empty
/// `parent_session` counts as none (behaviour.md 9.3).
#[must_use]
pub fn new_header(cwd: &str, parent_session: Option<&str>) -> SessionHeader {
    SessionHeader {
        kind: "session".to_owned(),
        version: Some(SESSION_VERSION),
        id: stamp::session_id(),
        timestamp: stamp::now_iso(),
        cwd: cwd.to_owned(),
        parent_session: parent_session.filter(|p| !p.is_empty()).map(str::to_owned),
        extra: wire::Extra::default(),
    }
}

/// Version of a header: 1 when it does not say, 3 when it says something odd.
pub(crate) fn version_of(map: &Map<String, Value>) -> u32 {
    match map.get("version") {
        None | Some(Value::Null) => 1,
        Some(v) => v
            .as_u64()
            .and_then(|v| u32::try_from(v).ok())
            .unwrap_or(SESSION_VERSION),
    }
}

/// Reads a header from a `session` line. None unless its id is a string that says something; anything else may be missing.
pub(crate) fn from_map(map: &Map<String, Value>) -> Option<HeaderLine> {
    let text = |key: &str| map.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
    if text("type") != Some("session") {
        return None;
    }
    let header = SessionHeader {
        kind: "session".to_owned(),
        version: map.get("version").map(|_| version_of(map)),
        id: text("id")?.to_owned(),
        timestamp: text("timestamp").unwrap_or_default().to_owned(),
        cwd: text("cwd").unwrap_or_default().to_owned(),
        // Version 1 files of one seed call the parent `branchedFrom`.
        parent_session: text("parentSession")
            .or_else(|| text("branchedFrom"))
            .map(str::to_owned),
        extra: unknown(map),
    };
    Some(HeaderLine {
        header,
        title: text("title").map(str::to_owned),
        mended: false,
    })
}

/// What other agents add to a header.
fn unknown(map: &Map<String, Value>) -> Extra {
    const KNOWN: [&str; 6] = ["type", "version", "id", "timestamp", "cwd", "parentSession"];
    let mut extra = map.clone();
    extra.retain(|name, _| !KNOWN.contains(&name.as_str()));
    Extra::from(extra)
}

/// Returns true if this damaged line may have been a header. One flipped byte leaves at least two of its marks.
pub(crate) fn looks_like_header(line: &[u8]) -> bool {
    let marks: [&[u8]; 4] = [
        b"\"type\":\"session\"",
        b"\"version\":",
        b"\"cwd\":",
        b"\"timestamp\":",
    ];
    marks
        .iter()
        .filter(|mark| memchr::memmem::find(line, mark).is_some())
        .count()
        >= 2
}

/// Makes a header from the remains of a damaged one, the file's name and the time of the first entry.
pub(crate) fn rebuild(remains: &[u8], path: Option<&Path>, first_time: &str) -> SessionHeader {
    let text = String::from_utf8_lossy(remains);
    let id = path
        .and_then(id_of_file_name)
        .map(str::to_owned)
        .or_else(|| remains_of(&text, "id"));
    SessionHeader {
        kind: "session".to_owned(),
        version: Some(SESSION_VERSION),
        id: id.unwrap_or_else(stamp::session_id),
        timestamp: remains_of(&text, "timestamp").unwrap_or_else(|| first_time.to_owned()),
        cwd: remains_of(&text, "cwd").unwrap_or_default(),
        parent_session: remains_of(&text, "parentSession"),
        extra: wire::Extra::default(),
    }
}

/// The string value of `"key":"value"` in text that need not be JSON as a whole.
fn remains_of(text: &str, key: &str) -> Option<String> {
    let (_, after) = text.split_once(&format!("\"{key}\":"))?;
    let value = serde_json::Deserializer::from_str(after)
        .into_iter::<String>()
        .next()?
        .ok()?;
    (!value.is_empty()).then_some(value)
}
