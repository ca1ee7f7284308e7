//! What the session tells its extensions without waiting for them.

use std::sync::Arc;

use agent::CompactOutcome;
use extensions::{Answer, ProcessError};
use serde_json::{Value, json};
use wire::event::CompactionReason;
use wire::{Model, ThinkingLevel};

use crate::limits;

use super::driver::Driver;
use super::extensions::{CompactionNotice, put};

const MODEL_SELECT: &str = "model_select";

/// Tells of an event, if there are listeners.
fn note(driver: &mut Driver, name: &str, event: impl FnOnce(&Driver) -> Value) {
    if driver.extensions.has_listener(name) {
        let mut event = event(driver);
        put(&mut event, "type", name.into());
        driver.extensions.tell_only(&mut driver.core, name, &event);
    }
}

/// A compaction has ended. `will_retry`: the run that overflowed is tried again.
pub(super) fn note_compaction(
    driver: &mut Driver,
    outcome: &CompactOutcome,
    reason: CompactionReason,
    will_retry: bool,
) {
    let entry = driver.core.conversation.log.entries().last().map(Arc::clone);
    let notice = CompactionNotice {
        outcome,
        reason,
        will_retry,
        entry: entry.as_ref(),
    };
    note(driver, notice.name(), |_| notice.event());
}

/// The model has changed. `source`: `set` or `cycle`.
pub(super) fn note_model(driver: &mut Driver, previous: &Model, source: &str) {
    note(driver, MODEL_SELECT, |driver| {
        model_event(driver, previous, source)
    });
}

/// The same. Resolves when the handlers have ended, or after a time limit; `None` without listeners.
pub(super) fn ask_model(
    driver: &mut Driver,
    previous: &Model,
    source: &str,
) -> Option<impl Future<Output = Result<Answer, ProcessError>> + Send + use<>> {
    if !driver.extensions.has_listener(MODEL_SELECT) {
        return None;
    }
    let event = model_event(driver, previous, source);
    let answer = driver
        .extensions
        .hook_answer(&mut driver.core, MODEL_SELECT, &event);
    Some(async move {
        let answer = tokio::time::timeout(limits::MODEL_HANDLERS, answer).await;
        answer.unwrap_or_else(|_| Ok(Answer::default()))
    })
}

fn model_event(driver: &Driver, previous: &Model, source: &str) -> Value {
    let model = &driver.core.conversation.choice.model;
    json!({"type": MODEL_SELECT, "model": model, "previousModel": previous, "source": source})
}

/// The thinking level has changed.
pub(super) fn note_thinking(driver: &mut Driver, previous: ThinkingLevel) {
    note(
        driver,
        "thinking_level_select",
        |driver| json!({"level": driver.core.conversation.choice.thinking, "previousLevel": previous}),
    );
}

/// Tells of dialogs that were opened, or are all closed.
pub(super) fn note_prompts(driver: &mut Driver) {
    if let Some((name, event)) = driver.extensions.dialogs.update(driver.dialogs.oldest()) {
        note(driver, name, |_| event);
    }
}
