//! Lines of the agent that clients must not see yet. On a full disk the agent keeps entries in memory and goes on. What it says from then
//! on would be lost with this worker, since only what is in the file gets into the store.

use anyhow::{Result, bail};
use serde_json::Value;

use super::child::Line;
use crate::limits::HELD_LINES;

/// The lines that wait until the agent has written its entries.
#[derive(Default)]
pub(crate) struct HeldLines {
    lines: Vec<Line>,
    /// Entries of the session are in the memory of the agent only.
    is_waiting: bool,
}

impl HeldLines {
    /// Returns true while entries of the session could not be written.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Takes lines of the agent. Returns those that clients may see now: the `storage_status` that says why others wait is one of them.
    ///
    /// # Errors
    /// Too many lines wait.
    pub(crate) fn pass(&mut self, batch: Vec<Line>) -> Result<Vec<Line>> {
        let mut ready = Vec::new();
        for line in batch {
            let pending = pending(&line);
            if pending == Some(0) {
                self.is_waiting = false;
                ready.append(&mut self.lines);
            }
            if self.is_waiting {
                self.lines.push(line);
            } else {
                ready.push(line);
            }
            self.is_waiting |= pending.is_some_and(|pending| pending > 0);
        }
        if self.lines.len() > HELD_LINES {
            bail!("the session file cannot be written, and too many events wait for it");
        }
        Ok(ready)
    }
}

/// How many entries could not be written, if the line says so.
fn pending(line: &Line) -> Option<u64> {
    let is_status = line.get("type").and_then(Value::as_str) == Some("storage_status");
    line.get("pending").and_then(Value::as_u64).filter(|_| is_status)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{HELD_LINES, HeldLines};
    use crate::worker::child::Line;

    fn line(value: Value) -> Line {
        match value {
            Value::Object(line) => line,
            other => panic!("{other}"),
        }
    }

    fn status(pending: u64) -> Line {
        line(json!({"type": "storage_status", "path": "/s.jsonl", "pending": pending}))
    }

    #[test]
    fn lines_wait_until_entries_are_written() {
        let mut held = HeldLines::default();
        let event = |name: &str| line(json!({"type": name, "pending": 3}));
        let first = held.pass(vec![event("a"), status(1), event("b")]).unwrap();
        assert_eq!(first, [event("a"), status(1)]);
        assert!(held.is_waiting());
        assert!(held.pass(vec![event("c"), status(2)]).unwrap().is_empty());
        let rest = held.pass(vec![status(0), event("d")]).unwrap();
        assert_eq!(rest, [event("b"), event("c"), status(2), status(0), event("d")]);
        assert!(!held.is_waiting());
    }

    #[test]
    fn too_many_waiting_lines_are_an_error() {
        let mut held = HeldLines::default();
        held.pass(vec![status(1)]).unwrap();
        let lines = vec![line(json!({"type": "a"})); HELD_LINES + 1];
        assert!(held.pass(lines).is_err());
    }
}
