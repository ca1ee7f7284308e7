//! Compacting the conversation: the plan from `pinion_core`, the summaries from the model, the result to disk
//! (pi-core.md 3).

use std::sync::Arc;

use pinion_core::compaction::{self, Finished, Plan, Refusal, Settings};
use pinion_core::{CompactOutcome, Input};
use tokio_util::sync::CancellationToken;
use wire::event::{CompactionReason, CompactionResult};
use wire::{EntryBody, Message, Usage};

use crate::outbox::Responder;

use super::Session;
use super::lifecycle::conversation;
use super::summarising::{Summarised, Summariser, Summarising};

/// Who asked for something that clients and extensions can ask for, with the reply of the command.
pub(super) enum Asker<R> {
    Client(Responder<R>),
    /// An extension, by the id of its call.
    Extension(Option<u64>),
}

/// Who asked for a manual compaction, and how.
pub(super) struct Asked {
    pub(super) asker: Asker<CompactionResult>,
    pub(super) instructions: Option<String>,
}

impl Session {
    /// A manual compaction, once the run has ended.
    pub(super) async fn compact_now(&mut self, asked: Asked) {
        self.hear();
        self.asked_to_compact = Some(asked);
        self.drive(Input::Compact).await;
    }

    /// Begins a compaction; its outcome comes back as a happening.
    pub(super) fn begin_compaction(&mut self, reason: CompactionReason) {
        let instructions = self.instructions(reason);
        let settings = self.compaction_settings();
        let plan = compaction::plan(&self.log.branch(self.log.leaf_id()), settings);
        if !self.ask_compact(reason, &plan, instructions.as_deref()) {
            self.summarise(reason, plan, instructions);
        }
    }

    /// The same once extensions have nothing against it.
    pub(super) fn summarise_now(&mut self, reason: CompactionReason) {
        let instructions = self.instructions(reason);
        let plan = compaction::plan(&self.log.branch(self.log.leaf_id()), self.compaction_settings());
        self.summarise(reason, plan, instructions);
    }

    /// What the client wants a summary to look at.
    fn instructions(&self, reason: CompactionReason) -> Option<String> {
        match (&self.asked_to_compact, reason) {
            (Some(asked), CompactionReason::Manual) => asked.instructions.clone(),
            _ => None,
        }
    }

    fn summarise(
        &mut self,
        reason: CompactionReason,
        plan: Result<Plan, Refusal>,
        instructions: Option<String>,
    ) {
        let cancel = CancellationToken::new();
        let summariser = self.summariser(Some(reason), cancel.clone());
        self.summarising = Some(Summarising::new(cancel, async move {
            Summarised::Compaction(match plan {
                Ok(plan) => summarise(&summariser, &plan, instructions.as_deref()).await,
                Err(refusal) => Err(refusal),
            })
        }));
    }

    /// The summaries are there, or not.
    pub(super) async fn compacted(&mut self, outcome: Result<Box<Finished>, Refusal>) {
        let outcome = match outcome {
            Ok(finished) => self.store_summary(*finished).await,
            Err(Refusal::Aborted) => CompactOutcome::Aborted,
            Err(refusal) => CompactOutcome::Failed(refusal.to_string()),
        };
        let answer = match &outcome {
            CompactOutcome::Done { result, .. } => Ok(result.clone()),
            CompactOutcome::Failed(error) => Err(error.clone()),
            CompactOutcome::Aborted => Err(Refusal::Aborted.to_string()),
        };
        if let Some((reason, again)) = self.machine.compacting() {
            self.note_compaction(&outcome, reason, again);
        }
        self.drive(Input::Compacted(outcome)).await;
        if let Some(asked) = self.asked_to_compact.take() {
            self.reply(asked.asker, answer).await;
        }
    }

    /// A compaction that an extension wants, once the run has ended.
    pub(super) async fn compact_for(&mut self, id: Option<u64>, instructions: Option<String>) {
        let asker = Asker::Extension(id);
        self.compact_now(Asked { asker, instructions }).await;
    }

    async fn store_summary(&mut self, finished: Finished) -> CompactOutcome {
        if let Err(error) = self.append(EntryBody::Compaction(finished.entry)).await {
            return CompactOutcome::Failed(error.to_string());
        }
        CompactOutcome::Done {
            result: finished.result,
            messages: self.conversation_at_leaf(),
        }
    }

    /// The conversation as the session file has it now.
    pub(super) fn conversation_at_leaf(&mut self) -> Vec<Arc<Message>> {
        let (messages, kept) = conversation(self.log.context(self.log.leaf_id()));
        self.kept = kept;
        // What was written down but not yet said is part of it.
        self.unheard.clear();
        messages
    }

    /// The settings, fitted to the model's window.
    fn compaction_settings(&self) -> Settings {
        let settings = &self.agent.settings.compaction;
        let (reserve_tokens, keep_recent_tokens) = settings.tokens_for(&self.model.provider, &self.model.id);
        Settings {
            reserve_tokens,
            keep_recent_tokens,
        }
        .fitted(self.model.context_window)
    }

    /// Does the context leave too little room for an answer? Only answers newer than the last compaction count.
    pub(super) fn context_is_full(&self) -> bool {
        let usage = if self.auto_compaction {
            self.context_usage()
        } else {
            None
        };
        let tokens = usage.and_then(|usage| usage.tokens);
        let window = self.model.context_window;
        let reserve = self.compaction_settings().reserve_tokens;
        tokens.is_some_and(|tokens| compaction::should_compact(tokens, window, reserve))
    }
}

/// Asks for each summary, one after the other, and joins them.
async fn summarise(
    summariser: &Summariser,
    plan: &Plan,
    instructions: Option<&str>,
) -> Result<Box<Finished>, Refusal> {
    let mut answers = Vec::new();
    let mut total: Option<Usage> = None;
    for request in compaction::requests(plan, instructions) {
        let (text, usage) = summariser.ask(&request).await?;
        answers.push(text);
        total = Some(total.map_or(usage.clone(), |total| total.plus(&usage)));
    }
    let mut finished = compaction::finish(plan, answers)?;
    finished.entry.usage.clone_from(&total);
    finished.result.usage = total;
    Ok(Box::new(finished))
}
