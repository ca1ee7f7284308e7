//! What the caller may put in the place of something said: a message that extensions changed when it ended, a conversation
//! that was written down anew. What is to be done is changed with it, so that nobody hears of the old one.

use std::sync::Arc;

use wire::{Event, Message};

use crate::effect::Effect;
use crate::machine::{Machine, Next, Phase, Run};

impl Machine {
    /// Another message takes the place of one that has just ended, in the conversation and in the run that is under way. An
    /// answer that calls tools has to be changed before it is handed over: its calls have begun by now.
    pub fn replace(&mut self, old: &Arc<Message>, new: &Arc<Message>) {
        put(&mut self.messages, old, new);
        match &mut self.phase {
            Phase::Asking(run, _)
            | Phase::Checking(Next::Turn(run))
            | Phase::Compacting(_, Next::Turn(run)) => {
                put(&mut run.added, old, new);
            }
            Phase::Tools(Run { added, .. }, batch) => {
                put(added, old, new);
                if Arc::ptr_eq(&batch.message, old) {
                    batch.message = Arc::clone(new);
                }
            }
            Phase::Idle | Phase::Waiting | Phase::Checking(_) | Phase::Compacting(..) | Phase::Moving(_) => {}
        }
    }

    /// The conversation is another one: something was written down that changes what the model sees of it.
    pub fn set_messages(&mut self, messages: Vec<Arc<Message>>) {
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
    /// The same with another message in the place of one.
    pub fn replace(&mut self, old: &Arc<Message>, new: &Arc<Message>) {
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
