//! The conversation of a request: which of its messages an earlier request has encoded, and which every later request repeats.

use std::sync::{Arc, MutexGuard};

use wire::{AssistantMessage, Message, UserBlock, UserContent};

use crate::body::images;
use crate::encoded_history::Beginning;
use crate::error::LlmError;
use crate::request::ModelRequest;
use crate::transform::transform;

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
        self.encoded.as_ref().map_or(&[], |beginning| beginning.json())
    }

    /// How many messages are encoded.
    pub(crate) fn known(&self) -> usize {
        self.encoded.as_ref().map_or(0, |beginning| beginning.count())
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
