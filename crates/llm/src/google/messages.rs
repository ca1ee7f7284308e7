//! Writes a conversation as the `contents` of the Gemini API (providers.md 6). The rest of the request is written in
//! `request`. The types borrow from the conversation and are serialised straight into the body, as those of `anthropic` are.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use wire::{AssistantBlock, AssistantMessage, ImageContent, Message, Model, ToolCall, ToolResultMessage};

use super::generation::{results_hold_images, wants_signed_calls};
use crate::body::{Piece, elements, images, pieces, text_of};
use crate::conversation::Encoding;
use crate::error::LlmError;
use crate::ids;
use crate::transform::ONLY_IMAGES;

/// What the provider takes in place of a signature for a call that another model made.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Leads the images that results cannot hold, as pi words it for this API.
const RESULT_IMAGES: &str = "Tool result image:";

/// A message as the API takes it.
#[derive(Debug, Serialize)]
pub(super) struct Turn<'a> {
    parts: Vec<Part<'a>>,
    role: &'static str,
}

/// A part and its signature.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Kind<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        thought: bool,
    },
    #[serde(rename_all = "camelCase")]
    Image { inline_data: Image<'a> },
    #[serde(rename_all = "camelCase")]
    Call { function_call: Call<'a> },
    #[serde(rename_all = "camelCase")]
    Response { function_response: Response<'a> },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Image<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Debug, Serialize)]
struct Call<'a> {
    args: &'a Map<String, Value>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Response<'a> {
    name: &'a str,
    response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

/// What a tool gave.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

impl<'a> From<Kind<'a>> for Part<'a> {
    fn from(kind: Kind<'a>) -> Self {
        Self {
            kind,
            thought_signature: None,
        }
    }
}

impl<'a> From<Piece<'a>> for Part<'a> {
    fn from(piece: Piece<'a>) -> Self {
        let kind = match piece {
            Piece::Text(text) => Kind::Text { text, thought: false },
            Piece::Image(image) => Kind::Image {
                inline_data: Image {
                    mime_type: &image.mime_type,
                    data: &image.data,
                },
            },
        };
        Self::from(kind)
    }
}

/// How messages are written for a model.
pub(super) struct Contents<'a>(pub(super) &'a Model);

impl Encoding for Contents<'_> {
    fn call_id(&self, id: &str, _from: &AssistantMessage) -> String {
        ids::google(id, self.0)
    }

    fn encode(&self, history: &[Arc<Message>], _before: usize) -> Result<Vec<u8>, LlmError> {
        elements(&write(self.0, history))
    }
}

/// Messages of the conversation.
pub(super) fn write<'a>(model: &'a Model, history: &'a [Arc<Message>]) -> Vec<Turn<'a>> {
    let mut writer = Writer {
        sends_ids: ids::google_sends_ids(&model.id),
        wants_signed: wants_signed_calls(&model.id),
        holds_images: results_hold_images(&model.id),
        out: Vec::with_capacity(history.len()),
        results: Vec::new(),
        images: Vec::new(),
    };
    for message in history {
        writer.message(Arc::as_ref(message));
    }
    writer.flush();
    writer.out
}

/// Writes message by message.
struct Writer<'a> {
    /// What the model takes: ids of calls, calls without a signature, images in results.
    sends_ids: bool,
    wants_signed: bool,
    holds_images: bool,
    out: Vec<Turn<'a>>,
    /// Results of the last answer; the API wants them together.
    results: Vec<Part<'a>>,
    /// Images that the results could not hold.
    images: Vec<&'a ImageContent>,
}

impl<'a> Writer<'a> {
    fn message(&mut self, message: &'a Message) {
        if let Message::ToolResult(result) = message {
            self.result(result);
            return;
        }
        self.flush();
        match message {
            Message::User(user) => self.push("user", pieces(&user.content).map(Part::from).collect()),
            Message::Assistant(answer) => {
                let parts = self.answer(answer);
                self.push("model", parts);
            }
            _ => {}
        }
    }

    /// Appends a content, unless it is empty: the API refuses those.
    fn push(&mut self, role: &'static str, parts: Vec<Part<'a>>) {
        if !parts.is_empty() {
            self.out.push(Turn { parts, role });
        }
    }

    /// Appends the gathered results, and behind them the images they could not hold.
    fn flush(&mut self) {
        let results = std::mem::take(&mut self.results);
        self.push("user", results);
        if !self.images.is_empty() {
            let mut parts = vec![Part::from(Piece::Text(RESULT_IMAGES))];
            parts.extend(self.images.drain(..).map(Piece::Image).map(Part::from));
            self.push("user", parts);
        }
    }

    fn result(&mut self, result: &'a ToolResultMessage) {
        let mut text = text_of(&result.content);
        if text.is_empty() && images(&result.content).next().is_some() {
            text = Cow::Borrowed(ONLY_IMAGES);
        }
        let mut parts = Vec::new();
        if self.holds_images {
            parts.extend(images(&result.content).map(Piece::Image).map(Part::from));
        } else {
            self.images.extend(images(&result.content));
        }
        let function_response = Response {
            name: &result.tool_name,
            response: if result.is_error {
                Outcome::Error(text)
            } else {
                Outcome::Output(text)
            },
            parts,
            id: self.sends_ids.then_some(&*result.tool_call_id),
        };
        self.results.push(Kind::Response { function_response }.into());
    }

    /// The parts of an answer. What another model thought is text by now, and its signatures are gone.
    fn answer(&self, answer: &'a AssistantMessage) -> Vec<Part<'a>> {
        let mut parts = Vec::with_capacity(answer.content.len());
        let mut calls = 0;
        for block in &answer.content {
            match block {
                AssistantBlock::Text(text) => {
                    parts.extend(said(&text.text, false, text.text_signature.as_deref()));
                }
                AssistantBlock::Thinking(thinking) => {
                    let signature = thinking.thinking_signature.as_deref();
                    parts.extend(said(&thinking.thinking, true, signature));
                }
                AssistantBlock::ToolCall(call) => {
                    parts.push(self.call(call, calls == 0));
                    calls += 1;
                }
            }
        }
        parts
    }

    /// A call. Of several at once the provider signs the first.
    fn call(&self, call: &'a ToolCall, first: bool) -> Part<'a> {
        let function_call = Call {
            args: &call.arguments,
            name: &call.name,
            id: self.sends_ids.then_some(&*call.id),
        };
        let unsigned = (first && self.wants_signed).then_some(UNSIGNED);
        Part {
            kind: Kind::Call { function_call },
            thought_signature: valid(call.thought_signature.as_deref()).or(unsigned),
        }
    }
}

/// A part with text; none when it says nothing. A signature is worth sending by itself.
fn said<'a>(text: &'a str, thought: bool, signature: Option<&'a str>) -> Option<Part<'a>> {
    let thought_signature = valid(signature);
    (thought_signature.is_some() || !text.trim().is_empty()).then_some(Part {
        kind: Kind::Text { text, thought },
        thought_signature,
    })
}

/// The signature, if it is base64; the API refuses requests with another one.
fn valid(signature: Option<&str>) -> Option<&str> {
    signature.filter(|signature| {
        let plain = signature.trim_end_matches('=');
        let padding = signature.len() - plain.len();
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        !plain.is_empty() && padding <= 2 && signature.len() % 4 == 0 && plain.bytes().all(is_base64)
    })
}
