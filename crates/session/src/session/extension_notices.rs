//! What the session tells its extensions: without waiting for them, or with something that continues once they have heard of it.

use std::sync::Arc;
use std::time::Duration;

use agent::CompactOutcome;
use extensions::{Answer, ProcessError};
use serde_json::{Value, json};
use wire::event::CompactionReason;
use wire::{Model, ThinkingLevel};

use crate::limits;

use super::driver::Driver;
use super::extensions::{CompactionNotice, put};

const MODEL_SELECT: &str = "model_select";
const LEVEL_SELECT: &str = "thinking_level_select";

/// Tells of an event, if there are listeners.
fn note(driver: &mut Driver, name: &str, event: impl FnOnce(&Driver) -> Value) {
    if driver.extensions.has_listener(name) {
        // Made only for listeners, which most sessions do not have.
        let mut event = event(driver);
        put(&mut event, "type", name.into());
        driver.extensions.tell_only(&mut driver.core, name, &event);
    }
}

/// A compaction has ended. `will_retry`: the run that overflowed is tried again. Resolves when the handlers have ended, or after a time
/// limit; `None` without listeners.
pub(super) fn ask_compaction(
    driver: &mut Driver,
    outcome: &CompactOutcome,
    reason: CompactionReason,
    will_retry: bool,
) -> Option<impl Future<Output = Result<Answer, ProcessError>> + Send + use<>> {
    // After a success the summary was stored just now, so its entry is the newest.
    let entry = driver.core.conversation.log.entries().last().map(Arc::clone);
    let notice = CompactionNotice {
        outcome,
        reason,
        will_retry,
        entry: entry.as_ref(),
    };
    let name = notice.name();
    if !driver.extensions.has_listener(name) {
        return None;
    }
    let mut event = notice.event();
    put(&mut event, "type", name.into());
    ask(driver, name, &event, limits::COMPACTION_HANDLERS)
}

/// Tells of an event and resolves when its handlers have ended, or after a time limit; `None` without listeners.
fn ask(
    driver: &mut Driver,
    name: &'static str,
    event: &Value,
    most: Duration,
) -> Option<impl Future<Output = Result<Answer, ProcessError>> + Send + use<>> {
    if !driver.extensions.has_listener(name) {
        return None;
    }
    let answer = driver.extensions.hook_answer(&mut driver.core, name, event);
    Some(async move {
        let answer = tokio::time::timeout(most, answer).await;
        // Handlers only hear of it. It is no failure if they take too long.
        answer.unwrap_or_else(|_| Ok(Answer::default()))
    })
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
    let event = model_event(driver, previous, source);
    ask(driver, MODEL_SELECT, &event, limits::MODEL_HANDLERS)
}

fn model_event(driver: &Driver, previous: &Model, source: &str) -> Value {
    let model = &driver.core.conversation.choice.model;
    json!({"type": MODEL_SELECT, "model": model, "previousModel": previous, "source": source})
}

/// The thinking level has changed.
pub(super) fn note_thinking(driver: &mut Driver, previous: ThinkingLevel) {
    note(driver, LEVEL_SELECT, |driver| level_event(driver, previous));
}

/// The same. Resolves when the handlers have ended, or after a time limit; `None` without listeners.
pub(super) fn ask_thinking(
    driver: &mut Driver,
    previous: ThinkingLevel,
) -> Option<impl Future<Output = Result<Answer, ProcessError>> + Send + use<>> {
    let mut event = level_event(driver, previous);
    put(&mut event, "type", LEVEL_SELECT.into());
    ask(driver, LEVEL_SELECT, &event, limits::LEVEL_HANDLERS)
}

fn level_event(driver: &Driver, previous: ThinkingLevel) -> Value {
    json!({"level": driver.core.conversation.choice.thinking, "previousLevel": previous})
}

/// Tells of dialogs that were opened, or are all closed.
pub(super) fn note_prompts(driver: &mut Driver) {
    if let Some((name, event)) = driver.extensions.dialogs.update(driver.dialogs.oldest()) {
        note(driver, name, |_| event);
    }
}
