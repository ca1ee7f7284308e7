//! What the bodies of requests have in common where a conversation is written straight into them, borrowed and not copied: a
//! request is written with every turn, so what a message of the history costs is what a long run costs. What each family
//! writes is decided there.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::{Map, Value};
use wire::content::joined_text;
use wire::{ImageContent, ToolCall, UserBlock, UserContent};

use crate::error::LlmError;
use crate::limits::{BODY_BYTES, BODY_BYTES_PER_MESSAGE};

/// A body: fields, and a conversation in the place of the field that is null and has its name. (Sampling parameters of the
/// user may replace every field, even that one.)
pub(crate) struct Body<'a, T> {
    /// The fields, in order.
    pub(crate) fields: Map<String, Value>,
    /// Name of the conversation's field.
    pub(crate) name: &'static str,
    /// What stands before the conversation, such as a system prompt.
    pub(crate) first: Vec<T>,
    /// The beginning of the conversation as an earlier request has encoded it, from [`elements`].
    pub(crate) encoded: &'a [u8],
    /// The rest of the conversation.
    pub(crate) history: Vec<T>,
}

impl<T: Serialize> Body<'_, T> {
    /// The body's bytes. Room for messages of middling size is there from the start: to grow to it step by step would copy
    /// everything several times.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, LlmError> {
        let room = self.history.len().saturating_mul(BODY_BYTES_PER_MESSAGE);
        let mut out = Vec::with_capacity(BODY_BYTES + self.encoded.len() + room);
        for (index, (name, value)) in self.fields.iter().enumerate() {
            out.push(if index == 0 { b'{' } else { b',' });
            append(name, &mut out)?;
            out.push(b':');
            if name == self.name && value.is_null() {
                self.append_conversation(&mut out)?;
            } else {
                append(value, &mut out)?;
            }
        }
        out.push(b'}');
        Ok(out)
    }

    fn append_conversation(&self, out: &mut Vec<u8>) -> Result<(), LlmError> {
        let (first, rest) = (elements(&self.first)?, &self.history);
        out.push(b'[');
        for part in [first.as_slice(), self.encoded] {
            out.extend_from_slice(part);
            if !part.is_empty() {
                out.push(b',');
            }
        }
        append_elements(rest, out)?;
        // No element follows the comma of the part before.
        if out.ends_with(b",") {
            out.pop();
        }
        out.push(b']');
        Ok(())
    }
}

/// The elements of a JSON array, with commas between them and without brackets.
pub(crate) fn elements(entries: &[impl Serialize]) -> Result<Vec<u8>, LlmError> {
    let mut out = Vec::with_capacity(entries.len().saturating_mul(BODY_BYTES_PER_MESSAGE));
    append_elements(entries, &mut out)?;
    Ok(out)
}

fn append_elements(entries: &[impl Serialize], out: &mut Vec<u8>) -> Result<(), LlmError> {
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        append(entry, out)?;
    }
    Ok(())
}

fn append(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) -> Result<(), LlmError> {
    serde_json::to_writer(out, value).map_err(|error| LlmError::Encode(error.to_string()))
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
