//! Writes a conversation as the `input` items of the Responses API (providers.md 5). The rest of the request is written in
//! `request`. The types borrow from the conversation and are serialised straight into the body, as those of `anthropic` are.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::{
    AssistantBlock, AssistantMessage, Message, Model, TextContent, ThinkingLevel, ToolCall, ToolResultMessage,
};

use super::TextSignature;
use crate::body::{DataUrl, Piece, Spelled, elements, images, pieces, text_of};
use crate::compat::flag;
use crate::conversation::{Conversation, Encoding};
use crate::error::LlmError;
use crate::ids;
use crate::limits::RESPONSES_ID_LEN;
use crate::prompt_history::Instructions;
use crate::request::ModelRequest;
use crate::transform::NO_OUTPUT;

/// An item as the API takes it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Item<'a> {
    /// A prompt.
    Said {
        role: &'static str,
        content: Content<'a>,
    },
    /// Reasoning as the provider gave it.
    Reasoning(&'a RawValue),
    Other(Own<'a>),
}

/// An item that names its type.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Own<'a> {
    Message {
        role: &'static str,
        content: [Output<'a>; 1],
        status: &'static str,
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        call_id: &'a str,
        name: &'a str,
        arguments: Spelled<'a>,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    /// Sets the effort of the answers that follow.
    ConfigurationUpdate {
        reasoning: Reasoning,
    },
}

#[derive(Debug, Serialize)]
pub(crate) struct Reasoning {
    effort: String,
}

/// A text, or parts when there may be images.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Input<'a>>),
}

/// A part of a user message or a tool result.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Input<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        detail: &'static str,
        image_url: DataUrl<'a>,
    },
}

/// A text of an answer.
#[derive(Debug, Serialize)]
pub(crate) struct Output<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    annotations: [(); 0],
}

/// The system prompt; none if it is blank.
pub(super) fn prompt<'a>(inserts: &'a Inserts<'a>) -> Option<Item<'a>> {
    let prompt = inserts.instructions.system_prompt;
    (!prompt.trim().is_empty()).then(|| inserts.instruction(prompt))
}

/// Entries that are written between the messages of the conversation.
#[derive(Debug)]
pub(crate) struct Inserts<'a> {
    pub(crate) model: &'a Model,
    /// Changes of the instructions.
    pub(crate) instructions: Instructions<'a>,
    /// The effort asked for now; none when efforts are not written between the messages.
    pub(crate) effort: Option<String>,
}

impl Encoding for Inserts<'_> {
    fn call_id(&self, id: &str, from: &AssistantMessage) -> String {
        ids::responses(id, from, self.model)
    }

    fn encode(&self, history: &[Arc<Message>], before: usize) -> Result<Vec<u8>, LlmError> {
        elements(&write(self, history, before))
    }
}

impl<'a> Inserts<'a> {
    /// The conversation of a request.
    ///
    /// # Errors
    /// [`LlmError::Encode`].
    pub(crate) fn conversation(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, LlmError> {
        // What stands between the messages depends on all messages.
        if self.instructions.updates.is_empty() && self.effort.is_none() {
            Conversation::continued(request, self)
        } else {
            Ok(Conversation::whole(request, self))
        }
    }

    fn instruction(&self, text: &'a str) -> Item<'a> {
        let developer = self.model.reasoning && flag(self.model, "supportsDeveloperRole", true);
        let role = if developer { "developer" } else { "system" };
        let content = Content::Text(Cow::Borrowed(text));
        Item::Said { role, content }
    }

    /// Appends what belongs before the answer with this index.
    fn write(&'a self, answer: usize, written: &mut usize, out: &mut Vec<Item<'a>>) {
        let due = self.instructions.due(answer, written).iter();
        out.extend(due.map(|update| self.instruction(&update.text)));
    }

    /// The effort that an earlier answer was asked for with.
    fn effort_of(&self, answer: usize) -> Option<Item<'a>> {
        let level = self
            .instructions
            .thinking(answer)
            .filter(|_| self.effort.is_some())?;
        (level != ThinkingLevel::Off).then(|| set_effort(effort(self.model, level).to_owned()))
    }
}

/// The model's word for a level other than off.
pub(crate) fn effort(model: &Model, level: ThinkingLevel) -> &str {
    let level = model.clamp_thinking(level);
    model.mapped_thinking(level).unwrap_or(level.as_str())
}

fn set_effort<'a>(effort: String) -> Item<'a> {
    let reasoning = Reasoning { effort };
    Item::Other(Own::ConfigurationUpdate { reasoning })
}

/// Messages of the conversation. `before` others stand before them.
pub(crate) fn write<'a>(
    inserts: &'a Inserts<'a>,
    history: &'a [Arc<Message>],
    before: usize,
) -> Vec<Item<'a>> {
    let model = inserts.model;
    let mut out = Vec::with_capacity(history.len());
    let (mut answers, mut written) = (0, 0);
    for (index, message) in history.iter().enumerate() {
        match Arc::as_ref(message) {
            Message::User(user) => {
                let parts: Vec<Input<'a>> = pieces(&user.content).map(part).collect();
                if !parts.is_empty() {
                    let content = Content::Parts(parts);
                    out.push(Item::Said {
                        role: "user",
                        content,
                    });
                }
            }
            Message::Assistant(answer) => {
                inserts.write(answers, &mut written, &mut out);
                out.extend(inserts.effort_of(answers));
                answer_items(answer, before + index, model, &mut out);
                answers += 1;
            }
            Message::ToolResult(result) => out.push(tool_result(result)),
            _ => {}
        }
    }
    inserts.write(usize::MAX, &mut written, &mut out);
    out.extend(inserts.effort.clone().map(set_effort));
    out
}

