//! Writes a conversation for the Messages API (providers.md 3). The rest of the request is written in `request`.
//!
//! The types here borrow from the conversation and are serialised straight into the body: a request is written with every
//! turn, so what it costs per message of the history is what a long run costs.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use wire::content::joined_text;
use wire::{
    AssistantBlock, AssistantMessage, Message, Model, ThinkingContent, ThinkingLevel, ToolResultMessage,
    UserBlock, UserContent,
};

use super::request::effort;
use crate::prompt_history::Instructions;
use crate::transform::{ONLY_IMAGES, TextOnlyError};

/// A message as the API takes it.
#[derive(Debug, Serialize)]
pub(super) struct Turn<'a> {
    role: &'static str,
    content: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

impl<'a> Turn<'a> {
    fn new(role: &'static str, content: Vec<Item<'a>>) -> Self {
        Self {
            role,
            content,
            output_config: None,
        }
    }

    /// Sets the effort of the answer that follows.
    fn effort(effort: String) -> Self {
        Self {
            role: "system",
            content: Vec::new(),
            output_config: Some(OutputConfig { effort }),
        }
    }
}

#[derive(Debug, Serialize)]
struct OutputConfig {
    effort: String,
}

/// Entries that are written between the messages of the conversation.
#[derive(Debug)]
pub(super) struct Inserts<'a> {
    /// Changes of the instructions.
    pub(super) instructions: &'a Instructions<'a>,
    /// The tools that each of these changes removes and adds, as the API takes them.
    pub(super) tools: Vec<(Vec<Value>, Vec<Value>)>,
    pub(super) model: &'a Model,
    /// The effort asked for now; none when efforts are not written between the messages.
    pub(super) effort: Option<String>,
}

impl<'a> Inserts<'a> {
    /// Appends what belongs before the answer with this index.
    fn write(&'a self, answer: usize, written: &mut usize, out: &mut Vec<Turn<'a>>) {
        let from = *written;
        let due = self.instructions.due(answer, written);
        for (update, (removed, added)) in due.iter().zip(self.tools.iter().skip(from)) {
            let text = text_block(&update.text).into_iter();
            let removed = removed.iter().map(|tool| Block::ToolRemoval { tool });
            let added = added.iter().map(|tool| Block::ToolAddition { tool });
            let content = text.chain(removed).chain(added).map(Item::from).collect();
            out.push(Turn::new("system", content));
        }
    }

    /// The effort that an earlier answer was asked for with.
    fn effort_of(&self, answer: usize) -> Option<String> {
        let level = self
            .instructions
            .thinking(answer)
            .filter(|_| self.effort.is_some())?;
        (level != ThinkingLevel::Off).then(|| effort(self.model, level))
    }
}

/// A block, and the cache marker if the prompt up to here is to be kept.
#[derive(Debug, Serialize)]
struct Item<'a> {
    #[serde(flatten)]
    block: Block<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a Value>,
}

impl<'a> From<Block<'a>> for Item<'a> {
    fn from(block: Block<'a>) -> Self {
        Self {
            block,
            cache_control: None,
        }
    }
}

/// A content block, its fields in the order of the original agent.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Map<String, Value>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: ResultContent<'a>,
        is_error: bool,
    },
    ToolRemoval {
        tool: &'a Value,
    },
    ToolAddition {
        tool: &'a Value,
    },
}

/// The bytes of an image.
#[derive(Debug, Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// What a tool gave: a string, or blocks when there are images.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// The `messages` of a request. Changed instructions stand directly before the answer that was the first to follow them,
/// because nothing may stand between a tool call and its result.
pub(super) fn write<'a>(
    history: &'a [Arc<Message>],
    cache: Option<&'a Value>,
    inserts: &'a Inserts<'a>,
    empty_signatures: bool,
) -> Vec<Turn<'a>> {
    let mut out: Vec<Turn<'a>> = Vec::with_capacity(history.len());
    let mut results = Results::default();
    let (mut answers, mut written) = (0, 0);
    for message in history {
        match Arc::as_ref(message) {
            Message::ToolResult(result) => results.push(result),
            Message::User(user) => {
                flush(&mut results, &mut out);
                let content = user_items(&user.content);
                if !content.is_empty() {
                    out.push(Turn::new("user", content));
                }
            }
            Message::Assistant(assistant) => {
                flush(&mut results, &mut out);
                let content = assistant_items(assistant, empty_signatures);
                if !content.is_empty() {
                    inserts.write(answers, &mut written, &mut out);
                    out.extend(inserts.effort_of(answers).map(Turn::effort));
                    out.push(Turn::new("assistant", content));
                }
                answers += 1;
            }
            _ => {}
        }
    }
    flush(&mut results, &mut out);
    inserts.write(usize::MAX, &mut written, &mut out);
    mark_last(&mut out, cache);
    out.extend(inserts.effort.clone().map(Turn::effort));
    out
}

