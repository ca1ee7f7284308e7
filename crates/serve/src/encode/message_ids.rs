//! Members at the end of lines for clients of today's oh-my-pi (dialects.md 14): one id in all lines of a message, unique among the
//! sessions of a connection, and whether a run has ended for good.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wire::{Dialect, Event};

/// The ids of a session's messages.
#[derive(Debug, Default)]
pub(super) struct MessageIds {
    /// Messages of all sessions of the connection.
    count: Arc<AtomicU64>,
    /// The messages that have begun and not ended. A note of an extension may come within an answer.
    open: Vec<u64>,
}

impl MessageIds {
    /// The ids of another session.
    pub(super) fn for_another(&self) -> Self {
        Self {
            count: Arc::clone(&self.count),
            open: Vec::new(),
        }
    }

    /// Adds the id to the line that was just written for an event, if it is about a message, and the members of the end of a run.
    /// `may_wake` says whether the end of a background process may begin another run.
    pub(super) fn event(&mut self, event: &Event, may_wake: bool, dialect: Dialect, out: &mut Vec<u8>) {
        match event {
            Event::MessageStart { .. } => {
                let id = self.next();
                self.open.push(id);
                add(id, dialect, out);
            }
            Event::MessageEnd { .. } => {
                // An end without a start needs an id all the same.
                let id = self.open.pop().unwrap_or_else(|| self.next());
                add(id, dialect, out);
            }
            Event::AgentEnd { .. } => {
                // No message is open after a run.
                self.open.clear();
                // The end of a run that the agent continues by itself is not written (row 40).
                let members = match may_wake {
                    true => ",\"isTerminal\":false,\"yielded\":true,\"awaitingAsyncWork\":true",
                    false => ",\"isTerminal\":true,\"yielded\":true",
                };
                append(members, dialect, out);
            }
            Event::SessionChanged { .. } => self.open.clear(),
            _ => {}
        }
    }

    /// Adds the id of the answer to the `message_update` that was just written.
    pub(super) fn update(&self, dialect: Dialect, out: &mut Vec<u8>) {
        if let Some(id) = self.open.last() {
            add(*id, dialect, out);
        }
    }

    fn next(&self) -> u64 {
        // The numbers must only differ; nothing else is ordered by them.
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Adds the id to the object at the end of `out`.
fn add(id: u64, dialect: Dialect, out: &mut Vec<u8>) {
    append(&format!(",\"messageId\":\"msg-{id}\""), dialect, out);
}

/// Adds members, which begin with a comma, to the object at the end of `out`.
fn append(members: &str, dialect: Dialect, out: &mut Vec<u8>) {
    if dialect.has_message_ids()
        && let Some(object) = out.strip_suffix(b"}\n")
    {
        out.truncate(object.len());
        out.extend_from_slice(members.as_bytes());
        out.extend_from_slice(b"}\n");
    }
}
