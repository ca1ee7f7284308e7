//! Where a branch is cut (pi-core.md 3.4). What becomes of the parts lives in `plan`.

use std::collections::HashMap;
use std::sync::Arc;

use wire::entry::Compaction;
use wire::{AssistantMessage, Entry, EntryBody, Message};

use super::said::total;
use crate::estimate::weight;

/// How the part that is kept word for word relates to `keepRecentTokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// At least these tokens are kept, as in pi. The message that reaches them is kept, too.
    #[default]
    AtLeast,
    /// At most these tokens are kept, as in oh-my-pi. The newest message that is no tool result is kept in any case.
    AtMost,
}

/// Positions on a branch; `from <= turn_start <= first_kept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// First entry that no earlier summary covers.
    pub(super) from: usize,
    /// Beginning of the turn that the cut splits; equal to `first_kept` when it splits none.
    pub(super) turn_start: usize,
    /// First entry that is kept.
    pub(super) first_kept: usize,
}

/// The newest compaction of a branch and where it is.
pub(super) fn newest_compaction(branch: &[Arc<Entry>]) -> Option<(usize, &Compaction)> {
    let mut newest_first = branch.iter().enumerate().rev();
    newest_first.find_map(|(at, entry)| match &entry.body {
        EntryBody::Compaction(body) => Some((at, body)),
        _ => None,
    })
}

/// Where the part begins that a model still sees word for word: at the first entry the newest compaction kept, or right
/// after that compaction when it kept nothing that is on the branch.
pub(super) fn region_start(branch: &[Arc<Entry>]) -> usize {
    newest_compaction(branch).map_or(0, |(at, body)| {
        let kept = branch
            .iter()
            .take(at)
            .position(|e| e.id == body.first_kept_entry_id);
        // An id that is not before the compaction is its own, so it kept nothing (pi-1.5-delta.md 3), or is not on this branch.
        kept.unwrap_or(at + 1)
    })
}

/// Finds the cut that keeps about `tokens`; `said` holds what each entry says. None when no entry may come first, or, with
/// [`Keep::AtLeast`], when less than that is there.
pub(super) fn find(
    branch: &[Arc<Entry>],
    said: &[Option<Arc<Message>>],
    tokens: u64,
    keep: Keep,
) -> Option<Cut> {
    let from = region_start(branch);
    let speaking = match keep {
        Keep::AtLeast => newest_with(said, from, tokens)?,
        Keep::AtMost => oldest_within(said, from, tokens)?,
    };
    let first_kept = before_settings(branch, said, from, speaking);
    // The head of a turn that the cut splits gets a summary of its own (`Plan::turn_prefix`).
    // At `speaking`, not at `first_kept`: entries of settings before the message say nothing.
    let turn_start = if begins_turn(said.get(speaking)?.as_deref()) {
        None
    } else {
        let earlier = said.iter().enumerate().take(speaking).skip(from);
        earlier
            .rev()
            .find(|(_, message)| begins_turn(message.as_deref()))
            .map(|(at, _)| at)
    };
    Some(Cut {
        from,
        // If the turn begins before the region, all before the cut is history.
        turn_start: turn_start.unwrap_or(first_kept),
        first_kept,
    })
}

/// The position for [`Keep::AtLeast`].
fn newest_with(said: &[Option<Arc<Message>>], from: usize, least: u64) -> Option<usize> {
    let reached = budget_reached(said, from, least)?;
    let allowed = cut_points(said, from);
    // After the budget first, so that no more than it is kept. A huge tool result at the end leaves no such place; then
    // the answer that asked for it is kept with it.
    allowed
        .iter()
        .find(|at| **at >= reached)
        .or_else(|| allowed.iter().rev().find(|at| **at < reached))
        .copied()
}

/// The position for [`Keep::AtMost`].
fn oldest_within(said: &[Option<Arc<Message>>], from: usize, most: u64) -> Option<usize> {
    let mut points = cut_points(said, from);
    // A failed answer is never sent. With a cut there, the message that it answers would be summarised and nothing kept.
    points.retain(|at| {
        let message = said.get(*at).and_then(Option::as_deref);
        !message
            .and_then(Message::as_assistant)
            .is_some_and(AssistantMessage::failed)
    });
    let mut newest_first = points.into_iter().rev();
    // Taken in any case, however much it weighs (`Keep::AtMost`).
    let mut cut = newest_first.next()?;
    let weight_of = |from: usize, to: usize| {
        let part = said.get(from..to).unwrap_or_default();
        total(part.iter().flatten().cloned())
    };
    let mut sum = weight_of(cut, said.len());
    for point in newest_first {
        sum = sum.saturating_add(weight_of(point, cut));
        if sum > most {
            break;
        }
        cut = point;
    }
    Some(cut)
}

/// The newest position from which on at least `keep` tokens are said. Tool results and extensions' messages count.
fn budget_reached(said: &[Option<Arc<Message>>], from: usize, keep: u64) -> Option<usize> {
    let mut sum = 0_u64;
    let region = said.iter().enumerate().skip(from).rev();
    region
        .filter_map(|(at, message)| Some((at, message.as_ref()?)))
        .find(|(_, message)| {
            sum = sum.saturating_add(weight(message));
            sum >= keep
        })
        .map(|(at, _)| at)
}

/// Positions at which the kept part may begin, ascending: at a message that is no tool result, and never between a tool
/// call and its result, where an extension or a user may have said something.
fn cut_points(said: &[Option<Arc<Message>>], from: usize) -> Vec<usize> {
    let mut asked_at: HashMap<&str, usize> = HashMap::new();
    let mut answered_at: HashMap<usize, usize> = HashMap::new();
    for (at, message) in said.iter().enumerate().skip(from) {
        match message.as_deref() {
            Some(Message::Assistant(answer)) => {
                asked_at.extend(answer.tool_calls().map(|call| (call.id.as_str(), at)));
            }
            Some(Message::ToolResult(result)) => {
                // The last result of an answer counts: results may be apart, with messages of users and extensions in between.
                if let Some(asked) = asked_at.get(result.tool_call_id.as_str()) {
                    answered_at.insert(*asked, at);
                }
            }
            _ => {}
        }
    }
    let mut points = Vec::new();
    let mut open_until = None;
    for (at, message) in said.iter().enumerate().skip(from) {
        let open = open_until.is_some_and(|until| at <= until);
        let speaks = message
            .as_deref()
            .is_some_and(|m| !matches!(m, Message::ToolResult(_)));
        if speaks && !open {
            points.push(at);
        }
        // `None` is less than any position.
        open_until = open_until.max(answered_at.get(&at).copied());
    }
    points
}

/// Moves a cut back over settings, labels and data right before it: they belong to what follows.
fn before_settings(
    branch: &[Arc<Entry>],
    said: &[Option<Arc<Message>>],
    from: usize,
    speaking: usize,
) -> usize {
    let before = branch.iter().zip(said).take(speaking).skip(from).rev();
    // Not over a compaction, which may not come first (pi-core.md 3.4), nor over a message that no model gets.
    let settings = before.take_while(|(entry, message)| {
        message.is_none() && !matches!(entry.body, EntryBody::Compaction(_) | EntryBody::Message(_))
    });
    speaking - settings.count()
}

fn begins_turn(message: Option<&Message>) -> bool {
    matches!(
        message,
        Some(Message::User(_) | Message::BashExecution(_) | Message::Custom(_) | Message::BranchSummary(_))
    )
}
