//! The head object of a session: one line of JSON, then the last lines of the session as they are.

use serde::{Deserialize, Serialize};
use store::{Result, SessionId, StoreError};

use crate::limits::{HEAD_APPENDS, HEAD_LIMIT};
use crate::lines;

/// Version of the format. Another one is refused, since its objects may mean something else.
const VERSION: u32 = 1;

/// What the head object says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    version: u32,
    /// Random, new for each life of the session.
    pub(super) generation: String,
    /// Number of lines of the session.
    pub(super) position: u64,
    /// Objects with the lines before those in the head, in order.
    pub(super) segments: Vec<Segment>,
    /// The last appends, oldest first.
    appends: Vec<Append>,
    /// The last lines.
    #[serde(skip)]
    pub(super) tail: Vec<Vec<u8>>,
}

/// An object with lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Segment {
    /// Number of lines before it.
    pub(super) start: u64,
    /// Number of its lines.
    pub(super) lines: u64,
    /// Id of the append that made it, a part of its name.
    pub(super) append: String,
}

/// An append that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Append {
    start: u64,
    end: u64,
    id: String,
}

/// What a head knows of an append that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was stored; the position behind it.
    Stored(u64),
    /// It was not stored, and never will be with the tag it was sent with.
    Refused,
    /// It began before the appends that the head remembers.
    Forgotten,
}

impl Head {
    /// Reads a head object.
    pub(super) fn read(session: &SessionId, bytes: &[u8]) -> Result<Self> {
        let damaged = |reason: String| StoreError::Damaged {
            session: session.to_string(),
            position: 0,
            reason,
        };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (json, tail) = end
            .and_then(|end| bytes.split_at_checked(end + 1))
            .ok_or_else(|| damaged("its head object has no line feed".to_owned()))?;
        let mut head: Self =
            serde_json::from_slice(json).map_err(|e| damaged(format!("its head object: {e}")))?;
        if head.version != VERSION {
            return Err(damaged(format!(
                "its head object has version {}; this program knows {VERSION}",
                head.version
            )));
        }
        if !tail.is_empty() {
            head.tail = lines::split(tail).ok_or_else(|| damaged("its head object is torn".to_owned()))?;
        }
        if head.tail_start().is_none() {
            return Err(damaged(
                "its head object has more lines than the session".to_owned(),
            ));
        }
        Ok(head)
    }

    /// The object's bytes.
    pub(super) fn write(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(&lines::join(&self.tail));
        if bytes.len() > HEAD_LIMIT {
            return Err(StoreError::EntryTooLarge { bytes: bytes.len() });
        }
        Ok(bytes)
    }

    /// Position of the first line in the head itself.
    pub(super) fn tail_start(&self) -> Option<u64> {
        self.position.checked_sub(self.tail.len() as u64)
    }

    pub(super) fn tail_bytes(&self) -> usize {
        self.tail.iter().map(|line| line.len() + 1).sum()
    }

    /// The head after an append.
    pub(super) fn with(&self, lines: &[Vec<u8>], append: &str) -> Self {
        let mut next = self.clone();
        next.version = VERSION;
        if next.generation.is_empty() {
            append.clone_into(&mut next.generation);
        }
        next.tail.extend_from_slice(lines);
        next.position += lines.len() as u64;
        let first = (next.appends.len() + 1).saturating_sub(HEAD_APPENDS);
        next.appends.drain(..first);
        next.appends.push(Append {
            start: self.position,
            end: next.position,
            id: append.to_owned(),
        });
        next
    }

    /// Takes the lines out of the head, for a segment that the head names from now on.
    pub(super) fn spill(&mut self, append: &str) -> Option<(Segment, Vec<u8>)> {
        let segment = Segment {
            start: self.tail_start()?,
            lines: self.tail.len() as u64,
            append: append.to_owned(),
        };
        let text = lines::join(&std::mem::take(&mut self.tail));
        self.segments.push(segment.clone());
        Some((segment, text))
    }

    /// What became of the append of this id that was sent for position `start`.
    pub(super) fn outcome(&self, start: u64, id: &str) -> Outcome {
        match self.appends.iter().find(|append| append.start == start) {
            Some(append) if append.id == id => Outcome::Stored(append.end),
            Some(_) => Outcome::Refused,
            None if self.position > start && self.appends.first().is_some_and(|a| a.start > start) => {
                Outcome::Forgotten
            }
            None => Outcome::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    #[test]
    fn head_reads_back_what_was_written() {
        let id = SessionId::new("s").unwrap();
        let mut head = Head::default().with(&[line("h"), line("")], "a");
        assert_eq!(Head::read(&id, &head.write().unwrap()).unwrap(), head);
        let (segment, text) = head.spill("b").unwrap();
        assert_eq!((segment.start, segment.lines, text), (0, 2, line("h\n\n")));
        head = head.with(&[line("x")], "c");
        assert_eq!(Head::read(&id, &head.write().unwrap()).unwrap(), head);
        assert_eq!((head.position, head.tail_start()), (3, Some(2)));
        for damaged in [&b"{}"[..], b"{}\n", b"x\n"] {
            assert!(Head::read(&id, damaged).is_err());
        }
    }

    #[test]
    fn outcome_names_stored_and_refused_appends() {
        let mut head = Head::default().with(&[line("a")], "first");
        assert_eq!(head.outcome(0, "first"), Outcome::Stored(1));
        assert_eq!(head.outcome(0, "other"), Outcome::Refused);
        assert_eq!(head.outcome(1, "next"), Outcome::Refused);
        for number in 0..HEAD_APPENDS {
            head = head.with(&[line("b")], &number.to_string());
        }
        assert_eq!(head.outcome(0, "first"), Outcome::Forgotten);
        assert_eq!(head.appends.len(), HEAD_APPENDS);
    }
}
