//! What the session tells its extensions without waiting for them, and their hooks on model requests.

use std::sync::Arc;

use agent::CompactOutcome;
use serde_json::{Value, json};
use wire::event::CompactionReason;
use wire::{Model, ThinkingLevel};

use super::Session;
use super::extensions::{CompactionNotice, ModelHooks, put};

impl Session {
    /// Tells of an event, if there are listeners.
    fn note(&mut self, name: &str, event: impl FnOnce(&Self) -> Value) {
        if self.extensions.hear(name) {
            let mut event = event(self);
            put(&mut event, "type", name.into());
            self.tell_only(name, &event);
        }
    }

    /// A compaction has ended. `will_retry`: the run that overflowed is tried again.
    pub(super) fn note_compaction(
        &mut self,
        outcome: &CompactOutcome,
        reason: CompactionReason,
        will_retry: bool,
    ) {
        let entry = self.conversation.log.entries().last().map(Arc::clone);
        let notice = CompactionNotice {
            outcome,
            reason,
            will_retry,
            entry: entry.as_ref(),
        };
        self.note(notice.name(), |_| notice.event());
    }

    /// The model has changed. `source`: `set` or `cycle`.
    pub(super) fn note_model(&mut self, previous: &Model, source: &str) {
        if (&previous.provider, &previous.id)
            != (
                &self.conversation.choice.model.provider,
                &self.conversation.choice.model.id,
            )
        {
            self.note(
                "model_select",
                |session| json!({"model": session.conversation.choice.model, "previousModel": previous, "source": source}),
            );
        }
    }

    /// The thinking level has changed.
    pub(super) fn note_thinking(&mut self, previous: ThinkingLevel) {
        self.note(
            "thinking_level_select",
            |session| json!({"level": session.conversation.choice.thinking, "previousLevel": previous}),
        );
    }

    /// Tells of dialogs that were opened, or are all closed.
    pub(super) fn note_prompts(&mut self) {
        if let Some((name, event)) = self.extensions.dialogs.update(self.dialogs.oldest()) {
            self.note(name, |_| event);
        }
    }

    /// The hooks of extensions on the next request to the model.
    pub(super) fn model_hooks(&mut self) -> ModelHooks {
        if ["context", "context_with_system"]
            .iter()
            .any(|name| self.extensions.hear(name))
        {
            self.sync_state();
        }
        let extensions = &self.extensions;
        ModelHooks::new(&extensions.links, &extensions.failures, |name| {
            extensions.hear(name).then(|| self.listeners(name, &Value::Null))
        })
    }
}
