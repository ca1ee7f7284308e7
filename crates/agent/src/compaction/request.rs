//! What a model is asked for a summary (pi-core.md 3.5). Who asks it, with which model, lives in `session`.

use std::fmt;

use super::files::without_lists;
use super::limits::MIN_SUMMARY_TOKENS;
use super::plan::Plan;
use super::serialise::{fenced, serialise};
use super::wording;

/// What a summary is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryKind {
    /// The conversation before the part that is kept.
    History,
    /// The head of the turn that the cut splits.
    TurnPrefix,
    /// A finished summary and the messages that stay, in two or three sentences.
    Short,
    /// A branch that was left.
    Branch,
}

/// As error messages of pi name it.
impl fmt::Display for SummaryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::History => "Summarization",
            Self::TurnPrefix => "Turn prefix summarization",
            Self::Short => "Short summary",
            Self::Branch => "Branch summarization",
        })
    }
}

/// A request for a summary: a system prompt and one user message, without tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRequest {
    /// What it is about.
    pub kind: SummaryKind,
    /// The system prompt.
    pub system_prompt: String,
    /// The text of the one user message.
    pub user_text: String,
    /// Most tokens of the answer; the model's own limit may be lower.
    pub max_tokens: u64,
}

/// The requests that a plan needs, one or two; [`finish`](super::finish) wants their answers in this order. One after the
/// other or both at once makes no difference. Instructions of the client go into each.
#[must_use]
pub fn requests(plan: &Plan, custom_instructions: Option<&str>) -> Vec<SummaryRequest> {
    let mut requests = Vec::with_capacity(2);
    if plan.asks_history() {
        let previous = plan.previous_summary.as_deref();
        let mut text = fenced("conversation", &serialise(&plan.history));
        if let Some(previous) = previous {
            text.push_str(&fenced("previous-summary", previous));
        }
        text.push_str(if previous.is_some() {
            wording::UPDATE
        } else {
            wording::HISTORY
        });
        // As in pi (pi-core.md 3.5): 0.8 of the reserve for the history, and 0.5 for the prefix.
        let share = plan.settings.reserve_tokens.saturating_mul(4) / 5;
        requests.push(request(SummaryKind::History, text, custom_instructions, share));
    }
    if plan.asks_prefix() {
        let mut text = fenced("conversation", &serialise(&plan.turn_prefix));
        text.push_str(wording::TURN_PREFIX);
        let share = plan.settings.reserve_tokens / 2;
        requests.push(request(SummaryKind::TurnPrefix, text, custom_instructions, share));
    }
    requests
}

/// The request for the short summary of a compaction whose summary is finished, as in oh-my-pi. Instructions of the client are not in
/// it. It may have 512 tokens, the most that oh-my-pi allows.
#[must_use]
pub fn short_request(plan: &Plan, summary: &str) -> SummaryRequest {
    let mut text = fenced("conversation", &serialise(&plan.recent));
    text.push_str(&fenced("previous-summary", without_lists(summary)));
    text.push_str(wording::SHORT);
    request(SummaryKind::Short, text, None, MIN_SUMMARY_TOKENS)
}

pub(super) fn request(
    kind: SummaryKind,
    mut user_text: String,
    focus: Option<&str>,
    max_tokens: u64,
) -> SummaryRequest {
    if let Some(focus) = focus.map(str::trim).filter(|focus| !focus.is_empty()) {
        user_text.push_str("\n\n");
        user_text.push_str(wording::FOCUS);
        user_text.push_str(focus);
    }
    SummaryRequest {
        kind,
        system_prompt: wording::SYSTEM.to_owned(),
        user_text,
        max_tokens: max_tokens.max(MIN_SUMMARY_TOKENS),
    }
}
