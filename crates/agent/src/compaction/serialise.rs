//! A conversation as text for a summariser (pi-core.md 3.5). The instructions for the summariser live in `wording`.
//!
//! Thinking is left out, as in today's pi (pi-1.5-delta.md 4): it is long, and what mattered of it is in what followed.

use std::slice;
use std::sync::Arc;

use serde_json::Value;
use wire::content::joined_text;
use wire::{AssistantBlock, AssistantMessage, Message, ToolCall};

use super::limits::MAX_TOOL_CHARS;
use crate::convert::to_llm;

/// The conversation, one paragraph per thing said, separated by blank lines. Images are dropped, and so is what a model
/// never gets to see.
pub(super) fn serialise(messages: &[Arc<Message>]) -> String {
    parts(messages).join("\n\n")
}

/// Is there anything that [`serialise`] would write?
pub(super) fn says_something(messages: &[Arc<Message>]) -> bool {
    messages
        .iter()
        .any(|message| !parts(slice::from_ref(message)).is_empty())
}

/// A text between tags, followed by a blank line. A closing tag inside the text is made harmless, so that nothing in a
/// conversation can pretend to stand outside of it.
pub(super) fn fenced(tag: &str, text: &str) -> String {
    let text = text.replace(&format!("</{tag}>"), &format!("<\\/{tag}>"));
    format!("<{tag}>\n{text}\n</{tag}>\n\n")
}

fn parts(messages: &[Arc<Message>]) -> Vec<String> {
    let mut parts = Vec::new();
    // Images are left out below, so no sentence has to stand for them.
    for message in to_llm(messages, false) {
        match message.as_ref() {
            Message::User(user) => push(&mut parts, "User", &user.content.text()),
            Message::Assistant(answer) => {
                push(&mut parts, "Assistant", &answer_text(answer));
                let calls: Vec<_> = answer.tool_calls().map(call_text).collect();
                push(&mut parts, "Assistant tool calls", &calls.join("; "));
            }
            Message::ToolResult(result) => {
                push(
                    &mut parts,
                    "Tool result",
                    &shortened(&joined_text(&result.content)),
                );
            }
            // `to_llm` gives no other roles.
            _ => {}
        }
    }
    parts
}

fn push(parts: &mut Vec<String>, speaker: &str, text: &str) {
    if !text.trim().is_empty() {
        parts.push(format!("[{speaker}]: {text}"));
    }
}

/// The text blocks of an answer, joined by a line feed.
pub(super) fn answer_text(answer: &AssistantMessage) -> String {
    let texts = answer.content.iter().filter_map(|block| match block {
        AssistantBlock::Text(text) => Some(text.text.as_str()),
        AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// `name(key=json, ...)`; long arguments, such as the content of a file to write, are cut like tool results.
fn call_text(call: &ToolCall) -> String {
    let argument = |(key, value): (&String, &Value)| format!("{key}={}", shortened(&value.to_string()));
    let arguments: Vec<_> = call.arguments.iter().map(argument).collect();
    format!("{}({})", call.name, arguments.join(", "))
}

/// The first characters of a text and a line that says how many are missing.
fn shortened(text: &str) -> String {
    // By characters, so that none is cut in two (pi-1.5-delta.md 4).
    match text.char_indices().nth(MAX_TOOL_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => {
            let (head, rest) = text.split_at(end);
            format!("{head}\n[{} more characters left out]", rest.chars().count())
        }
    }
}
