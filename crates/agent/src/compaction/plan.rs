//! The plan of a compaction: the messages to summarise and those to keep (pi-core.md 3.4, 3.6). The cut itself is found in `cut`.

use std::sync::Arc;

use wire::{Entry, EntryBody, Message};

use super::cut::{self, Keep};
use super::files::{FileLists, without_lists};
use super::refusal::Refusal;
use super::said::{all_said, total};
use super::serialise::says_something;
use super::trigger::{context_tokens, reported};

/// Settings `compaction.*` that a plan depends on, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Kept free for the answer; also decides how long a summary may get.
    pub reserve_tokens: u64,
    /// Kept word for word at the end, about.
    pub keep_recent_tokens: u64,
    /// Whether that is the least or the most.
    pub keep: Keep,
}

impl Settings {
    /// The settings for a context window of `window` tokens; 0 means unknown. `reserve_tokens` is used as set by the user.
    /// Without a value, the default is limited to half the window: in a small window the default would reserve everything,
    /// and each answer would lead to a compaction. At most half of the rest is kept, so that a compaction makes room.
    #[must_use]
    pub fn for_window(
        window: u64,
        reserve_tokens: Option<u64>,
        default_reserve: u64,
        keep_recent: u64,
    ) -> Self {
        let (default_reserve, keep_limit) = match window {
            // Unknown, and so never full (pi-core.md 3.2): there is nothing to fit the settings into.
            0 => (default_reserve, u64::MAX),
            _ => {
                let default_reserve = default_reserve.min(window / 2);
                let reserved = reserve_tokens.unwrap_or(default_reserve);
                // The user's reserve may exceed the window; nothing is kept then.
                (default_reserve, window.saturating_sub(reserved) / 2)
            }
        };
        Self {
            reserve_tokens: reserve_tokens.unwrap_or(default_reserve),
            keep_recent_tokens: keep_recent.min(keep_limit),
            keep: Keep::default(),
        }
    }
}

/// What a compaction is going to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// First entry that is still sent to the model.
    pub first_kept_entry_id: String,
    /// Tokens in the context now.
    pub tokens_before: u64,
    /// The summary that stands at the beginning now, without its file lists.
    pub previous_summary: Option<String>,
    /// Messages to summarise, up to the turn that the cut splits if it splits one.
    pub history: Vec<Arc<Message>>,
    /// The head of the turn that the cut splits; empty when it splits none.
    pub turn_prefix: Vec<Arc<Message>>,
    /// Messages that are kept word for word.
    pub recent: Vec<Arc<Message>>,
    /// Files that the summarised part touched, earlier summaries included.
    pub files: FileLists,
    /// Estimated tokens of the messages that are kept.
    pub kept_tokens: u64,
    /// The settings it was made with.
    pub settings: Settings,
}

impl Plan {
    /// Does the cut fall inside a turn?
    #[must_use]
    pub fn splits_turn(&self) -> bool {
        !self.turn_prefix.is_empty()
    }

    /// Is there history that a model must summarise?
    pub(super) fn asks_history(&self) -> bool {
        says_something(&self.history)
    }

    /// Is there a turn's head that a model must summarise?
    pub(super) fn asks_prefix(&self) -> bool {
        says_something(&self.turn_prefix)
    }
}

/// Plans the compaction of a branch (oldest entry first). It may begin with the first entry that the newest compaction kept: older
/// entries change nothing.
///
/// # Errors
/// [`Refusal::AlreadyCompacted`] when it ends with a compaction, [`Refusal::NothingToCompact`] when all of it would be kept
/// or what would be summarised says nothing.
pub fn plan(branch: &[Arc<Entry>], settings: Settings) -> Result<Plan, Refusal> {
    if let Some(EntryBody::Compaction(_)) = branch.last().map(|entry| &entry.body) {
        return Err(Refusal::AlreadyCompacted);
    }
    let said = all_said(branch);
    let (keep, tokens_before) = sizes(branch, &said, settings);
    let cut = cut::find(branch, &said, keep, settings.keep).ok_or(Refusal::NothingToCompact)?;
    let first_kept = branch.get(cut.first_kept).ok_or(Refusal::NothingToCompact)?;
    let part = |from: usize, to: usize| -> Vec<Arc<Message>> {
        said.iter()
            .take(to)
            .skip(from)
            .flatten()
            .map(Arc::clone)
            .collect()
    };
    let mut files = FileLists::default();
    let previous = cut::newest_compaction(branch).map(|(_, body)| body);
    let previous_summary = previous.and_then(|body| {
        let listed = files.add_details(body.details.as_ref(), body.from_hook);
        // The lists are appended anew from `files`; otherwise they would stand in the summary twice.
        let summary = if listed {
            without_lists(&body.summary)
        } else {
            &body.summary
        };
        (!summary.trim().is_empty()).then(|| summary.to_owned())
    });
    let plan = Plan {
        first_kept_entry_id: first_kept.id.clone(),
        tokens_before,
        previous_summary,
        history: part(cut.from, cut.turn_start),
        turn_prefix: part(cut.turn_start, cut.first_kept),
        recent: part(cut.first_kept, said.len()),
        files,
        kept_tokens: total(said.iter().skip(cut.first_kept).flatten().cloned()),
        settings,
    };
    // Messages that say nothing as text (an image alone) would make a request with an empty conversation.
    if plan.asks_history() || plan.asks_prefix() {
        Ok(plan.with_files())
    } else {
        Err(Refusal::NothingToCompact)
    }
}

/// Tokens to keep, and those in the context now. With [`Keep::AtMost`], both follow what a provider counted, as in oh-my-pi: what it
/// counted beyond the estimate, such as the system prompt, leaves less to keep, and nothing is added for newer messages.
fn sizes(branch: &[Arc<Entry>], said: &[Option<Arc<Message>>], settings: Settings) -> (u64, u64) {
    let keep = settings.keep_recent_tokens;
    let usage = match settings.keep {
        Keep::AtLeast => None,
        Keep::AtMost => reported(branch),
    };
    let Some(usage) = usage else {
        return (keep, context_tokens(branch));
    };
    let region = said.iter().skip(cut::region_start(branch));
    let estimated = total(region.flatten().cloned());
    let prompt = usage.input.saturating_add(usage.cache_read);
    // Some providers report a total and none of its parts.
    let counted = match prompt.saturating_add(usage.cache_write) {
        0 => usage.context_tokens(),
        prompt => prompt,
    };
    let scaled = if estimated > 0 && counted > estimated {
        (keep.saturating_mul(estimated) / counted).max(1)
    } else {
        keep
    };
    (scaled, usage.context_tokens())
}

impl Plan {
    fn with_files(mut self) -> Self {
        for message in self.history.iter().chain(&self.turn_prefix) {
            self.files.add_calls(message);
        }
        self
    }
}
