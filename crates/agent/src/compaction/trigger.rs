//! When a branch should be compacted (pi-core.md 3.2). `llm` decides which failures mean an overflow.

use std::sync::Arc;

use wire::{AssistantMessage, Entry, EntryBody, Message, StopReason, Usage};

use super::cut::{newest_compaction, region_start};
use wire::said::Edits;

use super::said::{said, total};
use crate::estimate::{Used, text_tokens};

/// When the size of the context is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Between two turns of a run, or at its end. After an abort nothing may start.
    Run,
    /// Before a prompt.
    Prompt,
}

/// Does a context of `context_tokens` leave less than `reserve` of a window free? Strict; a window of 0 is unknown and never
/// full.
#[must_use]
pub fn should_compact(context_tokens: u64, window: u64, reserve: u64) -> bool {
    window > 0 && context_tokens > window.saturating_sub(reserve)
}

/// The newest answer of a branch, unless a compaction came after it: what happened before a compaction never triggers
/// another one. This is the answer to look at for an overflow.
#[must_use]
pub fn answer_under_test(branch: &[Arc<Entry>]) -> Option<&AssistantMessage> {
    newest_answers(branch).next()
}

/// Where the entries behind the newest `context_edit` begin: usage that was reported before is of a context that is gone.
fn after_edits(branch: &[Arc<Entry>]) -> usize {
    let is_edit = |entry: &Arc<Entry>| entry.body.kind() == "context_edit";
    branch.iter().rposition(is_edit).map_or(0, |at| at + 1)
}

/// What the newest good answer since the newest compaction or `context_edit` reported.
pub(super) fn reported(branch: &[Arc<Entry>]) -> Option<&Usage> {
    newest_answers(branch.get(after_edits(branch)..).unwrap_or_default())
        .find(|answer| answer.reported_tokens().is_some())
        .map(|answer| &answer.usage)
}

/// The answers since the newest compaction, the newest first.
fn newest_answers(branch: &[Arc<Entry>]) -> impl Iterator<Item = &AssistantMessage> {
    let since = branch
        .iter()
        .rev()
        .take_while(|entry| !matches!(entry.body, EntryBody::Compaction(_)));
    since
        .filter_map(|entry| match &entry.body {
            EntryBody::Message(body) => Some(body.message.as_ref()),
            _ => None,
        })
        .filter_map(Message::as_assistant)
}

/// Tokens to hold against the window, if this is a moment to do so: there is an answer newer than the newest compaction,
/// and no run has just been aborted.
#[must_use]
pub fn pressure(branch: &[Arc<Entry>], moment: Moment) -> Option<u64> {
    let answer = answer_under_test(branch)?;
    // Before a prompt aborted answers count, as in pi (pi-core.md 1.11).
    let aborted = answer.stop_reason == StopReason::Aborted && moment == Moment::Run;
    (!aborted).then(|| context_tokens(branch))
}

/// Tokens in the context of a branch: what the newest good answer reported plus an estimate of what follows it. Answers
/// older than the newest compaction or `context_edit` still carry the size of the context back then and are not asked; when no
/// other reported anything, everything is estimated.
#[must_use]
pub fn context_tokens(branch: &[Arc<Entry>]) -> u64 {
    let edits = Edits::of(branch);
    let compaction = newest_compaction(branch);
    // Usage that was reported before is of a context that is gone; after a compaction it would trigger the next one at once.
    let since = compaction.map_or(0, |(at, _)| at + 1).max(after_edits(branch));
    let newest_first = branch.iter().skip(since).rev();
    match Used::by(newest_first.filter_map(|entry| said(&edits, entry))) {
        Used::Reported(tokens) => tokens,
        Used::Estimated(after) => {
            let kept = branch.get(region_start(branch)..since).unwrap_or_default();
            let summary = compaction.map_or(0, |(_, body)| text_tokens(&body.summary));
            after
                .saturating_add(total(kept.iter().filter_map(|entry| said(&edits, entry))))
                .saturating_add(summary)
        }
    }
}
