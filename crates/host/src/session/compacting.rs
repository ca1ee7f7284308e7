//! Compacting the conversation: the plan from `pinion_core`, the summaries from the model, the result to disk
//! (pi-core.md 3).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use llm::{CacheRetention, ModelEvent, ModelRequest};
use pinion_core::compaction::{self, Finished, Plan, Refusal, Settings, SummaryRequest};
use pinion_core::{CompactOutcome, Input};
use tokio_util::sync::CancellationToken;
use wire::event::CompactionReason;
use wire::{AssistantMessage, EntryBody, Message, Model, Reply, ThinkingLevel};

use crate::agent::Agent;
use crate::outbox::Origin;

use super::Session;
use super::answering::open;
use super::drive::now_ms;
use super::lifecycle::conversation;

/// How the summaries came out.
pub(super) type Summarised = Result<Box<Finished>, Refusal>;

/// A compaction that is under way.
pub(super) struct Compacting {
    work: Pin<Box<dyn Future<Output = Summarised> + Send>>,
    cancel: CancellationToken,
}

impl Compacting {
    pub(super) async fn done(&mut self) -> Summarised {
        self.work.as_mut().await
    }

    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }
}

/// Who asked for a manual compaction, and how.
pub(super) struct Asked {
    pub(super) origin: Origin,
    pub(super) instructions: Option<String>,
}

impl Session {
    /// A manual compaction, once the run has ended.
    pub(super) async fn compact_now(&mut self, asked: Asked) {
        self.asked_to_compact = Some(asked);
        self.drive(Input::Compact).await;
    }

    /// Begins a compaction; its outcome comes back as a happening.
    pub(super) fn begin_compaction(&mut self, reason: CompactionReason) {
        let instructions = match (&self.asked_to_compact, reason) {
            (Some(asked), CompactionReason::Manual) => asked.instructions.clone(),
            _ => None,
        };
        let settings = self.compaction_settings();
        let plan = compaction::plan(&self.log.branch(self.log.leaf_id()), settings);
        let cancel = CancellationToken::new();
        let (agent, model, thinking) = (Arc::clone(&self.agent), self.model.clone(), self.thinking);
        let token = cancel.clone();
        let work = Box::pin(async move {
            let plan = plan?;
            summarise(agent, &plan, instructions.as_deref(), model, thinking, token).await
        });
        self.compacting = Some(Compacting { work, cancel });
    }

    pub(super) async fn on_summarised(&mut self, summarised: Summarised) {
        let cancelled = self
            .compacting
            .take()
            .is_some_and(|compacting| compacting.cancel.is_cancelled());
        let outcome = match summarised {
            // A summary that wins the race against an abort changes nothing.
            _ if cancelled => CompactOutcome::Aborted,
            Ok(finished) => self.store_summary(*finished),
            Err(Refusal::Aborted) => CompactOutcome::Aborted,
            Err(refusal) => CompactOutcome::Failed(refusal.to_string()),
        };
        let answer = match &outcome {
            CompactOutcome::Done { result, .. } => Ok(Reply::Compacted(Box::new(result.clone()))),
            CompactOutcome::Failed(error) => Err(error.clone()),
            CompactOutcome::Aborted => Err(Refusal::Aborted.to_string()),
        };
        self.drive(Input::Compacted(outcome)).await;
        if let Some(asked) = self.asked_to_compact.take() {
            self.outbox.respond(asked.origin, answer).await;
        }
    }

    fn store_summary(&mut self, finished: Finished) -> CompactOutcome {
        if let Err(error) = self.log.append(EntryBody::Compaction(finished.entry)) {
            return CompactOutcome::Failed(error.to_string());
        }
        let context = self.log.context(self.log.leaf_id());
        let (messages, kept) = conversation(context);
        self.kept = kept;
        CompactOutcome::Done {
            result: finished.result,
            messages,
        }
    }

    /// The settings, fitted to the model's window.
    fn compaction_settings(&self) -> Settings {
        let settings = &self.agent.settings.compaction;
        let (reserve_tokens, keep_recent_tokens) = (settings.reserve_tokens, settings.keep_recent_tokens);
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
    agent: Arc<Agent>,
    plan: &Plan,
    instructions: Option<&str>,
    model: Model,
    thinking: ThinkingLevel,
    cancel: CancellationToken,
) -> Summarised {
    let mut answers = Vec::new();
    for request in compaction::requests(plan, instructions) {
        answers.push(ask(&agent, request, &model, thinking, &cancel).await?);
    }
    compaction::finish(plan, answers).map(Box::new)
}

/// One summary. A failure that may pass is tried again like that of a run (pi-1.5-delta.md 4).
async fn ask(
    agent: &Arc<Agent>,
    request: SummaryRequest,
    model: &Model,
    thinking: ThinkingLevel,
    cancel: &CancellationToken,
) -> Result<String, Refusal> {
    let retry = agent.loop_settings().retry;
    let mut attempt = 0;
    loop {
        let (answer, wait) = answer(agent, &request, model, thinking, cancel).await;
        let error = answer.error_message.as_deref().unwrap_or("");
        let again =
            answer.failed() && llm::is_retryable(error) && retry.enabled && attempt < retry.max_retries;
        if !again || cancel.is_cancelled() {
            return compaction::answer_text(&answer);
        }
        attempt += 1;
        let asked = wait.and_then(|wait| u64::try_from(wait.as_millis()).ok());
        let delay = Duration::from_millis(retry.delay_ms(attempt, asked));
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = cancel.cancelled() => return Err(Refusal::Aborted),
        }
    }
}

/// One request to its end. It is nobody's turn: no tools, no cache to write, no session to be routed by.
async fn answer(
    agent: &Arc<Agent>,
    request: &SummaryRequest,
    model: &Model,
    thinking: ThinkingLevel,
    cancel: &CancellationToken,
) -> (AssistantMessage, Option<Duration>) {
    let now = now_ms();
    let mut call = ModelRequest::new(model.clone(), now);
    call.system_prompt.clone_from(&request.system_prompt);
    call.messages = vec![Arc::new(Message::user(request.user_text.clone(), now))];
    call.thinking = thinking;
    call.thinking_budgets = agent.budgets();
    call.max_tokens = Some(request.max_tokens.min(model.max_tokens.max(1)));
    call.cache_retention = CacheRetention::None;
    call.idle_timeout = agent.idle_timeout();
    let mut stream = match open(Arc::clone(agent), call, cancel.clone()).await {
        Ok(stream) => stream,
        Err(message) => return (*message, None),
    };
    while let Some(event) = stream.next().await {
        match event {
            ModelEvent::Done(message) => return (*message, None),
            ModelEvent::Error { message, retry_after } => return (*message, retry_after),
            _ => {}
        }
    }
    (
        AssistantMessage::begin(&model.api, &model.provider, &model.id, now),
        None,
    )
}
