//! What a listing can tell of a line without parsing it as JSON. Every agent of the family writes the members of an entry in
//! one order, without white space; a line that looks otherwise is left to the parser in `scan`.

use serde::Deserialize;

use crate::limits::GLANCE_TAIL;

/// Who spoke, as far as a listing cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Assistant,
    /// A tool, a command, an extension: counted, and nothing more.
    Other,
}

/// The result of a quick look at a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Glance {
    /// An entry that a listing says nothing about.
    Nothing,
    /// A message, with its own time in Unix milliseconds when a person or a model spoke (0 otherwise).
    Message(Speaker, i64),
    /// It has to be parsed.
    Unsure,
}

/// Looks at the beginning and the end of a line. Damage in between is not seen: such a line counts as what it looks like.
pub(crate) fn glance(line: &[u8]) -> Glance {
    look(line.trim_ascii()).unwrap_or(Glance::Unsure)
}

fn look(line: &[u8]) -> Option<Glance> {
    let (kind, mut rest) = plain(line.strip_prefix(b"{\"type\":")?)?;
    match kind {
        b"message" => {}
        b"session_info" | b"title_change" => return None,
        _ => return Some(Glance::Nothing),
    }
    // Both braces: then the message is the last member, and not torn.
    let body = line.strip_suffix(b"}").filter(|body| body.ends_with(b"}"))?;
    loop {
        let (key, value) = plain(rest.strip_prefix(b",")?)?;
        let value = value.strip_prefix(b":")?;
        if key == b"message" {
            let (role, _) = plain(value.strip_prefix(b"{\"role\":")?)?;
            return Some(match role {
                b"user" => Glance::Message(Speaker::User, own_time(body)?),
                b"assistant" => Glance::Message(Speaker::Assistant, own_time(body)?),
                _ => Glance::Message(Speaker::Other, 0),
            });
        }
        rest = match value.strip_prefix(b"null") {
            Some(after) => after,
            None => plain(value)?.1,
        };
    }
}

/// A JSON string without escapes at the start of the text, and what follows it.
fn plain(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', text)?;
    let (string, rest) = text.split_at_checked(end)?;
    Some((string, rest.strip_prefix(b"\"")?))
}

/// The `timestamp` of a message at whose closing brace the text ends. A key cannot be mistaken for text, since quotes in text
/// are escaped; and it is the message's own, not that of something inside it, when everything from there to the brace is
/// one whole object.
fn own_time(body: &[u8]) -> Option<i64> {
    #[derive(Deserialize)]
    struct Tail {
        timestamp: i64,
    }
    let tail = body.get(body.len().saturating_sub(GLANCE_TAIL)..)?;
    let key = b"\"timestamp\":";
    let from = tail.get(memchr::memmem::rfind(tail, key)?..)?;
    let digits = from.strip_prefix(key)?.strip_suffix(b"}")?;
    if digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit) {
        return std::str::from_utf8(digits).ok()?.parse().ok();
    }
    let object = [b"{", from].concat();
    serde_json::from_slice::<Tail>(&object)
        .ok()
        .map(|tail| tail.timestamp)
}
