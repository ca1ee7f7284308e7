//! One message of a session: its headers say which lines it has, and its payload has them, unless they are in parts.

use async_nats::HeaderMap;
use store::{Result, SessionId, StoreError};

use super::Place;
use crate::limits::NAMED_BEFORE;

/// Number of lines of the session before this message.
const START: &str = "Pinion-Start";
/// Number of lines in this message.
const LINES: &str = "Pinion-Lines";
/// The append's own id. After a lost response it tells whether the append was stored.
const APPEND: &str = "Pinion-Append";
/// Number of parts; only in messages without lines of their own.
const PARTS: &str = "Pinion-Parts";
/// Sequences of the messages of the session right before this one, newest first: the first one, then how much less each next one is.
const BEFORE: &str = "Pinion-Before";

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
    /// Sequences of the messages of the session right before it, newest first, at most [`NAMED_BEFORE`]. Empty in the first message, and
    /// in messages of older versions.
    pub(super) before: Vec<u64>,
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
                before: match headers.get(BEFORE) {
                    Some(before) => sequences(before.as_str())?,
                    None => Vec::new(),
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
        if !self.before.is_empty() {
            headers.insert(BEFORE, differences(&self.before));
        }
        headers
    }

    /// Where the session is after this message.
    pub(super) fn end(&self) -> Place {
        let newest = std::iter::once(self.sequence).chain(self.before.iter().copied());
        Place {
            position: self.start + self.lines,
            newest: newest.take(NAMED_BEFORE).collect(),
        }
    }
}

/// The first sequence, then how much less each next one is: these numbers are short, since the messages of a session lie close together.
fn differences(sequences: &[u64]) -> String {
    let mut text = String::new();
    let mut newer = None;
    for sequence in sequences {
        if let Some(newer) = newer {
            text.push_str(&format!(",{}", newer - sequence));
        } else {
            text.push_str(&sequence.to_string());
        }
        newer = Some(sequence);
    }
    text
}

/// Reads [`differences`]. None if the sequences do not fall.
fn sequences(text: &str) -> Option<Vec<u64>> {
    let mut sequences: Vec<u64> = Vec::new();
    for number in text.split(',').take(NAMED_BEFORE) {
        let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
        let sequence = match sequences.last() {
            Some(newer) => newer.checked_sub(number).filter(|sequence| *sequence > 0)?,
            None => number,
        };
        sequences.push(sequence);
    }
    Some(sequences)
}

#[cfg(test)]
mod tests {
    use super::{differences, sequences};

    #[test]
    fn sequences_before_are_read_as_written() {
        for before in [vec![9], vec![1_000_000, 999_999, 12, 1]] {
            assert_eq!(sequences(&differences(&before)), Some(before));
        }
        assert_eq!(differences(&[40, 30, 29]), "40,10,1");
    }

    #[test]
    fn sequences_that_do_not_fall_are_refused() {
        for wrong in ["", "0", "5,0", "5,5", "5,-1", "x"] {
            assert_eq!(sequences(wrong), None, "{wrong}");
        }
    }
}
