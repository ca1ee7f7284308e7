//! The todo list of a session (dialects.md 8): what it holds, when done items leave it, when the model is reminded of it.
//! Lists of clients are checked in `normalise`, the model's tool is in `ops` and `text`, and `rebuild` finds the list that a
//! session file holds. Timers and files are the caller's; when something is due is said here as a time.

mod normalise;
mod ops;
mod rebuild;
mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wire::todo::OpenTodo;
use wire::{Event, TodoItem, TodoPhase, ToolResult};

use crate::limits;

pub use normalise::normalise;
pub use ops::Op;
pub use rebuild::rebuild;
pub use text::{TOOL, TOOL_GUIDELINES, TOOL_SNIPPET, tool_spec};

/// `customType` of the entry that keeps a list a client has set; oh-my-pi writes the same.
pub const EDIT_ENTRY: &str = "user_todo_edit";
/// `customType` of the message that reminds the model.
pub const REMINDER_MESSAGE: &str = "todo-reminder";

/// How a list behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoSettings {
    /// Is the model reminded when it stops while items are open? Needs a model that has the tool.
    pub reminders: bool,
    /// Reminders between two messages of the user.
    pub max_reminders: u32,
    /// Milliseconds after which a done item leaves the list; none keeps it.
    pub clear_delay_ms: Option<u64>,
}

impl Default for TodoSettings {
    fn default() -> Self {
        Self {
            reminders: false,
            max_reminders: limits::TODO_REMINDERS,
            clear_delay_ms: Some(limits::TODO_CLEAR_DELAY_MS),
        }
    }
}

/// The list with its clocks.
#[derive(Debug, Clone, Default)]
pub struct Todos {
    settings: TodoSettings,
    phases: Vec<TodoPhase>,
    /// When done items leave, by id, in Unix milliseconds.
    due: BTreeMap<String, i64>,
    /// Reminders since the user last said something.
    reminded: u32,
}

/// A reminder: the event for clients and the text for the model.
pub(crate) struct Reminder {
    pub(crate) event: Event,
    pub(crate) text: String,
}

impl Todos {
    /// A list as a session file has it, see [`rebuild`].
    #[must_use]
    pub fn new(settings: TodoSettings, phases: Vec<TodoPhase>) -> Self {
        Self {
            settings,
            phases,
            ..Self::default()
        }
    }

    /// The list.
    #[must_use]
    pub fn phases(&self) -> &[TodoPhase] {
        &self.phases
    }

    /// Puts a list in the place of this one, at a time (Unix milliseconds).
    pub fn replace(&mut self, phases: Vec<TodoPhase>, now: i64) {
        let before = std::mem::replace(&mut self.phases, phases);
        let delay = self.settings.clear_delay_ms;
        let delay = delay.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        // Built anew: an item that is open again, or gone, has no clock.
        let known = std::mem::take(&mut self.due);
        if let Some(delay) = delay {
            for item in items(&self.phases).filter(|item| !item.status.is_open()) {
                // The clock of an item runs on as long as it stays done; another item of the same id starts anew.
                let same = items(&before).any(|old| old.id == item.id && old.content == item.content);
                let due = known.get(&item.id).copied().filter(|_| same);
                let due = due.unwrap_or_else(|| now.saturating_add(delay));
                self.due.insert(item.id.clone(), due);
            }
        }
        // All is done: items that come later have all their reminders.
        if self.open().next().is_none() {
            self.reminded = 0;
        }
    }

    /// The list after a call of [`TOOL`], and the result of the call. `stored` says whether the session has a file. The list
    /// counts once [`Change::Todos`](crate::Change::Todos) gives it to the machine.
    #[must_use]
    pub fn written(&self, ops: Vec<Op>, stored: bool) -> (Vec<TodoPhase>, ToolResult) {
        let (phases, errors) = ops::apply(self.phases.clone(), ops);
        let storage = if stored { "session" } else { "memory" };
        let details: Value = json!({ "phases": phases, "storage": storage });
        let result = ToolResult {
            details: Some(details),
            ..ToolResult::text(text::summary(&phases, &errors))
        };
        (phases, result)
    }

    /// When the next done item leaves the list, in Unix milliseconds.
    #[must_use]
    pub fn next_due(&self) -> Option<i64> {
        self.due.values().min().copied()
    }

    /// Takes out what has to leave by now, and phases that are empty then. Says how many items left.
    pub fn clear_due(&mut self, now: i64) -> usize {
        let before = items(&self.phases).count();
        let due = &self.due;
        for phase in &mut self.phases {
            phase
                .tasks
                .retain(|item| due.get(&item.id).is_none_or(|due| *due > now));
        }
        self.due.retain(|_, due| *due > now);
        let left = before - items(&self.phases).count();
        // Only then: a client may set phases that are empty, which stay.
        if left > 0 {
            self.phases.retain(|phase| !phase.tasks.is_empty());
        }
        left
    }

    /// Returns true if the model is reminded of open items.
    #[must_use]
    pub fn has_reminders(&self) -> bool {
        self.settings.reminders
    }

    /// Switches reminders on or off.
    pub(crate) fn set_reminders(&mut self, reminders: bool) {
        self.settings.reminders = reminders;
    }

    /// A message began: reminders count from here.
    pub(crate) fn user_spoke(&mut self) {
        self.reminded = 0;
    }

    /// Must the model be reminded if it stops now?
    pub(crate) fn wants_reminder(&self) -> bool {
        self.settings.reminders && self.reminded < self.settings.max_reminders && self.open().next().is_some()
    }

    /// The reminder for a model that has stopped, if one is due.
    pub(crate) fn remind(&mut self) -> Option<Reminder> {
        if !self.wants_reminder() {
            return None;
        }
        self.reminded += 1;
        let (attempt, max_attempts) = (self.reminded, self.settings.max_reminders);
        let todos = self.open().map(|item| OpenTodo {
            id: item.id.clone(),
            content: item.content.clone(),
            status: item.status,
        });
        Some(Reminder {
            event: Event::TodoReminder {
                todos: todos.collect(),
                attempt,
                max_attempts,
            },
            text: text::reminder(&self.phases, attempt, max_attempts),
        })
    }

    fn open(&self) -> impl Iterator<Item = &TodoItem> {
        items(&self.phases).filter(|item| item.status.is_open())
    }
}

/// All items of a list, in its order.
fn items(phases: &[TodoPhase]) -> impl Iterator<Item = &TodoItem> {
    phases.iter().flat_map(|phase| &phase.tasks)
}

/// One more than the highest number among ids of the form `prefix-number`.
fn next_number<'a>(prefix: &str, ids: impl Iterator<Item = &'a str>) -> u64 {
    let numbers = ids.filter_map(|id| id.strip_prefix(prefix)?.strip_prefix('-')?.parse::<u64>().ok());
    // Saturating, since ids come from clients and may have any number.
    numbers.max().map_or(1, |highest| highest.saturating_add(1))
}
