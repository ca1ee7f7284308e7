//! Changes of the conversation that no run makes: another session, a message from outside, a message that an extension
//! replaces when it ends, a conversation that was read again from the session file.

use std::sync::Arc;

use wire::{Event, Message};

use crate::effect::Effect;
use crate::input::Change;
use crate::phase::{Next, Phase, Run};
use crate::todo::Todos;
use crate::ttsr::Watch;
use crate::turn_loop::TurnLoop;

impl TurnLoop {
    /// Takes over a change that the caller made.
    pub(crate) fn change(&mut self, change: Change, now: i64, out: &mut Vec<Effect>) {
        match change {
            Change::Open { settings, messages } => {
                // Tickets go on counting: an answer to a question of the former session must not fit one of this session.
                let hooks = self.hooks.anew();
                *self = Self {
                    hooks,
                    ..Self::new(settings, messages)
                };
            }
            Change::Hooks(subscribed) => self.hooks.subscribe(subscribed),
            Change::Branch { todos, phases } => {
                self.todos = Todos::new(todos, phases);
                // Which rules the model knows depends on the branch, too: the caller gives them again.
                self.ttsr = None;
            }
            Change::Settings(settings) => {
                // Setting limits that did not change would warn the model of them a second time.
                if settings.limits != self.settings.limits {
                    self.budget.set(settings.limits, false);
                }
                self.settings = settings;
            }
            Change::Limits { limits, reset } => {
                self.settings.limits = limits;
                self.budget.set(limits, reset);
            }
            Change::Add(message) => self.add(message),
            Change::Conversation(messages) => self.set_messages(messages),
            Change::Todos(phases) => self.todos.replace(phases, now),
            Change::TodosDue => {
                let left = self.todos.clear_due(now);
                out.extend((0..left).map(|_| Effect::Emit(Event::TodoAutoClear)));
            }
            Change::Rules {
                rules,
                settings,
                told,
            } => self.ttsr = Some(Watch::new(rules, settings, told)),
        }
    }

    /// Providers refuse a conversation in which anything stands between a call and its result, so a message that comes
    /// while tools run waits for the results.
    fn add(&mut self, message: Arc<Message>) {
        if matches!(self.phase, Phase::Tools(..)) {
            self.added.push(message);
        } else {
            self.messages.push(message);
        }
    }

    /// Puts another message in the place of one, in the conversation and in the run that is under way. Does nothing if the
    /// message has left the conversation.
    pub(crate) fn replace(&mut self, old: &Arc<Message>, new: &Arc<Message>) {
        // It is one of the newest messages.
        let Some(at) = self.messages.iter().rposition(|known| Arc::ptr_eq(known, old)) else {
            return;
        };
        // By value, since a conversation that was read again shares no memory with the run. Of equal messages (two prompts with
        // the same text within a millisecond) the one with as many equal ones behind it is meant.
        let newer = self.messages.iter().skip(at + 1);
        let newer = newer.filter(|message| is_same(message, old)).count();
        let put = |messages: &mut [Arc<Message>]| {
            let mut equal = messages.iter_mut().rev().filter(|message| is_same(message, old));
            if let Some(message) = equal.nth(newer) {
                *message = Arc::clone(new);
            }
        };
        put(&mut self.messages);
        match &mut self.phase {
            Phase::Asking(run, _)
            | Phase::ChoosingModel(run, _)
            | Phase::Checking(Next::Turn(run))
            | Phase::Compacting(_, Next::Turn(run)) => {
                put(&mut run.added);
            }
            Phase::Tools(Run { added, .. }, batch) => {
                put(added);
                if is_same(&batch.message, old) {
                    batch.message = Arc::clone(new);
                }
            }
            Phase::Idle | Phase::Waiting | Phase::Checking(_) | Phase::Compacting(..) | Phase::Moving(_) => {}
        }
    }

    /// While tools run, their answer stays the newest message: the file has no results yet, so the caller has closed
    /// the calls with made-up results, and the real ones are still to come.
    fn set_messages(&mut self, mut messages: Vec<Arc<Message>>) {
        if let Phase::Tools(_, batch) = &self.phase {
            match messages
                .iter()
                .rposition(|message| is_same(message, &batch.message))
            {
                Some(at) => messages.truncate(at + 1),
                None => messages.push(Arc::clone(&batch.message)),
            }
        }
        self.messages = messages;
    }

    /// Has the answer to the request that is out begun?
    #[must_use]
    pub fn has_begun_answering(&self) -> bool {
        matches!(self.phase, Phase::Asking(_, true))
    }

    /// Could a request be made with the conversation as it is? Not when an answer is the newest thing in it.
    #[must_use]
    pub fn can_ask(&self) -> bool {
        let newest = self.messages.iter().rev().find_map(|message| match &**message {
            Message::Assistant(answer) if answer.failed() => None,
            Message::Assistant(_) => Some(false),
            _ => Some(true),
        });
        newest == Some(true)
    }
}

impl Effect {
    /// Puts another message in the place of one in an effect that has not left the machine.
    pub(crate) fn replace(&mut self, old: &Arc<Message>, new: &Arc<Message>) {
        match self {
            Self::Persist(message)
            | Self::Emit(Event::MessageStart { message } | Event::MessageEnd { message }) => {
                put(std::slice::from_mut(message), old, new);
            }
            Self::Emit(Event::TurnEnd {
                message,
                tool_results,
            }) => {
                put(std::slice::from_mut(message), old, new);
                put(tool_results, old, new);
            }
            Self::Emit(Event::AgentEnd { messages, .. }) => put(messages, old, new),
            _ => {}
        }
    }
}

fn is_same(a: &Arc<Message>, b: &Arc<Message>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

fn put(messages: &mut [Arc<Message>], old: &Arc<Message>, new: &Arc<Message>) {
    // It is among the newest.
    let found = messages
        .iter_mut()
        .rev()
        .find(|message| Arc::ptr_eq(message, old));
    if let Some(message) = found {
        *message = Arc::clone(new);
    }
}
