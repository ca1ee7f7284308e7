//! The session file as the host writes it: what `Persist` asked for and the entries of compactions, and how a session is
//! rebuilt from it (`conversation` in the host, `SessionLog::context` in the store).

use std::sync::Arc;

use pinion_agent::compaction::{Settings, finish, plan};
use pinion_agent::convert::close_dangling_calls;
use wire::entry::BranchSummary;
use wire::event::CompactionResult;
use wire::{BranchSummaryMessage, CompactionSummaryMessage, Entry, EntryBody, Message};

use super::rng::Rng;

#[derive(Debug, Default)]
pub(crate) struct Disk {
    entries: Vec<Arc<Entry>>,
    /// Position of the entry that each one follows.
    parents: Vec<Option<usize>>,
    leaf: Option<usize>,
}

impl Disk {
    pub(crate) fn append(&mut self, body: EntryBody) {
        let parent = self.leaf.and_then(|leaf| self.entries.get(leaf));
        let parent_id = parent.map(|entry| entry.id.clone());
        self.parents.push(self.leaf);
        self.leaf = Some(self.entries.len());
        self.entries.push(Arc::new(Entry {
            id: format!("e{}", self.entries.len()),
            parent_id,
            timestamp: String::new(),
            body,
        }));
    }

    /// Goes to any place of the tree, sometimes with a summary of the branch that is left.
    pub(crate) fn move_to(&mut self, rng: &mut Rng) {
        let at = rng.below(self.entries.len() + 1);
        self.leaf = at.checked_sub(1);
        if rng.once_in(3) {
            self.append(EntryBody::BranchSummary(BranchSummary {
                from_id: "root".to_owned(),
                summary: "left".to_owned(),
                details: None,
                from_hook: None,
                usage: None,
                extra: wire::Extra::default(),
            }));
        }
    }

    /// A process that opens the file goes on after its last entry.
    pub(crate) fn reopen(&mut self) {
        self.leaf = self.entries.len().checked_sub(1);
    }

    fn branch(&self) -> Vec<Arc<Entry>> {
        let mut branch = Vec::new();
        let mut at = self.leaf;
        while let Some(entry) = at.and_then(|at| self.entries.get(at)) {
            branch.push(Arc::clone(entry));
            at = at.and_then(|at| self.parents.get(at).copied().flatten());
        }
        branch.reverse();
        branch
    }

    /// Did the process die in the middle of calls?
    pub(crate) fn has_dangling_calls(&self) -> bool {
        let raw = messages(&self.branch());
        let closed = close_dangling_calls(raw.clone());
        closed.len() > raw.len()
    }

    pub(crate) fn persist(&mut self, message: &Arc<Message>) {
        self.append(EntryBody::message(Arc::clone(message)));
    }

    /// Compacts by the real plan, with a summary made up here.
    pub(crate) fn compact(&mut self, settings: Settings) -> Result<CompactionResult, String> {
        let plan = plan(&self.branch(), settings).map_err(|refusal| refusal.to_string())?;
        let asked = pinion_agent::compaction::requests(&plan, None).len();
        let answers = (0..asked)
            .map(|n| format!("summary {n} of {}", self.entries.len()))
            .collect();
        let done = finish(&plan, answers).map_err(|refusal| refusal.to_string())?;
        self.append(EntryBody::Compaction(done.entry));
        Ok(done.result)
    }

    /// The conversation that a session begins with that opens this file.
    pub(crate) fn conversation(&self) -> Vec<Arc<Message>> {
        let branch = self.branch();
        let compaction = branch.iter().enumerate().rev();
        let compaction = compaction
            .filter_map(|(at, entry)| match &entry.body {
                EntryBody::Compaction(body) => Some((at, body)),
                _ => None,
            })
            .next();
        let Some((at, body)) = compaction else {
            return close_dangling_calls(messages(&branch));
        };
        let (before, after) = branch.split_at_checked(at).unwrap_or_default();
        let first = before
            .iter()
            .position(|entry| entry.id == body.first_kept_entry_id)
            .unwrap_or(at);
        let mut kept = vec![Arc::new(Message::CompactionSummary(CompactionSummaryMessage {
            summary: body.summary.clone(),
            tokens_before: body.tokens_before,
            timestamp: 0,
            extra: wire::Extra::default(),
        }))];
        kept.extend(messages(before.get(first..).unwrap_or_default()));
        let mut all = close_dangling_calls(kept);
        all.extend(close_dangling_calls(messages(after)));
        all
    }
}

fn messages(entries: &[Arc<Entry>]) -> Vec<Arc<Message>> {
    let messages = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::Message(body) => Some(Arc::clone(&body.message)),
        EntryBody::BranchSummary(body) => Some(Arc::new(Message::BranchSummary(BranchSummaryMessage {
            summary: body.summary.clone(),
            from_id: body.from_id.clone(),
            timestamp: 0,
            extra: wire::Extra::default(),
        }))),
        _ => None,
    });
    messages.collect()
}
