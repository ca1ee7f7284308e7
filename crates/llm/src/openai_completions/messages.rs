//! Writes a conversation for chat completions (providers.md 4). The rest of the request is written in `request`. The types
//! borrow from the conversation and are serialised straight into the body, as those of `anthropic` are.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use wire::{
    AssistantBlock, AssistantMessage, ImageContent, Message, Model, ThinkingContent, ToolCall,
    ToolResultMessage,
};

use super::details;
use super::dialect::Dialect;
use crate::body::{Call, DataUrl, Piece, images, pieces, text_of};
use crate::prompt_history::Instructions;
use crate::request::{CacheRetention, ModelRequest};
use crate::transform::{IMAGES_FOLLOW, NO_OUTPUT, ONLY_IMAGES};

/// Stands between a tool result and a user message for servers that want an answer there.
const BRIDGE: &str = "I have processed the tool results.";

/// Fields under which servers send reasoning; it goes back under the one it came from.
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// A message as the API takes it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Turn<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    // These three are `REASONING_FIELDS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Value>,
}

impl<'a> Turn<'a> {
    fn new(role: &'static str, content: Content<'a>) -> Self {
        Self {
            role,
            content,
            ..Self::default()
        }
    }
}

/// What a message says.
#[derive(Debug, Default, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    /// Null.
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<&'a Value>,
    },
    ImageUrl {
        image_url: ImageUrl<'a>,
    },
}

#[derive(Debug, Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

impl<'a> Part<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            cache_control: None,
        }
    }

    fn image(image: &'a ImageContent) -> Self {
        let url = DataUrl(image);
        Self::ImageUrl {
            image_url: ImageUrl { url },
        }
    }
}

/// Role of instructions.
pub(super) fn instructor(model: &Model, dialect: &Dialect) -> &'static str {
    if model.reasoning && dialect.developer_role {
        "developer"
    } else {
        "system"
    }
}

/// The system prompt; none if it is blank.
pub(super) fn prompt<'a>(role: &'static str, text: &'a str) -> Option<Turn<'a>> {
    let content = Content::Text(Cow::Borrowed(text));
    (!text.trim().is_empty()).then(|| Turn::new(role, content))
}

/// Messages of the conversation. Changed instructions get the given role.
pub(super) fn write<'a>(
    role: &'static str,
    instructions: &'a Instructions<'a>,
    dialect: &'a Dialect,
    history: &'a [Arc<Message>],
) -> Vec<Turn<'a>> {
    let mut writer = Writer {
        dialect,
        instructions,
        role,
        answers: 0,
        written: 0,
        out: Vec::with_capacity(history.len()),
        images: Vec::new(),
        after_result: false,
    };
    for message in history {
        writer.message(Arc::as_ref(message));
    }
    writer.flush_images();
    writer.updates(usize::MAX);
    writer.out
}

/// The cache marker of Anthropic, for routers that pass it on.
pub(super) fn marker(request: &ModelRequest, dialect: &Dialect) -> Option<Value> {
    match request.cache_retention {
        _ if !dialect.cache_markers => None,
        CacheRetention::None => None,
        CacheRetention::Long if dialect.long_retention => Some(json!({"type": "ephemeral", "ttl": "1h"})),
        CacheRetention::Short | CacheRetention::Long => Some(json!({"type": "ephemeral"})),
    }
}

/// Marks the system prompt and the last text of the last message that has one. In a run that is the result of a call: without the mark
/// there, every request would pay for all results of the run again.
pub(super) fn mark<'a>(prompt: &mut [Turn<'a>], turns: &mut [Turn<'a>], marker: &'a Value) {
    let first = prompt
        .iter_mut()
        .chain(turns.iter_mut())
        .find(|turn| matches!(turn.role, "system" | "developer"));
    if let Some(system) = first {
        mark_text(system, marker);
    }
    let spoken = turns
        .iter_mut()
        .rev()
        .filter(|turn| matches!(turn.role, "user" | "assistant" | "tool"));
    for turn in spoken {
        if mark_text(turn, marker) {
            break;
        }
    }
}

/// Marks the last text of a message; false when it has none.
fn mark_text<'a>(turn: &mut Turn<'a>, marker: &'a Value) -> bool {
    match &mut turn.content {
        Content::Text(text) if !text.is_empty() => {
            turn.content = Content::Parts(vec![Part::Text {
                text: std::mem::take(text),
                cache_control: Some(marker),
            }]);
            true
        }
        Content::Parts(parts) => {
            let marks = parts.iter_mut().rev().find_map(|part| match part {
                Part::Text { cache_control, .. } => Some(cache_control),
                Part::ImageUrl { .. } => None,
            });
            marks.map(|mark| *mark = Some(marker)).is_some()
        }
        Content::Text(_) | Content::Nothing => false,
    }
}

/// Writes message by message.
struct Writer<'a> {
    dialect: &'a Dialect,
    instructions: &'a Instructions<'a>,
    /// Role of instructions.
    role: &'static str,
    /// Answers that have been written.
    answers: usize,
    /// Changes of the instructions that have been written.
    written: usize,
    out: Vec<Turn<'a>>,
    /// Images of the tool results just written.
    images: Vec<&'a ImageContent>,
    /// A tool result was written last.
    after_result: bool,
}

