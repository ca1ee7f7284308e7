//! What must hold for the queues: each message is said once, in order, when its time has come.

use std::collections::VecDeque;

use pinion_agent::{LoopSettings, QueueKind};
use wire::state::QueueMode;

use super::check::{Checked, must};

/// The queues as they must be.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    steering: VecDeque<String>,
    follow_up: VecDeque<String>,
}

impl Queues {
    pub(crate) fn push(&mut self, kind: QueueKind, text: String) {
        match kind {
            QueueKind::Steering => self.steering.push_back(text),
            QueueKind::FollowUp => self.follow_up.push_back(text),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.steering.clear();
        self.follow_up.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }

    pub(crate) fn steering_len(&self) -> usize {
        self.steering.len()
    }

    pub(crate) fn has_steering(&self) -> bool {
        !self.steering.is_empty()
    }

    pub(crate) fn due(&self, kind: QueueKind, settings: &LoopSettings) -> Vec<String> {
        let (queue, mode) = match kind {
            QueueKind::Steering => (&self.steering, settings.steering_mode),
            QueueKind::FollowUp => (&self.follow_up, settings.follow_up_mode),
        };
        let count = if mode == QueueMode::All { queue.len() } else { 1 };
        queue.iter().take(count).cloned().collect()
    }

    /// A message is taken out to be said.
    pub(crate) fn take(&mut self, text: &str) -> Checked {
        let queue = if self.steering.front().is_some_and(|first| first == text) {
            &mut self.steering
        } else {
            &mut self.follow_up
        };
        must(
            queue.pop_front().as_deref() == Some(text),
            "said what was not first in its queue",
        )
    }

    pub(crate) fn same(&self, steering: &[String], follow_up: &[String]) -> Checked {
        must(
            self.steering.iter().eq(steering) && self.follow_up.iter().eq(follow_up),
            "the queues are not what they should be",
        )
    }
}