/// Results of one answer. The API takes nothing but text in the result of a failed call, so the images of such results follow all
/// of them.
#[derive(Default)]
struct Results<'a> {
    items: Vec<Item<'a>>,
    images: Vec<Item<'a>>,
}

impl<'a> Results<'a> {
    fn push(&mut self, result: &'a ToolResultMessage) {
        let Some(error) = TextOnlyError::of(result) else {
            self.items.push(tool_result(result).into());
            return;
        };
        let text = Cow::Owned(error.caption);
        self.images.push(Block::Text { text }.into());
        self.images
            .extend(error.images.into_iter().filter_map(user_block).map(Item::from));
        let block = Block::ToolResult {
            tool_use_id: &result.tool_call_id,
            content: ResultContent::Text(Cow::Owned(error.text)),
            is_error: true,
        };
        self.items.push(block.into());
    }
}

/// Results of one answer go back together, in one user message.
fn flush<'a>(results: &mut Results<'a>, out: &mut Vec<Turn<'a>>) {
    let Results { mut items, images } = std::mem::take(results);
    items.extend(images);
    if !items.is_empty() {
        out.push(Turn::new("user", items));
    }
}

/// Marks the end of the prompt as cacheable, unless an answer is last.
fn mark_last<'a>(turns: &mut [Turn<'a>], cache: Option<&'a Value>) {
    if let Some(last) = turns.last_mut().filter(|last| last.role != "assistant")
        && let Some(item) = last.content.last_mut()
    {
        item.cache_control = cache;
    }
}

/// Text, unless it is blank: the API refuses blank blocks.
fn text_block(text: &str) -> Option<Block<'_>> {
    let block = Block::Text {
        text: Cow::Borrowed(text),
    };
    (!text.trim().is_empty()).then_some(block)
}

/// The blocks of a user message.
fn user_items(content: &UserContent) -> Vec<Item<'_>> {
    match content {
        UserContent::Text(text) => text_block(text).map(Item::from).into_iter().collect(),
        UserContent::Blocks(blocks) => blocks.iter().filter_map(user_block).map(Item::from).collect(),
    }
}

/// A block of a user message or a tool result.
fn user_block(block: &UserBlock) -> Option<Block<'_>> {
    match block {
        UserBlock::Text(text) => text_block(&text.text),
        UserBlock::Image(image) => Some(Block::Image {
            source: Source {
                kind: "base64",
                media_type: &image.mime_type,
                data: &image.data,
            },
        }),
    }
}

/// The blocks of an answer.
fn assistant_items<'a>(message: &'a AssistantMessage, empty_signatures: bool) -> Vec<Item<'a>> {
    let write = |block: &'a AssistantBlock| match block {
        AssistantBlock::Text(text) => text_block(&text.text),
        AssistantBlock::Thinking(thinking) => thinking_block(thinking, empty_signatures),
        AssistantBlock::ToolCall(call) => Some(Block::ToolUse {
            id: &call.id,
            name: &call.name,
            input: &call.arguments,
        }),
    };
    message.content.iter().filter_map(write).map(Item::from).collect()
}

/// Without a signature the API would refuse reasoning, so it goes back as text; some compatible servers give and take empty
/// signatures.
fn thinking_block(block: &ThinkingContent, empty_signatures: bool) -> Option<Block<'_>> {
    let signature = block.thinking_signature.as_deref().unwrap_or_default();
    if block.redacted == Some(true) {
        return Some(Block::RedactedThinking { data: signature });
    }
    if signature.trim().is_empty() && (block.thinking.trim().is_empty() || !empty_signatures) {
        return text_block(&block.thinking);
    }
    Some(Block::Thinking {
        thinking: &block.thinking,
        signature,
    })
}

/// A result of a call.
fn tool_result(result: &ToolResultMessage) -> Block<'_> {
    let has_image = result
        .content
        .iter()
        .any(|block| matches!(block, UserBlock::Image(_)));
    let content = match result.content.as_slice() {
        blocks if has_image => {
            let mut blocks: Vec<Block<'_>> = blocks.iter().filter_map(user_block).collect();
            if !blocks.iter().any(|block| matches!(block, Block::Text { .. })) {
                let text = Cow::Borrowed(ONLY_IMAGES);
                blocks.insert(0, Block::Text { text });
            }
            ResultContent::Blocks(blocks)
        }
        [UserBlock::Text(only)] => ResultContent::Text(Cow::Borrowed(&only.text)),
        blocks => ResultContent::Text(Cow::Owned(joined_text(blocks))),
    };
    Block::ToolResult {
        tool_use_id: &result.tool_call_id,
        content,
        is_error: result.is_error,
    }
}
