//! What an entry says to a model. Where a branch is cut lives in `cut`, how much room it takes is estimated in
//! `crate::estimate`.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use wire::{BranchSummaryMessage, CustomMessage, Entry, EntryBody, Message};

use crate::estimate::weight;

/// The `context_edit` entries of a branch, which change or leave out messages before them (pi-1.5-delta.md 3).
pub(super) struct Edits<'a>(HashMap<&'a str, &'a Value>);

impl<'a> Edits<'a> {
    pub(super) fn of(branch: &'a [Arc<Entry>]) -> Self {
        Self(branch.iter().filter_map(|entry| edit(&entry.body)).collect())
    }

    /// The message that an entry stands for. None for settings, data and compactions, for messages of a role that no model
    /// gets, and for messages that were edited out.
    pub(super) fn message(&self, entry: &Entry) -> Option<Arc<Message>> {
        let message = message_of(entry)?;
        let content = match self.0.get(entry.id.as_str()) {
            None => return Some(message),
            Some(Value::Null) => return None,
            Some(Value::String(text)) => json!([{"type": "text", "text": text}]),
            Some(blocks) => (*blocks).clone(),
        };
        let replaced = serde_json::to_value(&*message).ok().and_then(|mut value| {
            value.as_object_mut()?.insert("content".to_owned(), content);
            Message::from_json(&value.to_string()).ok()
        });
        Some(replaced.map_or(message, Arc::new))
    }

    /// One message or none per entry.
    pub(super) fn messages(&self, branch: &[Arc<Entry>]) -> Vec<Option<Arc<Message>>> {
        branch.iter().map(|entry| self.message(entry)).collect()
    }
}

/// Target and replacement of a `context_edit` entry.
fn edit(body: &EntryBody) -> Option<(&str, &Value)> {
    match body {
        EntryBody::Other(map) if body.kind() == "context_edit" => {
            let replacement = map.get("replacement").unwrap_or(&Value::Null);
            Some((map.get("targetId")?.as_str()?, replacement))
        }
        _ => None,
    }
}

/// Times do not matter to a summary, so the messages made here carry none.
fn message_of(entry: &Entry) -> Option<Arc<Message>> {
    match &entry.body {
        EntryBody::Message(body) => {
            (!matches!(*body.message, Message::Other(_))).then(|| Arc::clone(&body.message))
        }
        EntryBody::CustomMessage(body) => Some(Arc::new(Message::Custom(CustomMessage {
            custom_type: body.custom_type.clone(),
            content: body.content.clone(),
            display: body.display,
            details: body.details.clone(),
            timestamp: 0,
            extra: wire::Extra::default(),
        }))),
        EntryBody::BranchSummary(body) if !body.summary.is_empty() => {
            Some(Arc::new(Message::BranchSummary(BranchSummaryMessage {
                summary: body.summary.clone(),
                from_id: body.from_id.clone(),
                timestamp: 0,
                extra: wire::Extra::default(),
            })))
        }
        _ => None,
    }
}

/// The sum of [`weight`] over what a row of entries says.
pub(super) fn total(said: &[Option<Arc<Message>>]) -> u64 {
    said.iter().flatten().map(|message| weight(message)).sum()
}