/// A part of a user message or a tool result.
fn part(piece: Piece<'_>) -> Input<'_> {
    match piece {
        Piece::Text(text) => Input::InputText {
            text: Cow::Borrowed(text),
        },
        Piece::Image(image) => Input::InputImage {
            detail: "auto",
            image_url: DataUrl(image),
        },
    }
}

/// Appends the items of an answer, in its order.
fn answer_items<'a>(answer: &'a AssistantMessage, index: usize, model: &Model, out: &mut Vec<Item<'a>>) {
    // The API knows which reasoning an item of its own came with and refuses the one without the other. Another model's
    // reasoning is not sent, so its calls must not be recognised.
    let nameless = answer.provider == model.provider && answer.api == model.api && answer.model != model.id;
    let (mut texts, begin) = (0, out.len());
    for block in &answer.content {
        match block {
            AssistantBlock::Text(text) if text.text.trim().is_empty() => {}
            AssistantBlock::Text(text) => {
                out.push(text_item(text, index, texts));
                texts += 1;
            }
            AssistantBlock::Thinking(thinking) => {
                let item = thinking.thinking_signature.as_deref().and_then(reasoning);
                out.extend(item.map(Item::Reasoning));
            }
            AssistantBlock::ToolCall(call) => out.push(call_item(call, nameless)),
        }
    }
    // For the same reason reasoning that led to nothing stays out.
    while out.len() > begin && matches!(out.last(), Some(Item::Reasoning(_))) {
        out.pop();
    }
}

/// The item that a signature is, when it is one. It goes back as it came.
fn reasoning(signature: &str) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    let kind: Kind<'_> = serde_json::from_str(signature).ok()?;
    (kind.kind == "reasoning")
        .then(|| serde_json::from_str(signature).ok())
        .flatten()
}

/// A text of an answer. Without a signature it gets an id made of its place.
fn text_item(text: &TextContent, message: usize, nth: usize) -> Item<'_> {
    let signature = text.text_signature.as_deref().and_then(TextSignature::read);
    let (id, phase) = match signature {
        Some(TextSignature { id, phase }) if id.len() <= RESPONSES_ID_LEN => (id, phase),
        Some(TextSignature { id, phase }) => (format!("msg_{}", ids::short_hash(&id)), phase),
        None if nth == 0 => (format!("msg_{message}"), None),
        None => (format!("msg_{message}_{nth}"), None),
    };
    let content = [Output {
        kind: "output_text",
        text: &text.text,
        annotations: [],
    }];
    Item::Other(Own::Message {
        role: "assistant",
        content,
        status: "completed",
        id,
        phase,
    })
}

/// A tool call; its id is `call|item` or only the first.
fn call_item(call: &ToolCall, nameless: bool) -> Item<'_> {
    let (call_id, item_id) = halves(&call.id);
    Item::Other(Own::FunctionCall {
        id: item_id.filter(|id| !(nameless && id.starts_with("fc_"))),
        call_id,
        name: &call.name,
        arguments: Spelled(&call.arguments),
    })
}

/// A tool's result: a string, or parts when there are images.
fn tool_result(result: &ToolResultMessage) -> Item<'_> {
    let text = text_of(&result.content);
    let mut images = images(&result.content).map(Piece::Image).map(part).peekable();
    let output = if images.peek().is_some() {
        let text = (!text.trim().is_empty()).then_some(Input::InputText { text });
        Content::Parts(text.into_iter().chain(images).collect())
    } else if text.trim().is_empty() {
        Content::Text(Cow::Borrowed(NO_OUTPUT))
    } else {
        Content::Text(text)
    };
    let (call_id, _) = halves(&result.tool_call_id);
    Item::Other(Own::FunctionCallOutput { call_id, output })
}

/// The two halves of an id.
fn halves(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item).filter(|item| !item.is_empty())),
        None => (id, None),
    }
}
