//! The beginning of a conversation as it was encoded for the request before. A run sends a request after every tool call, and each
//! repeats all messages of the one before: they are encoded once.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::{AssistantMessage, Message, Model, UserBlock, UserContent};

use crate::body::images;
use crate::error::LlmError;
use crate::limits::ENCODED_BYTES;
use crate::request::ModelRequest;
use crate::transform::transform;

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

    fn lock(&self) -> MutexGuard<'_, Beginning> {
        // Every change is one assignment or leaves a shorter beginning, so a panic elsewhere does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beginning {
    /// How many of the messages are encoded for the model. Another model or another conversation begins anew.
    fn known(&mut self, model: &Model, messages: &[Arc<Message>]) -> usize {
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
    fn extend(&mut self, messages: &[Arc<Message>], elements: &[u8]) -> bool {
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
}

/// A request's conversation: what earlier requests have encoded, and the messages behind it.
pub(crate) struct Conversation<'a> {
    encoded: Option<MutexGuard<'a, Beginning>>,
    /// The messages behind the encoded ones, as the family's API can take them.
    history: Vec<Arc<Message>>,
}

impl<'a> Conversation<'a> {
    /// The conversation of a request that is written as a whole.
    pub(crate) fn whole(request: &ModelRequest, family: &impl Encoding) -> Self {
        Self {
            encoded: None,
            history: prepare(request, &request.messages, family),
        }
    }

    /// The conversation of a request of which later requests repeat the beginning as it is. Encodes what they will repeat.
    ///
    /// # Errors
    /// [`LlmError::Encode`].
    pub(crate) fn continued(request: &'a ModelRequest, family: &impl Encoding) -> Result<Self, LlmError> {
        let Some(earlier) = &request.earlier.encoded else {
            return Ok(Self::whole(request, family));
        };
        let (model, messages) = (&request.model, request.messages.as_slice());
        let mut encoded = earlier.lock();
        let mut known = encoded.known(model, messages);
        let newer = messages.get(known..).unwrap_or_default();
        let repeated = repeated(request, newer, family);
        if !repeated.is_empty() && encoded.extend(repeated, &family.encode(repeated, known)?) {
            known += repeated.len();
        }
        let history = prepare(request, messages.get(known..).unwrap_or_default(), family);
        // The mark of a cache belongs to the last message, which must not be an encoded one.
        if known == 0 || !history.last().is_some_and(|last| is_prompt(last)) {
            return Ok(Self::whole(request, family));
        }
        let encoded = Some(encoded);
        Ok(Self { encoded, history })
    }

    /// The encoded messages: elements of an array, without its brackets.
    pub(crate) fn encoded(&self) -> &[u8] {
        self.encoded.as_ref().map_or(&[], |beginning| &beginning.json)
    }

    /// How many messages are encoded.
    pub(crate) fn known(&self) -> usize {
        self.encoded
            .as_ref()
            .map_or(0, |beginning| beginning.messages.len())
    }

    /// The messages behind the encoded ones.
    pub(crate) fn history(&self) -> &[Arc<Message>] {
        &self.history
    }
}

/// How a family writes messages.
pub(crate) trait Encoding {
    /// The id of a call of another model, whose answer is given, as the API takes it.
    fn call_id(&self, id: &str, from: &AssistantMessage) -> String;

    /// Encodes prepared messages as elements of an array, without its brackets. `before` others stand before them.
    ///
    /// # Errors
    /// [`LlmError::Encode`].
    fn encode(&self, history: &[Arc<Message>], before: usize) -> Result<Vec<u8>, LlmError>;
}

/// Messages as the API can take them. Messages that need no change are shared.
fn prepare(request: &ModelRequest, messages: &[Arc<Message>], family: &impl Encoding) -> Vec<Arc<Message>> {
    let call_id = |id: &str, from: &AssistantMessage| family.call_id(id, from);
    transform(
        messages,
        &request.model,
        request.conventions.foreign_thinking,
        &call_id,
    )
}

/// The messages that every later request of the conversation repeats as they are: all up to the last answer, none if one of them has
/// to be changed for the model. Images are left out later, when there are too many.
fn repeated<'m>(
    request: &ModelRequest,
    messages: &'m [Arc<Message>],
    family: &impl Encoding,
) -> &'m [Arc<Message>] {
    let model = &request.model;
    let is_plain = |message: &Arc<Message>| match message.as_ref() {
        Message::User(user) => match &user.content {
            UserContent::Blocks(blocks) => images(blocks).next().is_none(),
            UserContent::Text(_) => true,
        },
        Message::ToolResult(result) => images(&result.content).next().is_none(),
        Message::Assistant(answer) => model.is_same(&answer.provider, &answer.api, &answer.model),
        _ => false,
    };
    let last = messages
        .iter()
        .rposition(|message| message.as_assistant().is_some());
    let until = last.and_then(|last| messages.get(..last)).unwrap_or_default();
    let prepared = prepare(request, until, family);
    let is_unchanged = until.len() == prepared.len()
        && until
            .iter()
            .zip(&prepared)
            .all(|(old, new)| Arc::ptr_eq(old, new));
    if is_unchanged && until.iter().all(is_plain) {
        until
    } else {
        &[]
    }
}

/// Returns true for a message that every family writes, and writes last.
fn is_prompt(message: &Message) -> bool {
    match message {
        Message::User(user) => match &user.content {
            UserContent::Text(text) => !text.trim().is_empty(),
            UserContent::Blocks(blocks) => blocks.iter().any(|block| match block {
                UserBlock::Text(text) => !text.text.trim().is_empty(),
                UserBlock::Image(_) => true,
            }),
        },
        Message::ToolResult(_) => true,
        _ => false,
    }
}

impl fmt::Debug for EncodedHistory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("EncodedHistory")
    }
}
