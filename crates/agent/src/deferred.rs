//! What waits until a session is idle, in order: prompts behind an abort, session changes, requests of extensions. It is decided
//! here when each of them may run, and whether commands that come later must wait behind it.

use std::collections::VecDeque;

/// What an item waits for, in addition to an idle session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Nothing else.
    Idle,
    /// Extensions and tool servers are loaded.
    Loaded,
    /// The user's shell commands have ended.
    ShellsEnded,
    /// The answer to the command that began it is sent, or took too long.
    CommandAnswered,
}

/// Whether commands that come later wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// They wait: they must not overtake the item.
    Holds,
    /// They do not.
    Passes,
}

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Readiness {
    /// No run is under way, nothing of it is held back, and no question about the next one is open.
    pub is_idle: bool,
    /// Extensions or tool servers are being loaded.
    pub is_loading: bool,
    /// Shell commands of the user run.
    pub runs_shells: bool,
    /// A command is about to be answered.
    pub is_answering: bool,
}

impl Readiness {
    /// Returns true if what waits for this condition may run.
    #[must_use]
    pub const fn meets(self, condition: Condition) -> bool {
        self.is_idle
            && match condition {
                Condition::Idle => true,
                Condition::Loaded => !self.is_loading,
                Condition::ShellsEnded => !self.runs_shells,
                Condition::CommandAnswered => !self.is_answering,
            }
    }
}

/// Items that wait for a session, in order.
#[derive(Debug, Clone)]
pub struct Deferred<T> {
    items: VecDeque<(Condition, Order, T)>,
}

impl<T> Default for Deferred<T> {
    fn default() -> Self {
        let items = VecDeque::new();
        Self { items }
    }
}

impl<T> Deferred<T> {
    /// Adds an item behind the others.
    pub fn push(&mut self, condition: Condition, order: Order, item: T) {
        self.items.push_back((condition, order, item));
    }

    /// Adds an item before the others.
    pub fn push_first(&mut self, condition: Condition, order: Order, item: T) {
        self.items.push_front((condition, order, item));
    }

    /// The next item, if it may run now. An item that may not run keeps those behind it waiting.
    pub fn next(&mut self, readiness: Readiness) -> Option<T> {
        let (condition, ..) = self.items.front()?;
        if !readiness.meets(*condition) {
            return None;
        }
        self.items.pop_front().map(|(.., item)| item)
    }

    /// Returns true while commands that come later must wait.
    #[must_use]
    pub fn holds(&self) -> bool {
        // Also behind other items: a command that goes first would overtake it.
        self.items.iter().any(|(_, order, _)| *order == Order::Holds)
    }

    /// How many items wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if no item waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items that wait, in order.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|(.., item)| item)
    }
}
