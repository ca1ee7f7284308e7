//! Compacting the conversation: the plan from `agent`, the summaries from the model, the result to disk
//! (pi-core.md 3).

use std::sync::Arc;

use agent::compaction::{self, Finished, Plan, Refusal};
use agent::{CompactOutcome, Input};
use tokio_util::sync::CancellationToken;
use wire::event::{CompactionReason, CompactionResult};
use wire::{EntryBody, Message, Usage};

use super::Session;
use super::asker::Asker;
use super::summaries::{Summarised, Summariser, Summarising};

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

    /// Begins a compaction that hooks have nothing against; its outcome comes back as a wakeup.
    pub(super) fn begin_compaction(&mut self, reason: CompactionReason) {
        let (plan, instructions) = self.compaction_plan(reason);
        let cancel = CancellationToken::new();
        let mut summariser = self.summariser(Some(reason), cancel.clone());
        self.summarising = Some(Summarising::new(cancel, async move {
            Summarised::Compaction(match plan {
                Ok(plan) => summarise(&mut summariser, &plan, instructions.as_deref()).await,
                Err(refusal) => Err(refusal),
            })
        }));
    }

    /// Ends a compaction as hooks want it: made by them, or refused.
    pub(super) fn end_compaction(&mut self, made: Option<Box<Finished>>) {
        let done = async move { Summarised::Compaction(made.ok_or(Refusal::Aborted)) };
        self.summarising = Some(Summarising::new(CancellationToken::new(), done));
    }

    /// What a compaction would do now, and what the client wants the summary to look at.
    pub(super) fn compaction_plan(
        &self,
        reason: CompactionReason,
    ) -> (Result<Plan, Refusal>, Option<String>) {
        let log = &self.conversation.log;
        let settings = self
            .conversation
            .compaction_settings(&self.agent.settings.compaction);
        let plan = compaction::plan(&log.branch(log.leaf_id()), settings);
        (plan, self.instructions(reason))
    }

    /// What the client wants a summary to look at.
    fn instructions(&self, reason: CompactionReason) -> Option<String> {
        match (&self.asked_to_compact, reason) {
            (Some(asked), CompactionReason::Manual) => asked.instructions.clone(),
            _ => None,
        }
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

    async fn store_summary(&mut self, mut finished: Finished) -> CompactOutcome {
        self.complete_compaction(&mut finished.entry);
        if let Err(error) = self
            .conversation
            .log
            .append(EntryBody::Compaction(finished.entry), &self.outbox)
            .await
        {
            return CompactOutcome::Failed(error.to_string());
        }
        CompactOutcome::Done {
            result: finished.result,
            messages: self.conversation_at_leaf(),
        }
    }

    /// The conversation as the session file has it now.
    pub(super) fn conversation_at_leaf(&mut self) -> Vec<Arc<Message>> {
        // Commands of the user that were stored but not yet heard are part of it.
        drop(self.shells.take_unheard());
        self.conversation.read_leaf()
    }

    /// Does the context leave too little room for an answer?
    pub(super) fn context_is_full(&self) -> bool {
        self.conversation
            .is_full(self.machine.messages(), &self.agent.settings.compaction)
    }
}

/// Asks for each summary, one after the other, and joins them.
async fn summarise(
    summariser: &mut Summariser,
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
