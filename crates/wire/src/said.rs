//! Messages of the entries of a branch: which message each stands for, as later `context_edit` entries left it
//! (pi-1.5-delta.md 3). Which of them count for a context lives in `store` and `agent`.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::entry::{Entry, EntryBody};
use crate::extra::Extra;
use crate::message::{BranchSummaryMessage, CustomMessage, Message};

/// The `context_edit` entries of a branch; the last one of a target counts.
#[derive(Debug)]
pub struct Edits<'a>(HashMap<&'a str, &'a Value>);

impl<'a> Edits<'a> {
    /// Collects the edits of a branch, root first.
    #[must_use]
    pub fn of(branch: &'a [Arc<Entry>]) -> Self {
        Self(branch.iter().filter_map(|entry| edit(&entry.body)).collect())
    }

    /// The message that an entry stands for. None for settings, data and compactions, and for messages that were edited out.
    /// `time` gives the Unix time in milliseconds of an entry whose message has none of its own.
    pub fn message(&self, entry: &Entry, time: impl Fn(&Entry) -> i64) -> Option<Arc<Message>> {
        let message = message_of(entry, time)?;
        let replacement = match self.0.get(entry.id.as_str()) {
            None => return Some(message),
            Some(Value::Null) => return None,
            // As pi writes it.
            Some(Value::Object(members)) => members.get("content")?,
            Some(replacement) => replacement,
        };
        let has_blocks = matches!(message.role(), "assistant" | "toolResult");
        let content = match replacement {
            Value::String(text) if has_blocks => json!([{"type": "text", "text": text}]),
            replacement => replacement.clone(),
        };
        let replaced = serde_json::to_value(&*message).ok().and_then(|mut value| {
            value.as_object_mut()?.insert("content".to_owned(), content);
            Message::from_json(&value.to_string()).ok()
        });
        Some(replaced.map_or(message, Arc::new))
    }
}

/// Target and replacement of a `context_edit` entry; null leaves the message out, an object with `content` gives it other content.
/// Text or blocks alone do so, too.
fn edit(body: &EntryBody) -> Option<(&str, &Value)> {
    match body {
        EntryBody::Other(map) if body.kind() == "context_edit" => {
            let replacement = map.get("replacement").unwrap_or(&Value::Null);
            Some((map.get("targetId")?.as_str()?, replacement))
        }
        _ => None,
    }
}

fn message_of(entry: &Entry, time: impl Fn(&Entry) -> i64) -> Option<Arc<Message>> {
    match &entry.body {
        EntryBody::Message(body) => Some(Arc::clone(&body.message)),
        EntryBody::CustomMessage(body) => Some(Arc::new(Message::Custom(CustomMessage {
            custom_type: body.custom_type.clone(),
            content: body.content.clone(),
            display: body.display,
            details: body.details.clone(),
            timestamp: time(entry),
            extra: Extra::default(),
        }))),
        EntryBody::BranchSummary(body) if !body.summary.is_empty() => {
            Some(Arc::new(Message::BranchSummary(BranchSummaryMessage {
                summary: body.summary.clone(),
                from_id: body.from_id.clone(),
                timestamp: time(entry),
                extra: Extra::default(),
            })))
        }
        _ => None,
    }
}
