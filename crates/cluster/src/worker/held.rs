//! Lines of the agent that clients must not see yet. On a full disk the agent keeps entries in memory and goes on. The store gets only
//! entries of the file, so later lines speak of entries that would be lost with this worker.

use anyhow::{Result, bail};

use super::agent_line::AgentLine;
use crate::limits::{EVENT_BATCH, HELD_BYTES, HELD_LINES};

/// The lines that wait until the agent has written its entries.
#[derive(Default)]
pub(crate) struct HeldLines {
    lines: Vec<AgentLine>,
    /// About the bytes of these lines.
    bytes: usize,
    /// Entries of the session are in the memory of the agent only.
    is_waiting: bool,
}

impl HeldLines {
    /// Returns true while entries of the session could not be written.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Takes lines of the agent. Returns the lines that clients may see now, among them the `storage_status` that says why others wait.
    /// They come in batches of at most [`EVENT_BATCH`]. There is at least one batch, which may be empty.
    ///
    /// # Errors
    /// Too many lines wait.
    pub(crate) fn pass(&mut self, batch: Vec<AgentLine>) -> Result<Vec<Vec<AgentLine>>> {
        let mut ready = Vec::new();
        for line in batch {
            let pending = pending(&line);
            if pending == Some(0) {
                self.is_waiting = false;
                self.bytes = 0;
                ready.append(&mut self.lines);
            }
            if self.is_waiting {
                self.bytes += line.bytes();
                self.lines.push(line);
            } else {
                ready.push(line);
            }
            self.is_waiting |= pending.is_some_and(|pending| pending > 0);
        }
        if self.lines.len() > HELD_LINES || self.bytes > HELD_BYTES {
            bail!("the session file cannot be written, and too many events wait for it");
        }
        let mut batches = Vec::new();
        while ready.len() > EVENT_BATCH {
            let rest = ready.split_off(EVENT_BATCH);
            batches.push(std::mem::replace(&mut ready, rest));
        }
        batches.push(ready);
        Ok(batches)
    }
}

/// How many entries could not be written, if the line says so.
fn pending(line: &AgentLine) -> Option<u64> {
    if line.kind() != "storage_status" {
        return None;
    }
    line.get("pending")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{EVENT_BATCH, HELD_BYTES, HELD_LINES, HeldLines};
    use crate::worker::agent_line::AgentLine;

    fn line(value: &Value) -> AgentLine {
        AgentLine::parse(value.to_string().as_bytes()).unwrap()
    }

    fn status(pending: u64) -> AgentLine {
        line(&json!({"type": "storage_status", "path": "/s.jsonl", "pending": pending}))
    }

    fn texts(lines: &[AgentLine]) -> Vec<String> {
        lines.iter().map(|line| line.text().unwrap()).collect()
    }

    #[test]
    fn lines_wait_until_entries_are_written() {
        let mut held = HeldLines::default();
        let event = |name: &str| line(&json!({"type": name, "pending": 3}));
        let mut pass = |lines: Vec<AgentLine>| texts(&held.pass(lines).unwrap().concat());
        assert_eq!(
            pass(vec![event("a"), status(1), event("b")]),
            texts(&[event("a"), status(1)])
        );
        assert!(pass(vec![event("c"), status(2)]).is_empty());
        let rest = pass(vec![status(0), event("d")]);
        assert_eq!(
            rest,
            texts(&[event("b"), event("c"), status(2), status(0), event("d")])
        );
        assert!(!held.is_waiting());
    }

    #[test]
    fn too_many_waiting_lines_are_an_error() {
        let mut held = HeldLines::default();
        held.pass(vec![status(1)]).unwrap();
        let lines = vec![line(&json!({"type": "a"})); HELD_LINES + 1];
        assert!(held.pass(lines).is_err());
        let mut held = HeldLines::default();
        held.pass(vec![status(1)]).unwrap();
        let long = line(&json!({"type": "a", "text": "x".repeat(HELD_BYTES)}));
        assert!(held.pass(vec![long]).is_err());
    }

    #[test]
    fn waiting_lines_come_in_batches() {
        let mut held = HeldLines::default();
        held.pass(vec![status(1)]).unwrap();
        assert!(held.is_waiting());
        let lines = vec![line(&json!({"type": "a"})); 2 * EVENT_BATCH];
        assert_eq!(held.pass(lines).unwrap().concat().len(), 0);
        let sizes: Vec<usize> = held.pass(vec![status(0)]).unwrap().iter().map(Vec::len).collect();
        assert_eq!(sizes, [EVENT_BATCH, EVENT_BATCH, 1]);
    }
}
