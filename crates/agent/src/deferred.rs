//! What waits until a session is idle or has loaded, in order: prompts behind an abort, session changes, requests of extensions,
//! commands that came while something was loaded. It is decided here when each of them may run, and whether commands that come later
//! must wait behind it.

use std::collections::VecDeque;

/// What an item waits for; all but `LoadedInRun` wait for an idle session, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Nothing else.
    Idle,
    /// Extensions and tool servers are loaded.
    Loaded,
    /// They are loaded; a run may be under way.
    LoadedInRun,
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
    /// Extensions or tool servers are being loaded, or a command waits for an answer that later ones depend on.
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
        match condition {
            Condition::Idle => self.is_idle,
            Condition::Loaded => self.is_idle && !self.is_loading,
            Condition::LoadedInRun => !self.is_loading,
            Condition::ShellsEnded => self.is_idle && !self.runs_shells,
            Condition::CommandAnswered => self.is_idle && !self.is_answering,
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

    /// The next item, if it may run now. An item that may not run keeps those behind it waiting. During a run, only an item that holds
    /// later commands does: a command may come long before the end of the run that the others wait for.
    pub fn next(&mut self, readiness: Readiness) -> Option<T> {
        let at = if readiness.is_idle {
            0
        } else {
            self.items
                .iter()
                .position(|(_, order, _)| *order == Order::Holds)?
        };
        let (condition, ..) = self.items.get(at)?;
        if !readiness.meets(*condition) {
            return None;
        }
        self.items.remove(at).map(|(.., item)| item)
    }

    /// Takes out the items for which `fits` returns true, in order.
    pub fn take(&mut self, fits: impl Fn(&T) -> bool) -> Vec<T> {
        let (taken, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.items)
            .into_iter()
            .partition(|(.., item)| fits(item));
        self.items = kept;
        taken.into_iter().map(|(.., item)| item).collect()
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
