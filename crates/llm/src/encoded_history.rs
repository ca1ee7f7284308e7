//! The beginning of a conversation as it was encoded for the request before. A run sends a request after every tool call, and each
//! repeats all messages of the one before: they are encoded once.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::{Message, Model};

use crate::limits::ENCODED_BYTES;

/// The encoded beginning, shared by the requests of a session. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct EncodedHistory(Arc<Mutex<Beginning>>);

/// Messages and their encoded form.
#[derive(Default)]
pub(crate) struct Beginning {
    /// The model that they are encoded for.
    model: Option<Model>,
    messages: Vec<Arc<Message>>,
    /// The elements of a JSON array, with commas between them.
    json: Vec<u8>,
}

impl EncodedHistory {
    /// Forgets everything: it takes as much memory as the conversation.
    pub(crate) fn clear(&self) {
        *self.lock() = Beginning::default();
    }

    /// Returns true if the conversation begins with encoded messages.
    #[cfg(test)]
    pub(crate) fn knows_any(&self, model: &Model, messages: &[Arc<Message>]) -> bool {
        self.lock().known(model, messages) > 0
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Beginning> {
        // Every change is one assignment or leaves a shorter beginning, so a panic elsewhere does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beginning {
    /// How many of the messages are encoded for the model. Another model or another conversation begins anew.
    pub(crate) fn known(&mut self, model: &Model, messages: &[Arc<Message>]) -> usize {
        let is_same = |(old, new): (&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(old, new) || old == new;
        let is_continued = self.model.as_ref() == Some(model)
            && self.messages.len() < messages.len()
            && self.messages.iter().zip(messages).all(is_same);
        if !is_continued {
            *self = Self {
                model: Some(model.clone()),
                ..Self::default()
            };
        }
        self.messages.len()
    }

    /// Adds messages that were encoded. Returns false if there is no room for them.
    pub(crate) fn extend(&mut self, messages: &[Arc<Message>], elements: &[u8]) -> bool {
        if self.json.len() + elements.len() > ENCODED_BYTES {
            return false;
        }
        if !self.json.is_empty() && !elements.is_empty() {
            self.json.push(b',');
        }
        self.json.extend_from_slice(elements);
        self.messages.extend_from_slice(messages);
        true
    }

    /// The encoded messages: elements of an array, without its brackets.
    pub(crate) fn json(&self) -> &[u8] {
        &self.json
    }

    /// How many messages are encoded.
    pub(crate) fn count(&self) -> usize {
        self.messages.len()
    }
}

impl fmt::Debug for EncodedHistory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EncodedHistory")
    }
}
