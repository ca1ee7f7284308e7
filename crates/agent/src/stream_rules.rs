//! The rules of a session that watch answers, and the ones that stopped the request that is out (dialects.md 8). `ttsr`
//! decides what matches and the text; the turn loop decides what follows.

use std::sync::Arc;

use wire::entry::TtsrInjection;
use wire::{EntryBody, Message, Rule, StreamEvent};

use crate::ttsr::Watch;

/// Rules that watch answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamRules {
    /// None until the caller gives the rules of the branch.
    watch: Option<Watch>,
    /// Rules that stopped the request that is out: its end tells a stop by rules from an abort by them.
    stopped_by: Vec<Arc<Rule>>,
}

impl StreamRules {
    /// Replaces the rules; without any, the caller is asked for them again.
    pub(crate) fn set(&mut self, watch: Option<Watch>) {
        self.watch = watch;
    }

    pub(crate) fn are_set(&self) -> bool {
        self.watch.is_some()
    }

    /// A request goes out. Rules that stopped the request before say nothing about this one.
    pub(crate) fn begin_request(&mut self) {
        self.stopped_by.clear();
        if let Some(watch) = &mut self.watch {
            watch.turn_started();
        }
    }

    /// Gives the rules that match what arrived now and want the answer stopped; they count as the ones that stopped it.
    pub(crate) fn on_update(&mut self, event: &StreamEvent) -> Option<Vec<Arc<Rule>>> {
        // Deltas still come between the cancellation and the end of the request; they must not trigger a second time.
        if !self.stopped_by.is_empty() {
            return None;
        }
        let rules = self.watch.as_mut()?.on_update(event);
        self.stopped_by.clone_from(&rules);
        Some(rules).filter(|rules| !rules.is_empty())
    }

    /// The request has ended: gives the rules that stopped it.
    pub(crate) fn end_request(&mut self) -> Vec<Arc<Rule>> {
        std::mem::take(&mut self.stopped_by)
    }

    /// Returns true if the answer that rules stopped stays in the conversation.
    pub(crate) fn keep_partial(&self) -> bool {
        // Without rules no message follows that explains the stop (`tell`), so the answer stays.
        self.watch.as_ref().is_none_or(Watch::keeps_partial)
    }

    /// The message that tells the model the rules, and the entry that notes it; none without rules.
    pub(crate) fn tell(&mut self, rules: &[Arc<Rule>], now: i64) -> Option<(Message, EntryBody)> {
        let message = self.watch.as_mut()?.tell(rules, now);
        // Read when the session comes back to this branch: the names are `told` in `Change::Rules` then.
        let entry = EntryBody::TtsrInjection(TtsrInjection {
            injected_rules: rules.iter().map(|rule| rule.name.clone()).collect(),
            extra: wire::Extra::default(),
        });
        Some((message, entry))
    }

    /// Returns true if rules wait to be told when the run would end.
    pub(crate) fn have_notes(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::has_notes)
    }

    /// Tells the rules that matched without stopping an answer, if there are any.
    pub(crate) fn tell_notes(&mut self, now: i64) -> Option<(Message, EntryBody)> {
        let watch = self.watch.as_mut().filter(|watch| watch.has_notes())?;
        let rules = watch.take_notes();
        self.tell(&rules, now)
    }
}
