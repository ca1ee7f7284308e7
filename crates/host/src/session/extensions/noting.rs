//! What extensions hear of besides runs, without anybody waiting for them: compactions, another model, another level, a
//! question to the user.

use std::sync::Arc;

use pinion_core::CompactOutcome;
use serde_json::{Value, json};
use wire::entry::Compaction;
use wire::event::CompactionReason;
use wire::ui::{UiMethod, UiRequest};
use wire::{EntryBody, Model, ThinkingLevel};

use super::super::Session;
use super::put;

impl Session {
    /// Tells something if anybody listens.
    fn note(&mut self, name: &str, event: impl FnOnce(&Self) -> Value) {
        if self.extensions.hear(name) {
            let mut event = event(self);
            put(&mut event, "type", name.into());
            self.tell_only(name, &event);
        }
    }

    /// A compaction has ended. `again`: for a run that overflowed and is tried again after it.
    pub(in crate::session) fn note_compaction(
        &mut self,
        outcome: &CompactOutcome,
        reason: CompactionReason,
        again: bool,
    ) {
        let (aborted, error) = match outcome {
            CompactOutcome::Done { .. } => {
                return self.note("session_compact", |session| {
                    let entry = session.log.entries().last().map(Arc::clone);
                    let made = entry.as_ref().is_some_and(|entry| {
                        matches!(&entry.body, EntryBody::Compaction(Compaction { from_hook: Some(true), .. }))
                    });
                    json!({"compactionEntry": entry, "fromExtension": made, "reason": reason, "willRetry": again})
                });
            }
            CompactOutcome::Failed(error) => (false, Some(error)),
            CompactOutcome::Aborted => (true, None),
        };
        self.note("session_compact_failed", |_| {
            let mut event =
                json!({"reason": reason, "aborted": aborted, "willRetry": false, "fromExtension": false});
            if let Some(error) = error {
                put(&mut event, "errorMessage", json!(error));
            }
            event
        });
    }

    /// The model is another one now. `source`: `set` or `cycle`.
    pub(in crate::session) fn note_model(&mut self, previous: &Model, source: &str) {
        if (&previous.provider, &previous.id) != (&self.model.provider, &self.model.id) {
            self.note(
                "model_select",
                |session| json!({"model": session.model, "previousModel": previous, "source": source}),
            );
        }
    }

    /// The thinking level is another one now.
    pub(in crate::session) fn note_thinking(&mut self, previous: ThinkingLevel) {
        self.note(
            "thinking_level_select",
            |session| json!({"level": session.thinking, "previousLevel": previous}),
        );
    }

    /// The user is asked something now, or nothing any more. What is asked meanwhile is part of the same wait.
    pub(in crate::session) fn note_prompts(&mut self) {
        let oldest = self.dialogs.oldest();
        if oldest.is_some() == self.extensions.prompted.is_some() {
            return;
        }
        let (name, event) = match oldest {
            Some(request) => {
                let event = prompt(request);
                self.extensions.prompted = Some(event.clone());
                ("ui_prompt_start", Some(event))
            }
            None => ("ui_prompt_end", self.extensions.prompted.take()),
        };
        self.note(name, |_| event.unwrap_or_default());
    }
}

fn prompt(request: &UiRequest) -> Value {
    let kind = match request.method {
        UiMethod::Select => "select",
        UiMethod::Confirm => "confirm",
        UiMethod::Editor => "editor",
        _ => "input",
    };
    let mut event = json!({"reason": "ui_prompt", "kind": kind});
    if let Some(title) = request.title.as_ref().filter(|title| !title.is_empty()) {
        put(&mut event, "title", json!(title));
    }
    event
}
