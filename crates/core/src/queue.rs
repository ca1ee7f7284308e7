//! Messages that wait: steering (taken after each turn) and follow-ups (taken when a run would stop). pi-core.md 1.7.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::state::QueueMode;
use wire::{Event, Message};

/// Which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// Taken after each turn.
    Steering,
    /// Taken when the run would stop.
    FollowUp,
}

/// A message that waits.
#[derive(Debug, Clone)]
pub struct Queued {
    /// What `queue_update` shows of it.
    pub text: String,
    /// The message.
    pub message: Arc<Message>,
    /// Does it skip the tool calls that are left of a turn, whatever the interrupt mode is (dialects.md 9, single queue)?
    pub interrupts: bool,
}

/// Both queues.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queues {
    steering: VecDeque<Queued>,
    follow_up: VecDeque<Queued>,
}

impl Queues {
    pub(crate) fn push(&mut self, kind: QueueKind, item: Queued) {
        self.of(kind).push_back(item);
    }

    /// How many messages a poll takes now.
    pub(crate) fn due(&self, kind: QueueKind, mode: QueueMode) -> usize {
        let waiting = match kind {
            QueueKind::Steering => self.steering.len(),
            QueueKind::FollowUp => self.follow_up.len(),
        };
        match mode {
            QueueMode::All => waiting,
            QueueMode::OneAtATime => waiting.min(1),
        }
    }

    pub(crate) fn pop(&mut self, kind: QueueKind) -> Option<Queued> {
        self.of(kind).pop_front()
    }

    pub(crate) fn clear(&mut self) -> (Vec<String>, Vec<String>) {
        let texts = self.texts();
        self.steering.clear();
        self.follow_up.clear();
        texts
    }

    pub(crate) fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    /// Does one wait that skips calls in every mode?
    pub(crate) fn interrupts(&self) -> bool {
        self.steering.iter().any(|item| item.interrupts)
    }

    pub(crate) fn len(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }

    pub(crate) fn texts(&self) -> (Vec<String>, Vec<String>) {
        let texts = |queue: &VecDeque<Queued>| queue.iter().map(|item| item.text.clone()).collect();
        (texts(&self.steering), texts(&self.follow_up))
    }

    pub(crate) fn event(&self) -> Event {
        let (steering, follow_up) = self.texts();
        Event::QueueUpdate { steering, follow_up }
    }

    fn of(&mut self, kind: QueueKind) -> &mut VecDeque<Queued> {
        match kind {
            QueueKind::Steering => &mut self.steering,
            QueueKind::FollowUp => &mut self.follow_up,
        }
    }
}
