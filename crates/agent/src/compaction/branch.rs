//! Summaries of branches that are left (pi-core.md 3.7). Moving to another branch lives in `session` and `store`.

use std::sync::Arc;

use wire::entry::BranchSummary;
use wire::said::Edits;
use wire::{CompactionSummaryMessage, Entry, EntryBody, Message};

use super::files::FileLists;
use super::finish::some_text;
use super::limits::{BRANCH_STRETCH_PERCENT, BRANCH_SUMMARY_TOKENS};
use super::refusal::Refusal;
use super::request::{SummaryKind, SummaryRequest, request};
use super::said::said;
use super::serialise::{fenced, says_something, serialise};
use super::wording;
use crate::estimate::{estimate, weight};

/// What a branch summary is going to be made of.
#[derive(Debug, Clone, PartialEq)]
pub struct BranchPlan {
    /// Messages to summarise, oldest first, without tool results.
    pub messages: Vec<Arc<Message>>,
    /// Files that were touched on the branch.
    pub files: FileLists,
}

/// The entries that are left when one goes from the end of one branch to the end of another (both root first): everything
/// after the last entry they share.
#[must_use]
pub fn abandoned<'a>(old: &'a [Arc<Entry>], new: &[Arc<Entry>]) -> &'a [Arc<Entry>] {
    let pairs = old.iter().zip(new);
    let shared = pairs.take_while(|(old, new)| old.id == new.id).count();
    old.get(shared..).unwrap_or_default()
}

/// Plans the summary of entries that are left (oldest first). As many of the newest messages as fit into `budget` tokens are
/// taken: the context window without `branchSummary.reserveTokens`.
///
/// # Errors
/// [`Refusal::NothingToSummarise`] when nothing in them, or nothing that fits, says anything.
pub fn branch_plan(abandoned: &[Arc<Entry>], budget: u64) -> Result<BranchPlan, Refusal> {
    let edits = Edits::of(abandoned);
    let mut files = FileLists::default();
    // Files of branches that were summarised earlier count as well.
    for entry in abandoned {
        if let EntryBody::BranchSummary(body) = &entry.body {
            files.add_details(body.details.as_ref(), body.from_hook);
        }
    }
    let mut messages = Vec::new();
    let mut used = 0_u64;
    // A summary taken beyond the budget uses it up, so that nothing older fits.
    for message in abandoned.iter().rev().filter_map(|entry| told(&edits, entry)) {
        let size = size(&message);
        let full = used.saturating_add(size) > budget;
        if full && !(is_summary(&message) && may_stretch(used, budget)) {
            break;
        }
        used = used.saturating_add(size);
        files.add_calls(&message);
        messages.push(message);
    }
    messages.reverse();
    if says_something(&messages) {
        Ok(BranchPlan { messages, files })
    } else {
        Err(Refusal::NothingToSummarise)
    }
}

/// The request for a branch summary. Instructions of the client are added to ours, or take their place.
#[must_use]
pub fn branch_request(plan: &BranchPlan, instructions: Option<&str>, replace: bool) -> SummaryRequest {
    let mut text = fenced("conversation", &serialise(&plan.messages));
    let instructions = instructions.map(str::trim).filter(|text| !text.is_empty());
    let focus = match instructions {
        Some(own) if replace => {
            text.push_str(own);
            None
        }
        focus => {
            text.push_str(wording::BRANCH);
            focus
        }
    };
    request(SummaryKind::Branch, text, focus, BRANCH_SUMMARY_TOKENS)
}

/// The entry body for a branch summary: a preamble, the model's text and the file lists. `from_id` is what the entry calls
/// the branch (pi-1.5-delta.md 3: its last entry).
///
/// # Errors
/// [`Refusal::Empty`] when the answer is empty.
pub fn finish_branch(plan: &BranchPlan, answer: String, from_id: &str) -> Result<BranchSummary, Refusal> {
    let answer = some_text(answer)?;
    Ok(BranchSummary {
        from_id: from_id.to_owned(),
        summary: plan
            .files
            .append_to(format!("{}{answer}", wording::BRANCH_PREAMBLE)),
        details: Some(plan.files.details()),
        from_hook: Some(false),
        extra: wire::Extra::default(),
        usage: None,
    })
}

/// What an entry tells a branch summary: a compaction's summary counts here, a tool result does not.
fn told(edits: &Edits<'_>, entry: &Entry) -> Option<Arc<Message>> {
    if let EntryBody::Compaction(body) = &entry.body {
        return Some(Arc::new(Message::CompactionSummary(CompactionSummaryMessage {
            summary: body.summary.clone(),
            tokens_before: body.tokens_before,
            // The request for the summary shows no times.
            timestamp: 0,
            extra: wire::Extra::default(),
        })));
    }
    said(edits, entry).filter(|message| !matches!(**message, Message::ToolResult(_)))
}

/// Estimated tokens for the summariser. It also gets what failed answers said, which the model itself never sees again.
fn size(message: &Message) -> u64 {
    if message.as_assistant().is_some() {
        estimate(message)
    } else {
        weight(message)
    }
}

fn is_summary(message: &Message) -> bool {
    matches!(message, Message::CompactionSummary(_) | Message::BranchSummary(_))
}

fn may_stretch(used: u64, budget: u64) -> bool {
    used.saturating_mul(100) < budget.saturating_mul(BRANCH_STRETCH_PERCENT)
}
