//! What the bodies of requests have in common where a conversation is written straight into them, borrowed and not copied: a
//! request is written with every turn, so what a message of the history costs is what a long run costs. What each family
//! writes is decided there.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Error as _, Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value};
use wire::content::joined_text;
use wire::{ImageContent, ToolCall, UserBlock, UserContent};

use crate::error::LlmError;
use crate::limits::{BODY_BYTES, BODY_BYTES_PER_MESSAGE};

/// A body: fields, and a conversation in the place of the field that is null and has its name. (Sampling parameters of the
/// user may replace every field, even that one.)
pub(crate) struct Body<T> {
    /// The fields, in order.
    pub(crate) fields: Map<String, Value>,
    /// Name of the conversation's field.
    pub(crate) name: &'static str,
    /// The conversation.
    pub(crate) history: T,
    /// Messages in it.
    pub(crate) turns: usize,
}

/// Bytes of a body with a conversation of so many messages. Room for messages of middling size is there from the start: to
/// grow to it step by step would copy everything several times.
pub(crate) fn encode(body: &impl Serialize, turns: usize) -> Result<Vec<u8>, LlmError> {
    let mut out = Vec::with_capacity(BODY_BYTES + turns.saturating_mul(BODY_BYTES_PER_MESSAGE));
    serde_json::to_writer(&mut out, body).map_err(|error| LlmError::Encode(error.to_string()))?;
    Ok(out)
}

impl<T: Serialize> Body<T> {
    /// The body's bytes.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, LlmError> {
        encode(self, self.turns)
    }
}

impl<T: Serialize> Serialize for Body<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in &self.fields {
            if name == self.name && value.is_null() {
                map.serialize_entry(name, &self.history)?;
            } else {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

/// What a user or a tool says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Image(&'a ImageContent),
}

impl<'a> From<&'a UserBlock> for Piece<'a> {
    fn from(block: &'a UserBlock) -> Self {
        match block {
            UserBlock::Text(text) => Self::Text(&text.text),
            UserBlock::Image(image) => Self::Image(image),
        }
    }
}

/// The pieces of a user message, without empty texts.
pub(crate) fn pieces(content: &UserContent) -> impl Iterator<Item = Piece<'_>> {
    let (text, blocks) = match content {
        UserContent::Text(text) => (Some(Piece::Text(text)), [].as_slice()),
        UserContent::Blocks(blocks) => (None, blocks.as_slice()),
    };
    let all = text.into_iter().chain(blocks.iter().map(Piece::from));
    all.filter(|piece| !matches!(piece, Piece::Text("")))
}

/// The images among blocks.
pub(crate) fn images(blocks: &[UserBlock]) -> impl Iterator<Item = &ImageContent> {
    blocks.iter().filter_map(|block| match block {
        UserBlock::Image(image) => Some(image),
        UserBlock::Text(_) => None,
    })
}

/// All text of blocks, joined by line feeds; copied only when there are several.
pub(crate) fn text_of(blocks: &[UserBlock]) -> Cow<'_, str> {
    match blocks {
        [UserBlock::Text(only)] => Cow::Borrowed(&only.text),
        _ => Cow::Owned(joined_text(blocks)),
    }
}

/// An image as a `data:` address.
#[derive(Debug)]
pub(crate) struct DataUrl<'a>(pub(crate) &'a ImageContent);

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "data:{};base64,{}", self.0.mime_type, self.0.data)
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Arguments of a call as a string of JSON.
#[derive(Debug)]
pub(crate) struct Spelled<'a>(pub(crate) &'a Map<String, Value>);

impl Serialize for Spelled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(self.0).map_err(S::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

/// A call as chat completions and Mistral take it.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Debug, serde::Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: Spelled<'a>,
}

impl<'a> From<&'a ToolCall> for Call<'a> {
    fn from(call: &'a ToolCall) -> Self {
        Self {
            id: &call.id,
            kind: "function",
            function: Function {
                name: &call.name,
                arguments: Spelled(&call.arguments),
            },
        }
    }
}
