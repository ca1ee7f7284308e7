//! Members of every line of a connection that are not part of its event: the session and the number of an event.
//! Numbered lines are kept for a while, so that `replay` can send them again.

use std::sync::Arc;

use super::commands::EventNumbers;
use super::ring::Ring;

/// Numbers the events of one connection and keeps the latest lines.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Number of the last event that has one.
    last: u64,
    recent: Ring,
}

impl Numbers {
    /// The latest lines.
    pub(crate) fn recent(&self) -> &Ring {
        &self.recent
    }

    /// The lines from `start` on are events of a session that are sent now; `numbered` gives each its number. False when there
    /// are none.
    pub(crate) fn sent(
        &mut self,
        from: Option<&Arc<str>>,
        numbered: bool,
        start: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if out.len() == start {
            return false;
        }
        if !numbered {
            self.answered(from, start, out);
            return true;
        }
        // Members are added to the finished line: the encoder does not know numbers, and a line may be one of several for an event.
        let session = member(from);
        let lines = out.split_off(start);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let Some(body) = line.strip_suffix(b"}\n") else {
                out.extend_from_slice(line);
                continue;
            };
            let begin = out.len();
            self.last += 1;
            out.extend_from_slice(body);
            out.extend_from_slice(session.as_bytes());
            out.extend_from_slice(format!(",\"seq\":{}}}\n", self.last).as_bytes());
            self.recent.push(self.last, out.get(begin..).unwrap_or_default());
        }
        true
    }

    /// The lines from `start` on have no numbers: responses, or events of a client that wants none.
    pub(crate) fn answered(&self, from: Option<&Arc<str>>, start: usize, out: &mut Vec<u8>) {
        // Lines of the first session have no member `session`: clients that know one session only would not expect it.
        if from.is_none() {
            return;
        }
        let session = member(from);
        let lines = out.split_off(start);
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"}\n") {
                Some(body) => {
                    out.extend_from_slice(body);
                    out.extend_from_slice(session.as_bytes());
                    out.extend_from_slice(b"}\n");
                }
                None => out.extend_from_slice(line),
            }
        }
    }
}

impl EventNumbers for Numbers {
    fn last(&self) -> u64 {
        self.last
    }

    fn count_after(&self, number: u64) -> Option<usize> {
        self.recent.count_after(number, self.last)
    }
}

/// The member that names a session; nothing for the first one.
fn member(from: Option<&Arc<str>>) -> String {
    match from {
        None => String::new(),
        Some(session) => format!(",\"session\":{}", serde_json::Value::from(session.as_ref())),
    }
}
