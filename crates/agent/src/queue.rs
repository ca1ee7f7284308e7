//! Messages that wait: steering (taken after each turn) and follow-ups (taken when a run would stop). pi-core.md 1.7.
//! Each has a number of its own, in the order they came; what a client calls it is not known here.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wire::state::QueueMode;
use wire::{Event, Message};

use crate::input::Input;
use crate::settings::LoopSettings;

/// Which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// Taken after each turn.
    Steering,
    /// Taken when the run would stop.
    FollowUp,
}

/// A message that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Queued {
    /// What `queue_update` shows of it.
    pub text: String,
    /// The message.
    pub message: Arc<Message>,
    /// Does it skip the tool calls that are left of a turn, in every interrupt mode (dialects.md 9, single queue)?
    pub interrupts: bool,
}

impl Queued {
    /// Returns true if clients see the message wait. As in pi, messages of extensions are not shown (behaviour.md 2).
    pub(crate) fn is_shown(&self) -> bool {
        matches!(*self.message, Message::User(_))
    }
}

/// A message that waits, with its number.
#[derive(Debug, Clone)]
struct Numbered {
    number: u64,
    item: Queued,
}

/// Both queues.
#[derive(Debug, Clone, Default)]
pub struct Queues {
    steering: VecDeque<Numbered>,
    follow_up: VecDeque<Numbered>,
    /// Messages that ever came; the number of the newest one.
    newest: u64,
}

impl Queues {
    /// Carries out an input about a queue. Returns the event that tells of it, if something changed.
    pub(crate) fn take(&mut self, input: Input) -> Option<Event> {
        let is_changed = match input {
            Input::Enqueue(kind, item) => {
                // Messages of extensions cause no event (behaviour.md 2.11).
                let is_shown = item.is_shown();
                self.push(kind, item);
                is_shown
            }
            Input::ClearQueue => {
                // Told even if nothing waited (recorded from pi 1.5.2): a client may wait for it.
                self.clear();
                true
            }
            Input::EditQueued(number, item) => self.edit(number, item),
            Input::RemoveQueued(number) => self.remove(number),
            _ => false,
        };
        is_changed.then(|| self.event())
    }

    pub(crate) fn push(&mut self, kind: QueueKind, item: Queued) {
        // Numbers are never used again: a client may edit a message by its number after that message was taken.
        self.newest += 1;
        let number = self.newest;
        self.of(kind).push_back(Numbered { number, item });
    }

    /// The number of the message that came last; 0 before the first.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Does a message wait that came after the one with this number?
    pub(crate) fn has_newer(&self, number: u64) -> bool {
        self.all().any(|(_, waiting)| waiting.number > number)
    }

    /// Everything that waits, in the order in which it will be taken: number, queue, message.
    pub fn items(&self) -> impl Iterator<Item = (u64, QueueKind, &Queued)> {
        self.all()
            .map(|(kind, waiting)| (waiting.number, kind, &waiting.item))
    }

    /// Replaces a message where it stands. False when it does not wait any more.
    pub(crate) fn edit(&mut self, number: u64, item: Queued) -> bool {
        let mut both = self.steering.iter_mut().chain(&mut self.follow_up);
        match both.find(|waiting| waiting.number == number) {
            Some(waiting) => {
                waiting.item = item;
                true
            }
            None => false,
        }
    }

    /// Takes a message out. False when it does not wait any more.
    pub(crate) fn remove(&mut self, number: u64) -> bool {
        let before = self.len();
        for queue in [&mut self.steering, &mut self.follow_up] {
            queue.retain(|waiting| waiting.number != number);
        }
        self.len() < before
    }

    fn all(&self) -> impl Iterator<Item = (QueueKind, &Numbered)> {
        let of = |kind| move |waiting| (kind, waiting);
        let steering = self.steering.iter().map(of(QueueKind::Steering));
        steering.chain(self.follow_up.iter().map(of(QueueKind::FollowUp)))
    }

    /// How many messages a poll takes now.
    pub(crate) fn due(&self, kind: QueueKind, mode: QueueMode) -> usize {
        let waiting = match kind {
            QueueKind::Steering => self.steering.len(),
            QueueKind::FollowUp => self.follow_up.len(),
        };
        match mode {
            QueueMode::All => waiting,
            // One message for each poll, the default of pi (pi-core.md 1.7).
            QueueMode::OneAtATime => waiting.min(1),
        }
    }

    /// How many steering messages came no later than the one with this number.
    pub(crate) fn steering_until(&self, number: u64) -> usize {
        // These are the first ones, which `pop` takes: messages join at the end, and an edit leaves a message in its place.
        self.steering
            .iter()
            .filter(|waiting| waiting.number <= number)
            .count()
    }

    /// Which queue goes out next, and how many of its messages: first steering, and follow-ups only when nothing else is left.
    pub(crate) fn next_due(&self, settings: &LoopSettings, goes_on: bool) -> (QueueKind, usize) {
        let steering = self.due(QueueKind::Steering, settings.steering_mode);
        // While results wait for the model, the run would not stop, so follow-ups stay (pi-core.md 1.3).
        if steering > 0 || goes_on {
            return (QueueKind::Steering, steering);
        }
        let follow_ups = self.due(QueueKind::FollowUp, settings.follow_up_mode);
        (QueueKind::FollowUp, follow_ups)
    }

    pub(crate) fn pop(&mut self, kind: QueueKind) -> Option<Queued> {
        self.of(kind).pop_front().map(|waiting| waiting.item)
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
        self.steering.iter().any(|item| item.item.interrupts)
    }

    /// Does no message wait?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Messages in both queues.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }

    /// Messages in both queues that clients see.
    #[must_use]
    pub fn shown(&self) -> usize {
        self.all().filter(|(_, waiting)| waiting.item.is_shown()).count()
    }

    /// Texts that wait: steering, follow-ups.
    #[must_use]
    pub fn texts(&self) -> (Vec<String>, Vec<String>) {
        let texts = |queue: &VecDeque<Numbered>| {
            let shown = queue.iter().filter(|waiting| waiting.item.is_shown());
            shown.map(|waiting| waiting.item.text.clone()).collect()
        };
        (texts(&self.steering), texts(&self.follow_up))
    }

    pub(crate) fn event(&self) -> Event {
        let (steering, follow_up) = self.texts();
        Event::QueueUpdate { steering, follow_up }
    }

    fn of(&mut self, kind: QueueKind) -> &mut VecDeque<Numbered> {
        match kind {
            QueueKind::Steering => &mut self.steering,
            QueueKind::FollowUp => &mut self.follow_up,
        }
    }
}
