//! Writes a conversation for Mistral (providers.md 7). The rest of the request is written in `request`. The types borrow from
//! the conversation and are serialised straight into the body, as those of `anthropic` are.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use wire::{AssistantBlock, AssistantMessage, Message, ToolResultMessage};

use crate::body::{Call, DataUrl, Piece, elements, images, pieces, text_of};
use crate::conversation::Encoding;
use crate::error::LlmError;
use crate::ids;
use crate::transform::{NO_OUTPUT, ONLY_IMAGES};

/// Leads the result of a tool that failed; the API has no field for it.
const TOOL_ERROR: &str = "[tool error] ";

/// A message as the API takes it.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum Turn<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Vec<Part<'a>>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        name: &'a str,
        content: Vec<Part<'a>>,
    },
}

/// A part of a message. An image is a bare URL here.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: DataUrl<'a> },
    Thinking { thinking: [Box<Part<'a>>; 1] },
}

impl<'a> Part<'a> {
    fn text(text: &'a str) -> Self {
        let text = Cow::Borrowed(text);
        Self::Text { text }
    }
}

/// How messages are written for a model.
pub(super) struct Messages;

impl Encoding for Messages {
    fn call_id(&self, id: &str, _from: &AssistantMessage) -> String {
        ids::mistral(id)
    }

    fn encode(&self, history: &[Arc<Message>], _before: usize) -> Result<Vec<u8>, LlmError> {
        elements(&write(history))
    }
}

/// The system prompt; none if it is blank.
pub(super) fn prompt(text: &str) -> Option<Turn<'_>> {
    (!text.trim().is_empty()).then_some(Turn::System { content: text })
}

/// Messages of the conversation.
pub(super) fn write(history: &[Arc<Message>]) -> Vec<Turn<'_>> {
    let mut out = Vec::with_capacity(history.len());
    for message in history {
        match Arc::as_ref(message) {
            Message::User(user) => {
                let content: Vec<Part<'_>> = pieces(&user.content).map(part).collect();
                if !content.is_empty() {
                    out.push(Turn::User { content });
                }
            }
            Message::Assistant(answer) => out.extend(assistant(answer)),
            Message::ToolResult(result) => out.push(tool_result(result)),
            _ => {}
        }
    }
    out
}

fn part(piece: Piece<'_>) -> Part<'_> {
    match piece {
        Piece::Text(text) => Part::text(text),
        Piece::Image(image) => Part::ImageUrl {
            image_url: DataUrl(image),
        },
    }
}

/// An answer; none when nothing of it can be sent.
fn assistant(answer: &AssistantMessage) -> Option<Turn<'_>> {
    let mut content = Vec::new();
    let mut tool_calls = Vec::new();
    for block in &answer.content {
        match block {
            AssistantBlock::Text(text) if text.text.trim().is_empty() => {}
            AssistantBlock::Text(text) => content.push(Part::text(&text.text)),
            AssistantBlock::Thinking(thinking) if thinking.thinking.trim().is_empty() => {}
            AssistantBlock::Thinking(thinking) => {
                let thinking = [Box::new(Part::text(&thinking.thinking))];
                content.push(Part::Thinking { thinking });
            }
            AssistantBlock::ToolCall(call) => tool_calls.push(Call::from(call)),
        }
    }
    (!content.is_empty() || !tool_calls.is_empty()).then_some(Turn::Assistant { content, tool_calls })
}

fn tool_result(result: &ToolResultMessage) -> Turn<'_> {
    let mut text = text_of(&result.content);
    if text.trim().is_empty() {
        let seen = images(&result.content).next().is_some();
        text = Cow::Borrowed(if seen { ONLY_IMAGES } else { NO_OUTPUT });
    }
    if result.is_error {
        text = Cow::Owned(format!("{TOOL_ERROR}{text}"));
    }
    let mut content = vec![Part::Text { text }];
    content.extend(images(&result.content).map(Piece::Image).map(part));
    Turn::Tool {
        tool_call_id: &result.tool_call_id,
        name: &result.tool_name,
        content,
    }
}
