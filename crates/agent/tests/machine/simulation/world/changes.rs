//! Changes that no run makes, at any time: settings, messages from outside, a conversation read again from the file, a message
//! that an extension replaces, todos. What they do to the file and to the conversation is what the host does.

use std::sync::Arc;

use pinion_agent::todo::normalise;
use pinion_agent::{Change, Condition, Effect, Input, Order, Readiness};
use serde_json::json;
use wire::message::UserContent;
use wire::{CustomMessage, Event, Message};

use super::super::check::{Checked, must};
use super::super::disk::Disk;
use super::{World, change};

impl World {
    /// Gives the machine a change. Nothing follows from it but what `todos` checks itself.
    pub(super) fn tell(&mut self, change: Change) -> Checked {
        self.give(Input::Change(change), false)
    }

    pub(super) fn change_settings(&mut self) -> Checked {
        let mut settings = self.machine.settings();
        change(&mut self.rng, &mut settings);
        self.check.settings = settings;
        self.tell(Change::Settings(settings))
    }

    /// A message that no run produced. It must not part calls from their results, neither in memory nor in the file.
    pub(super) fn add(&mut self) -> Checked {
        if self.machine.is_idle() {
            self.hear()?;
        }
        let message = Arc::new(Message::Custom(CustomMessage {
            custom_type: "note".to_owned(),
            content: UserContent::Text(self.text("note ")),
            display: true,
            details: None,
            timestamp: self.now,
            extra: wire::Extra::default(),
        }));
        if self.check.has_open_calls() {
            self.check.seen.push("message added while tools run");
            self.added.push(Arc::clone(&message));
        } else {
            self.disk.persist(&message);
            self.check.expected.push(Arc::clone(&message));
        }
        self.tell(Change::Add(message))
    }

    /// A turn ended: what came while its tools ran follows their results.
    pub(super) fn join_added(&mut self, effect: &Effect) {
        if !matches!(effect, Effect::Emit(Event::TurnEnd { .. })) {
            return;
        }
        for message in std::mem::take(&mut self.added) {
            self.unwritten.push(Arc::clone(&message));
            self.check.expected.push(message);
        }
    }

    /// The end of the turn has left the machine: what waited for it is written.
    pub(super) fn write_added(&mut self, effect: &Effect) {
        if let Effect::Emit(Event::TurnEnd { .. }) | Effect::Tell(Event::TurnEnd { .. }, _) = effect {
            for message in std::mem::take(&mut self.unwritten) {
                self.disk.persist(&message);
            }
        }
    }

    /// The conversation is read again from the file.
    pub(super) fn read_again(&mut self) -> Checked {
        if self.machine.is_idle() {
            self.hear()?;
        }
        let messages = self.disk.conversation();
        let mut expected = messages.clone();
        if self.check.has_open_calls() {
            self.check.seen.push("conversation replaced while tools run");
            let known = &self.check.expected;
            let answer = known.iter().rposition(|message| message.as_assistant().is_some());
            let turn = answer.and_then(|answer| known.get(answer..)).unwrap_or_default();
            let (answer, results) = turn.split_first().ok_or("calls without an answer")?;
            let at = expected.iter().rposition(|message| message == answer);
            expected.truncate(at.ok_or("the file does not have the answer")? + 1);
            expected.extend(results.iter().cloned());
        }
        self.check.expected = expected;
        self.check.left.clear();
        self.tell(Change::Conversation(messages))
    }

    /// A client wants another session. The run ends first; what never answers must not keep it from that.
    pub(super) fn switch_session(&mut self) -> Checked {
        if self.check.has_open_calls() {
            self.check.seen.push("session change while tools run");
        }
        self.deferred.push(Condition::Idle, Order::Holds, ());
        self.step(Input::Abort)
    }

    /// Makes the session changes that waited for the session to be idle.
    pub(super) fn catch_up(&mut self) -> Checked {
        let is_idle = self.machine.is_idle() && !self.machine.is_holding();
        let readiness = Readiness {
            is_idle,
            ..Readiness::default()
        };
        if self.deferred.next(readiness).is_none() {
            return Ok(());
        }
        must(!self.owes_something(), "left a session that was not at rest")?;
        self.disk = Disk::default();
        self.rebuild()
    }

    /// A client sets a list, or its done items leave it.
    pub(super) fn change_todos(&mut self) -> Checked {
        if self.rng.once_in(2) {
            let status = if self.rng.once_in(2) {
                "completed"
            } else {
                "pending"
            };
            let tasks = json!([{"content": self.text("todo "), "status": status}]);
            let phases = normalise(&json!([{"name": "A", "tasks": tasks}]))?;
            self.todos.replace(phases.clone(), self.now + 1);
            self.tell(Change::Todos(phases))?;
        } else {
            self.now += 100_000;
            let left = self.todos.clear_due(self.now + 1);
            self.check.cleared = left;
            self.tell(Change::TodosDue)?;
            must(self.check.cleared == 0, "a done todo stayed")?;
            self.check.seen.extend((left > 0).then_some("todos cleared"));
        }
        must(
            self.machine.todos().phases() == self.todos.phases(),
            "the todo list is not what it should be",
        )
    }
}
