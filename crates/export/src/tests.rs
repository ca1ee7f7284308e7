//! Tests of exports: what the page says of itself, that no text of a session becomes markup, Markdown, and the file rules.

mod files;
mod payloads;
mod text;

use std::sync::Arc;

use serde_json::Value;
use wire::{Entry, SessionHeader};

use crate::{ExportInput, Format};

/// A session made of entries written as JSON, chained in order.
pub(super) struct Session {
    pub(super) header: SessionHeader,
    pub(super) entries: Vec<Arc<Entry>>,
}

impl Session {
    pub(super) fn of(bodies: &[Value]) -> Self {
        let entries = bodies.iter().enumerate().map(|(at, body)| {
            let mut line = body.clone();
            let map = line.as_object_mut().unwrap();
            map.entry("id").or_insert_with(|| format!("{at:08x}").into());
            let before = at.checked_sub(1).map(|before| format!("{before:08x}"));
            map.entry("parentId").or_insert_with(|| before.into());
            map.entry("timestamp")
                .or_insert_with(|| "2025-11-01T10:00:00.000Z".into());
            Arc::new(Entry::from_json(&line.to_string()).unwrap())
        });
        Self {
            entries: entries.collect(),
            header: store::new_header("/home/u/app", None),
        }
    }

    pub(super) fn input(&self) -> ExportInput<'_> {
        ExportInput {
            header: &self.header,
            entries: &self.entries,
            leaf_id: None,
            system_prompt: None,
            tools: &[],
            name: None,
        }
    }

    pub(super) fn export(&self, format: Format) -> String {
        export(&self.input(), format)
    }
}

pub(super) fn export(input: &ExportInput<'_>, format: Format) -> String {
    let mut out = Vec::new();
    format.write(input, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(super) fn user(text: &str) -> Value {
    serde_json::json!({ "type": "message", "message": { "role": "user", "content": [{ "type": "text", "text": text }] } })
}

pub(super) fn answer(blocks: Value) -> Value {
    serde_json::json!({ "type": "message", "message": { "role": "assistant", "content": blocks, "model": "m-1",
        "provider": "p", "usage": { "input": 10, "output": 5, "cost": { "total": 0.25 } } } })
}
