//! The phases of a session: what it waits for, and what follows then. The turn loop moves from one to the next.

use std::sync::Arc;

use wire::Message;
use wire::event::CompactionReason;
use wire::state::InterruptMode;

use crate::batch::Batch;

/// A run: from `agent_start` to `agent_end`.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) added: Vec<Arc<Message>>,
    pub(crate) interrupt_mode: InterruptMode,
    /// Results of tools wait for the model.
    pub(crate) goes_on: bool,
}

impl Run {
    pub(crate) fn new(interrupt_mode: InterruptMode) -> Self {
        Self {
            added: Vec::new(),
            interrupt_mode,
            goes_on: false,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) enum Phase {
    #[default]
    Idle,
    /// A request is out; `true` once its `message_start` was sent.
    Asking(Run, bool),
    Tools(Run, Batch),
    /// A failed run waits to be tried again.
    Waiting,
    /// A run failed for good, with this error; the caller chooses another model.
    ChoosingModel(Run, String),
    /// The size of the context is checked.
    Checking(Next),
    /// The conversation is being compacted.
    Compacting(CompactionReason, Next),
    /// The session moves to another place of its tree; a summary may be in the making. This was the newest queued message
    /// before.
    Moving(u64),
}

/// What comes after looking at the context or compacting it.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    /// The next turn of a run that is under way.
    Turn(Run),
    /// A run that begins with these messages.
    Run(Vec<Arc<Message>>),
    /// The run that overflowed, once more.
    Again,
    /// Nothing, unless something was queued meanwhile, after the message with this number.
    Rest(u64),
    /// The same after a run that ended well, with empty queues: the model may have to be reminded of its todos.
    Remind,
}

/// Attempts to make a prompt succeed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recovery {
    /// Retries made since the last success.
    pub(crate) attempt: u32,
    /// Has the prompt overflowed before? One compaction per prompt must do.
    pub(crate) overflowed: bool,
}
