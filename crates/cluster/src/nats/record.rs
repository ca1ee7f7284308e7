//! One message of a session: its headers say which lines it has, and its payload has them, unless they are in parts.

use async_nats::HeaderMap;
use store::{Result, SessionId, StoreError};

use super::Place;

/// Number of lines of the session before this message.
const START: &str = "Pinion-Start";
/// Number of lines in this message.
const LINES: &str = "Pinion-Lines";
/// The append's own id. After a lost response it tells whether the append was stored.
const APPEND: &str = "Pinion-Append";
/// Number of parts; only in messages without lines of their own.
const PARTS: &str = "Pinion-Parts";

/// What the headers of a message say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Number of lines before it.
    pub(super) start: u64,
    /// Number of its lines; at least one.
    pub(super) lines: u64,
    /// The append's own id.
    pub(super) append: String,
    /// Number of parts that have its lines; 0 if its payload has them.
    pub(super) parts: u64,
    /// Its sequence in the stream; 0 until it is stored.
    pub(super) sequence: u64,
}

impl Record {
    /// Reads the headers of a message.
    pub(super) fn of(session: &SessionId, headers: &HeaderMap, sequence: u64) -> Result<Self> {
        let number = |name: &str| -> Option<u64> { headers.get(name)?.as_str().parse().ok() };
        let read = || {
            let record = Self {
                start: number(START)?,
                lines: number(LINES).filter(|lines| *lines > 0)?,
                append: headers.get(APPEND)?.as_str().to_owned(),
                parts: if headers.get(PARTS).is_some() {
                    number(PARTS)?
                } else {
                    0
                },
                sequence,
            };
            record.start.checked_add(record.lines)?;
            Some(record)
        };
        read().ok_or_else(|| StoreError::Damaged {
            session: session.to_string(),
            position: number(START).unwrap_or_default(),
            reason: format!("message {sequence} of the stream lacks the headers of a session"),
        })
    }

    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(START, self.start.to_string());
        headers.insert(LINES, self.lines.to_string());
        headers.insert(APPEND, self.append.as_str());
        if self.parts > 0 {
            headers.insert(PARTS, self.parts.to_string());
        }
        headers
    }

    /// Where the session is after this message.
    pub(super) fn end(&self) -> Place {
        Place {
            position: self.start + self.lines,
            sequence: self.sequence,
        }
    }
}
