//! Writes a conversation for ConverseStream (providers.md 8). The rest of the request is written in `request`. The types
//! borrow from the conversation and are serialised straight into the body, as those of `anthropic` are.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use wire::{
    AssistantBlock, AssistantMessage, ImageContent, Message, Model, ThinkingContent, ToolResultMessage,
    UserBlock, UserContent,
};

use super::claude::{CachePoint, is_claude};
use crate::body::elements;
use crate::conversation::Encoding;
use crate::error::LlmError;
use crate::ids;
use crate::transform::TextOnlyError;

/// Stands where the API wants a text and there is none.
const EMPTY: &str = "<empty>";

/// Stands for an image of a kind that the API does not take.
const STRANGE_IMAGE: &str = "(image omitted: the provider does not take this kind)";

/// A message as the API takes it.
#[derive(Debug, Serialize)]
pub(super) struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

/// A content block.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Block<'a> {
    Text(Cow<'a, str>),
    Image(Image<'a>),
    #[serde(rename_all = "camelCase")]
    ToolUse {
        tool_use_id: &'a str,
        name: &'a str,
        input: &'a Map<String, Value>,
    },
    #[serde(rename_all = "camelCase")]
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Block<'a>>,
        status: &'static str,
    },
    ReasoningContent(Reasoning<'a>),
    CachePoint(CachePoint),
}

/// Bytes go as base64, which is what the conversation holds.
#[derive(Debug, Serialize)]
struct Image<'a> {
    source: Source<'a>,
    format: &'static str,
}

#[derive(Debug, Serialize)]
struct Source<'a> {
    bytes: &'a str,
}

/// What a model thought.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Reasoning<'a> {
    ReasoningText {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<&'a str>,
    },
    RedactedContent(&'a str),
}

/// How messages are written for a model.
pub(super) struct Messages<'a>(pub(super) &'a Model);

impl Encoding for Messages<'_> {
    fn call_id(&self, id: &str, _from: &AssistantMessage) -> String {
        ids::anthropic(id)
    }

    fn encode(&self, history: &[Arc<Message>], _before: usize) -> Result<Vec<u8>, LlmError> {
        elements(&write(history, is_claude(self.0), None))
    }
}

/// Messages of the conversation. Claude wants its reasoning back signed, others take no signature.
pub(super) fn write(history: &[Arc<Message>], claude: bool, point: Option<CachePoint>) -> Vec<Turn<'_>> {
    let mut out: Vec<Turn<'_>> = Vec::with_capacity(history.len());
    let mut results = Results::default();
    for message in history {
        let (role, content) = match Arc::as_ref(message) {
            Message::ToolResult(result) => {
                results.push(result, claude);
                continue;
            }
            Message::User(user) => ("user", user_blocks(&user.content)),
            Message::Assistant(answer) => ("assistant", assistant_blocks(answer, claude)),
            _ => continue,
        };
        flush(&mut results, &mut out);
        if !content.is_empty() {
            out.push(Turn { role, content });
        }
    }
    flush(&mut results, &mut out);
    if let Some(last) = out.last_mut().filter(|last| last.role == "user") {
        last.content.extend(point.map(Block::CachePoint));
    }
    out
}

/// Results of one answer. Claude takes nothing but text in the result of a failed call, so the images of such results follow all of
/// them.
#[derive(Default)]
struct Results<'a> {
    blocks: Vec<Block<'a>>,
    images: Vec<Block<'a>>,
}

impl<'a> Results<'a> {
    fn push(&mut self, result: &'a ToolResultMessage, claude: bool) {
        let Some(error) = TextOnlyError::of(result).filter(|_| claude) else {
            self.blocks.push(tool_result(result));
            return;
        };
        self.images.push(Block::Text(Cow::Owned(error.caption)));
        self.images
            .extend(error.images.into_iter().filter_map(user_block));
        self.blocks.push(Block::ToolResult {
            tool_use_id: &result.tool_call_id,
            content: vec![Block::Text(Cow::Owned(error.text))],
            status: "error",
        });
    }
}

/// Results of one answer go back together, in one user message.
fn flush<'a>(results: &mut Results<'a>, out: &mut Vec<Turn<'a>>) {
    let Results {
        blocks: mut content,
        images,
    } = std::mem::take(results);
    content.extend(images);
    if !content.is_empty() {
        out.push(Turn {
            role: "user",
            content,
        });
    }
}

/// Text, unless it is blank: the API refuses blank blocks.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text(Cow::Borrowed(text)))
}

/// The blocks of a user message, at least one.
fn user_blocks(content: &UserContent) -> Vec<Block<'_>> {
    let blocks = match content {
        UserContent::Text(only) => text(only).into_iter().collect(),
        UserContent::Blocks(blocks) => blocks.iter().filter_map(user_block).collect(),
    };
    filled(blocks)
}

/// The blocks, or a word where there are none.
fn filled(mut blocks: Vec<Block<'_>>) -> Vec<Block<'_>> {
    if blocks.is_empty() {
        blocks.push(Block::Text(Cow::Borrowed(EMPTY)));
    }
    blocks
}

/// A block of a user message or a tool result.
fn user_block(block: &UserBlock) -> Option<Block<'_>> {
    match block {
        UserBlock::Text(block) => text(&block.text),
        UserBlock::Image(block) => Some(image(block)),
    }
}

fn image(image: &ImageContent) -> Block<'_> {
    let format = match image.mime_type.as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return Block::Text(Cow::Borrowed(STRANGE_IMAGE)),
    };
    Block::Image(Image {
        source: Source { bytes: &image.data },
        format,
    })
}

/// The blocks of an answer.
fn assistant_blocks(answer: &AssistantMessage, claude: bool) -> Vec<Block<'_>> {
    let blocks = answer.content.iter();
    blocks
        .filter_map(|block| assistant_block(block, claude))
        .collect()
}

fn assistant_block(block: &AssistantBlock, claude: bool) -> Option<Block<'_>> {
    match block {
        AssistantBlock::Text(block) => text(&block.text),
        AssistantBlock::Thinking(block) => thinking(block, claude),
        AssistantBlock::ToolCall(call) => Some(Block::ToolUse {
            tool_use_id: &call.id,
            name: &call.name,
            input: &call.arguments,
        }),
    }
}

/// Reasoning. Claude's goes back as text when its signature is missing: the API would refuse it.
fn thinking(block: &ThinkingContent, claude: bool) -> Option<Block<'_>> {
    let signature = block
        .thinking_signature
        .as_deref()
        .filter(|signature| !signature.trim().is_empty());
    if block.redacted == Some(true) {
        return signature.map(|data| Block::ReasoningContent(Reasoning::RedactedContent(data)));
    }
    if block.thinking.trim().is_empty() {
        return None;
    }
    if claude && signature.is_none() {
        return text(&block.thinking);
    }
    Some(Block::ReasoningContent(Reasoning::ReasoningText {
        text: &block.thinking,
        signature: signature.filter(|_| claude),
    }))
}

/// A result of a call.
fn tool_result(result: &ToolResultMessage) -> Block<'_> {
    Block::ToolResult {
        tool_use_id: &result.tool_call_id,
        content: filled(result.content.iter().filter_map(user_block).collect()),
        status: if result.is_error { "error" } else { "success" },
    }
}