impl<'a> Writer<'a> {
    /// Writes one message of the conversation.
    fn message(&mut self, message: &'a Message) {
        if let Message::ToolResult(result) = message {
            self.tool_result(result);
            self.after_result = true;
            return;
        }
        self.flush_images();
        match message {
            Message::User(user) => {
                let parts: Vec<Part<'a>> = pieces(&user.content).map(part).collect();
                if !parts.is_empty() {
                    self.bridge();
                    self.out.push(Turn::new("user", Content::Parts(parts)));
                }
            }
            Message::Assistant(answer) => {
                self.updates(self.answers);
                self.answers += 1;
                self.out.extend(self.answer(answer));
            }
            _ => {}
        }
        self.after_result = false;
    }

    fn instruct(&mut self, text: &'a str) {
        let content = Content::Text(Cow::Borrowed(text));
        self.out.push(Turn::new(self.role, content));
    }

    /// Writes the changed instructions that belong before the answer with this index.
    fn updates(&mut self, answer: usize) {
        let instructions = self.instructions;
        for update in instructions.due(answer, &mut self.written) {
            self.instruct(&update.text);
        }
    }

    /// Writes an answer where the server insists on one.
    fn bridge(&mut self) {
        if self.after_result && self.dialect.assistant_after_result {
            let content = Content::Text(Cow::Borrowed(BRIDGE));
            self.out.push(Turn::new("assistant", content));
        }
    }

    /// Writes a result; its images wait for the last of the batch.
    fn tool_result(&mut self, result: &'a ToolResultMessage) {
        let before = self.images.len();
        self.images.extend(images(&result.content));
        let mut text = text_of(&result.content);
        if text.trim().is_empty() {
            // Some servers refuse a message without a text.
            let has_image = self.images.len() > before;
            text = Cow::Borrowed(if has_image { ONLY_IMAGES } else { NO_OUTPUT });
        }
        self.out.push(Turn {
            tool_call_id: Some(&result.tool_call_id),
            name: self.dialect.tool_result_name.then_some(&*result.tool_name),
            ..Turn::new("tool", Content::Text(text))
        });
    }

    /// The images of consecutive tool results follow them in one user message.
    fn flush_images(&mut self) {
        if self.images.is_empty() {
            return;
        }
        self.bridge();
        let mut parts = vec![Part::text(IMAGES_FOLLOW)];
        parts.extend(self.images.drain(..).map(Part::image));
        self.out.push(Turn::new("user", Content::Parts(parts)));
        self.after_result = false;
    }

    /// An answer; none when nothing of it can be sent.
    fn answer(&self, answer: &'a AssistantMessage) -> Option<Turn<'a>> {
        let mut text = Cow::Borrowed("");
        let mut thinking: Vec<&ThinkingContent> = Vec::new();
        let mut calls: Vec<&ToolCall> = Vec::new();
        for block in &answer.content {
            match block {
                AssistantBlock::Text(block) if block.text.trim().is_empty() => {}
                // The first is borrowed.
                AssistantBlock::Text(block) => text += block.text.as_str(),
                AssistantBlock::Thinking(block) if block.thinking.trim().is_empty() => {}
                AssistantBlock::Thinking(block) => thinking.push(block),
                AssistantBlock::ToolCall(call) => calls.push(call),
            }
        }
        let dialect = self.dialect;
        let content = if dialect.thinking_as_text && !thinking.is_empty() {
            let mut parts = vec![Part::text(joined(&thinking, "\n\n"))];
            parts.extend((!text.is_empty()).then(|| Part::text(text)));
            Content::Parts(parts)
        } else if !text.is_empty() {
            Content::Text(text)
        } else if calls.is_empty() {
            return None;
        } else if dialect.assistant_after_result || dialect.content_required {
            Content::Text(Cow::Borrowed(""))
        } else {
            Content::Nothing
        };
        let mut turn = Turn::new("assistant", content);
        let mut signatures = answer.content.iter().filter_map(|block| match block {
            AssistantBlock::Thinking(block) => block.thinking_signature.as_deref(),
            AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => None,
        });
        // Sessions of older agents have the encrypted ones in the signatures of calls.
        turn.reasoning_details = signatures.find_map(details::of_reasoning).unwrap_or_else(|| {
            let signatures = calls.iter().filter_map(|call| call.thought_signature.as_deref());
            signatures.filter_map(details::of_call).collect()
        });
        // The details say all that the field would.
        if !dialect.thinking_as_text
            && turn.reasoning_details.is_empty()
            && let Some(signature) = thinking
                .first()
                .and_then(|block| block.thinking_signature.as_deref())
        {
            let field = match signature {
                // This provider sends one field and wants the other back.
                "reasoning" if answer.provider == "opencode-go" => Some(&mut turn.reasoning_content),
                "reasoning_content" => Some(&mut turn.reasoning_content),
                "reasoning" => Some(&mut turn.reasoning),
                "reasoning_text" => Some(&mut turn.reasoning_text),
                _ => None,
            };
            if let Some(field) = field {
                *field = Some(joined(&thinking, "\n"));
            }
        }
        if dialect.reasoning_content_required {
            turn.reasoning_content.get_or_insert_default();
        }
        turn.tool_calls = calls.into_iter().map(Call::from).collect();
        Some(turn)
    }
}

/// Reasoning as one text.
fn joined<'a>(thinking: &[&'a ThinkingContent], between: &str) -> Cow<'a, str> {
    match thinking {
        [only] => Cow::Borrowed(&only.thinking),
        all => {
            let texts: Vec<&str> = all.iter().map(|block| block.thinking.as_str()).collect();
            Cow::Owned(texts.join(between))
        }
    }
}

/// A part of a user message.
fn part(piece: Piece<'_>) -> Part<'_> {
    match piece {
        Piece::Text(text) => Part::text(text),
        Piece::Image(image) => Part::image(image),
    }
}
