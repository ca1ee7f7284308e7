//! From a model's answers to the stored entry and its event (pi-core.md 3.5, 3.6). Appending the entry lives in `session`.

use serde::{Deserialize, Serialize};
use serde_json::Map;
use wire::entry::Compaction;
use wire::event::CompactionResult;
use wire::{AssistantMessage, StopReason};

use super::plan::Plan;
use super::refusal::Refusal;
use super::request::SummaryKind;
use super::serialise;
use super::wording::{NO_HISTORY, TURN_SEPARATOR};
use crate::estimate::text_tokens;

/// A finished compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Body of the entry to append.
    pub entry: Compaction,
    /// The event for clients.
    pub result: CompactionResult,
}

impl Finished {
    /// Adds what files and clients of oh-my-pi have in addition: the method, the tokens afterwards and the short summary, if there is
    /// one.
    pub fn complete_as_omp(&mut self, short: Option<String>) {
        let mut members = Map::new();
        // The name of oh-my-pi for summaries that a model writes.
        members.insert("method".to_owned(), "soft".into());
        if let Some(tokens) = self.result.estimated_tokens_after {
            members.insert("tokensAfter".to_owned(), tokens.into());
        }
        if let Some(short) = &short {
            members.insert("shortSummary".to_owned(), short.as_str().into());
        }
        self.entry.extra = members.into();
        self.result.short_summary = short;
    }
}

/// The summary in a model's answer.
///
/// # Errors
/// When the request failed or was aborted, or the answer hit its output limit, calls a tool or holds no text. A short summary may hit the
/// limit.
pub fn answer_text(kind: SummaryKind, answer: &AssistantMessage) -> Result<String, Refusal> {
    match answer.stop_reason {
        StopReason::Error => {
            let message = answer.error_message.as_deref().unwrap_or("Unknown error");
            Err(Refusal::Failed(kind, message.to_owned()))
        }
        StopReason::Aborted => Err(Refusal::Aborted),
        // Half a summary would take the place of the whole history.
        StopReason::Length if kind != SummaryKind::Short => Err(Refusal::CutOff(kind)),
        _ if answer.tool_calls().next().is_some() => Err(Refusal::CalledTool(kind)),
        StopReason::Stop
        | StopReason::Length
        | StopReason::ToolUse
        | StopReason::Deferred
        | StopReason::Pending => some_text(serialise::answer_text(answer)),
    }
}

/// Joins the answers (one per request of the plan, in that order) to the new summary. Where no history was to be summarised
/// the previous summary stays as it is.
///
/// # Errors
/// When the number of answers is wrong or one of them is empty.
pub fn finish(plan: &Plan, answers: Vec<String>) -> Result<Finished, Refusal> {
    let wanted = usize::from(plan.asks_history()) + usize::from(plan.asks_prefix());
    if answers.len() != wanted {
        let got = answers.len();
        return Err(Refusal::Answers { wanted, got });
    }
    let mut answers = answers.into_iter().map(some_text);
    let mut summary = if plan.asks_history() {
        // Never missing: the number of answers was checked above.
        answers.next().unwrap_or(Err(Refusal::Empty))?
    } else {
        plan.previous_summary
            .clone()
            // A cut within the first turn leaves no history before it (behaviour.md 8.5).
            .unwrap_or_else(|| NO_HISTORY.to_owned())
    };
    if let Some(prefix) = answers.next() {
        summary.push_str(TURN_SEPARATOR);
        summary.push_str(&prefix?);
    }
    let summary = plan.files.append_to(summary);
    let details = plan.files.details();
    Ok(Finished {
        entry: Compaction {
            summary: summary.clone(),
            first_kept_entry_id: plan.first_kept_entry_id.clone(),
            tokens_before: plan.tokens_before,
            details: Some(details.clone()),
            // Written, not left out: pi's own compactions have it (pi-core.md 2.3).
            from_hook: Some(false),
            extra: wire::Extra::default(),
            usage: None,
        },
        result: CompactionResult {
            estimated_tokens_after: Some(estimated_tokens_after(plan, &summary)),
            summary,
            short_summary: None,
            first_kept_entry_id: plan.first_kept_entry_id.clone(),
            tokens_before: plan.tokens_before,
            details,
            // Here and above: the caller adds it, which has made the requests.
            usage: None,
        },
    })
}

/// Estimate of the tokens in the context once a summary has taken the place of everything before the cut.
#[must_use]
pub fn estimated_tokens_after(plan: &Plan, summary: &str) -> u64 {
    plan.kept_tokens.saturating_add(text_tokens(summary))
}

pub(super) fn some_text(text: String) -> Result<String, Refusal> {
    if text.trim().is_empty() {
        Err(Refusal::Empty)
    } else {
        Ok(text)
    }
}
