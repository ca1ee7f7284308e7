//! Summaries of a conversation that is compacted, or of a branch that is left, made by a model while the session continues. Their
//! requests are the business of `agent::compaction`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agent::compaction::{self, Finished, Keep, Plan, Refusal, SummaryRequest};
use llm::{CacheRetention, ModelEvent, ModelRequest};
use tokio_util::sync::CancellationToken;
use wire::entry::BranchSummary;
use wire::event::{CompactionReason, SummarySource};
use wire::reply::Navigated;
use wire::{AssistantMessage, Event, Message, Model, SessionRule, ThinkingLevel, Usage};

use crate::factory::Agent;
use crate::limits;
use crate::outbox::Outbox;
use crate::strings;

use super::access::open;
use super::asker::{Asked, Asker};
use super::clock::now_ms;
use super::conversation::Place;
use super::interrupted_run::InterruptedRun;
use super::model_choice::ModelChoice;
use super::model_request::request_for;
use super::run_limits::{SharedSpending, TaskBudget};
use super::session_core::SessionCore;

/// The outcome of the requests.
pub(super) enum Summarised {
    /// A compaction's entry.
    Compaction(Result<Box<Finished>, Refusal>),
    /// A branch summary's entry.
    Branch(Result<Box<BranchSummary>, Refusal>),
}

/// Summaries that are being made.
pub(super) struct Summarising {
    work: Pin<Box<dyn Future<Output = Summarised> + Send>>,
    cancel: CancellationToken,
}

impl Summarising {
    pub(super) fn new(
        cancel: CancellationToken,
        work: impl Future<Output = Summarised> + Send + 'static,
    ) -> Self {
        let work = Box::pin(work);
        Self { work, cancel }
    }

    pub(super) async fn done(&mut self) -> Summarised {
        self.work.as_mut().await
    }

    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

/// The summaries of a session that are being made, and who waits for them.
#[derive(Default)]
pub(super) struct Summaries {
    /// The requests that run.
    pub(super) running: Option<Summarising>,
    /// The move that waits for a branch summary.
    pub(super) navigation: Option<PendingNavigation>,
    /// Who asked for the compaction, if it is a manual one.
    pub(super) compaction: Option<Asked>,
    /// The run that a manual compaction has interrupted.
    pub(super) interrupted: InterruptedRun,
}

/// Who waits for a branch summary, and where the session goes then.
pub(super) struct PendingNavigation {
    pub(super) asker: Asker<Navigated>,
    pub(super) place: Place,
    pub(super) label: Option<String>,
}

impl Summaries {
    /// Waits for the outcome of the requests that run. Cancel-safe.
    pub(super) async fn next(&mut self) -> Summarised {
        match &mut self.running {
            Some(running) => running.done().await,
            None => std::future::pending().await,
        }
    }

    /// Takes an outcome. A summary that wins the race against an abort changes nothing.
    pub(super) fn accept(&mut self, summarised: Summarised) -> Summarised {
        let work = self.running.take();
        match summarised {
            summarised if !work.is_some_and(|work| work.is_cancelled()) => summarised,
            Summarised::Compaction(_) => Summarised::Compaction(Err(Refusal::Aborted)),
            Summarised::Branch(_) => Summarised::Branch(Err(Refusal::Aborted)),
        }
    }

    /// Ends the requests that run; their outcome says so.
    pub(super) fn cancel(&self) {
        if let Some(running) = &self.running {
            running.cancel();
        }
    }

    /// Begins a compaction that hooks have nothing against.
    pub(super) fn begin_compaction(
        &mut self,
        core: &mut SessionCore,
        spending: SharedSpending,
        reason: CompactionReason,
    ) {
        // Planned at once: entries that are appended while the model writes stay outside of the summary.
        let (plan, instructions) = self.plan(core, reason);
        let cancel = CancellationToken::new();
        let mut summariser = Summariser::for_session(core, spending, Some(reason), cancel.clone());
        self.running = Some(Summarising::new(cancel, async move {
            Summarised::Compaction(match plan {
                Ok(plan) => summarise(&mut summariser, &plan, instructions.as_deref()).await,
                Err(refusal) => Err(refusal),
            })
        }));
    }

    /// Ends a compaction for which no model is asked: hooks have made or refused it, or there is no model to ask.
    pub(super) fn end_compaction(&mut self, made: Result<Box<Finished>, Refusal>) {
        // Through `running`, as the summary of a model: the outcome comes as a wake-up, when the machine has finished its step.
        let done = async move { Summarised::Compaction(made) };
        self.running = Some(Summarising::new(CancellationToken::new(), done));
    }

    /// Returns true if the context is full. Today's pi begins no compaction that would find nothing to summarise.
    pub(super) fn must_compact(&self, core: &SessionCore) -> bool {
        let plan = || self.plan(core, CompactionReason::Threshold).0;
        core.context_is_full() && (!core.follows(SessionRule::SkipsEmptyCompactions) || plan().is_ok())
    }

    /// What a compaction would do now, and what the client wants the summary to look at.
    pub(super) fn plan(
        &self,
        core: &SessionCore,
        reason: CompactionReason,
    ) -> (Result<Plan, Refusal>, Option<String>) {
        let log = &core.conversation.log;
        let mut settings = core
            .conversation
            .compaction_settings(&core.agent.settings.compaction);
        if core.follows(SessionRule::CompactsAsOmp) {
            settings.keep = Keep::AtMost;
        }
        // Entries that earlier compactions left out are in their summary and need no second one.
        let plan = compaction::plan(&store::seen_branch(log, log.leaf_id()), settings);
        (plan, self.instructions(reason))
    }

    /// What the client wants a summary to look at.
    fn instructions(&self, reason: CompactionReason) -> Option<String> {
        match (&self.compaction, reason) {
            (Some(asked), CompactionReason::Manual) => asked.instructions.clone(),
            _ => None,
        }
    }
}

/// Asks one model.
pub(super) struct Summariser {
    agent: Arc<Agent>,
    outbox: Outbox,
    model: Model,
    thinking: ThinkingLevel,
    retry: agent::RetrySettings,
    source: SummarySource,
    reason: Option<CompactionReason>,
    cancel: CancellationToken,
    budget: TaskBudget,
}

impl Summariser {
    /// A summariser for a session: for a compaction with a reason, else for a branch. What it uses counts for the session.
    pub(super) fn for_session(
        core: &mut SessionCore,
        spending: SharedSpending,
        reason: Option<CompactionReason>,
        cancel: CancellationToken,
    ) -> Self {
        let budget = core.machine.task_budget(spending);
        let retry = core.machine.settings().retry;
        let (agent, outbox) = (Arc::clone(&core.agent), core.outbox.clone());
        Self::new(
            agent,
            outbox,
            &core.conversation.choice,
            retry,
            (reason, cancel),
            budget,
        )
    }

    /// A summariser with the model of the next run: for a compaction with a reason, else for a branch.
    pub(super) fn new(
        agent: Arc<Agent>,
        outbox: Outbox,
        choice: &ModelChoice,
        retry: agent::RetrySettings,
        (reason, cancel): (Option<CompactionReason>, CancellationToken),
        budget: TaskBudget,
    ) -> Self {
        let (source, thinking) = match reason {
            Some(_) => (SummarySource::Compaction, choice.thinking),
            None if agent.options.dialect.follows(SessionRule::BranchSummariesThink) => {
                (SummarySource::BranchSummary, choice.thinking)
            }
            // Summaries of branches are short notes; they need no reasoning.
            None => (SummarySource::BranchSummary, ThinkingLevel::Off),
        };
        Self {
            agent,
            outbox,
            model: choice.model.clone(),
            thinking,
            retry,
            source,
            reason,
            cancel,
            budget,
        }
    }

    /// One summary and what it took. A failure that may pass is tried again like that of a run, and told
    /// (pi-1.5-delta.md 4, 5).
    pub(super) async fn ask(&mut self, request: &SummaryRequest) -> Result<(String, Usage), Refusal> {
        let mut attempt = 0;
        let answer = loop {
            if let Some(limit) = self.budget.reached() {
                return Err(Refusal::Limit(limit.to_string()));
            }
            // The model may have been selected since the cost was limited.
            let price = self.budget.check_price(&self.model);
            price.map_err(|error| Refusal::Failed(request.kind, error))?;
            // Counted before the request: sub-agents share the account and may ask meanwhile.
            self.budget.asked();
            let (answer, wait) = self.answer(request).await;
            self.budget.answered(&answer.usage);
            let error = answer.error_message.as_deref().unwrap_or("");
            let again = answer.failed()
                && llm::is_retryable(error)
                && self.retry.enabled
                && attempt < self.retry.max_retries;
            if !again || self.cancel.is_cancelled() {
                break answer;
            }
            attempt += 1;
            let asked = wait.and_then(|wait| u64::try_from(wait.as_millis()).ok());
            let delay_ms = self.retry.delay_ms(attempt, asked);
            self.tell_scheduled(attempt, delay_ms, error).await;
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {}
                () = self.cancel.cancelled() => {
                    // Clients that were told of a retry learn of its end in any case.
                    self.outbox.tell(Event::SummarizationRetryFinished).await;
                    return Err(Refusal::Aborted);
                }
            }
            let (source, reason) = (self.source, self.reason);
            self.outbox
                .tell(Event::SummarizationRetryAttemptStart { source, reason })
                .await;
        };
        if attempt > 0 {
            self.outbox.tell(Event::SummarizationRetryFinished).await;
        }
        Ok((compaction::answer_text(request.kind, &answer)?, answer.usage))
    }

    /// The short summary of a compaction, and what it took. None if the model gives none: the summaries are made and paid for, and without
    /// them the context stays full.
    async fn shorten(&mut self, plan: &Plan, summary: &str) -> Result<Option<(String, Usage)>, Refusal> {
        match self.ask(&compaction::short_request(plan, summary)).await {
            Ok(answer) => Ok(Some(answer)),
            Err(Refusal::Aborted) => Err(Refusal::Aborted),
            Err(refusal) => {
                let notice = strings::no_short_summary(&refusal);
                self.outbox.notice("warning", notice).await;
                Ok(None)
            }
        }
    }

    async fn tell_scheduled(&self, attempt: u32, delay_ms: u64, error: &str) {
        let event = Event::SummarizationRetryScheduled {
            attempt,
            max_attempts: self.retry.max_retries,
            delay_ms,
            error_message: error.to_owned(),
        };
        self.outbox.tell(event).await;
    }

    /// One request to its end. It belongs to no turn: no tools, no cache to write, no session to be routed by.
    async fn answer(&self, request: &SummaryRequest) -> (AssistantMessage, Option<Duration>) {
        let (agent, model) = (&self.agent, &self.model);
        let now = now_ms();
        let mut call = request_for(agent, model.clone(), self.thinking, now);
        call.system_prompt.clone_from(&request.system_prompt);
        call.messages = vec![Arc::new(Message::user(request.user_text.clone(), now))];
        if agent.options.dialect.follows(SessionRule::SummariesUseModelLimit) {
            // The limit of the model, as in a run: a summary that is cut off is of no use.
            call.output.room = room_beside(&call);
        } else {
            // A model whose limit is unknown has 0 there, which no provider takes.
            call.output.asked = Some(request.max_tokens.min(model.max_tokens.max(1)));
        }
        // The request is made once; writing it to the provider's cache would only cost.
        call.cache_retention = CacheRetention::None;
        let mut stream = match open(
            Arc::clone(agent),
            call,
            self.cancel.clone(),
            self.outbox.trace().current(),
        )
        .await
        {
            Ok(stream) => stream,
            Err(message) => return (*message, None),
        };
        while let Some(event) = stream.next().await {
            match event {
                ModelEvent::Done(message) => return (*message, None),
                ModelEvent::Error { message, retry_after } => return (*message, retry_after),
                // Nothing of a summary is shown before it is complete.
                _ => {}
            }
        }
        // A stream always ends with one of the two events above.
        (
            AssistantMessage::begin(&model.api, &model.provider, &model.id, now),
            None,
        )
    }
}

/// Tokens that the context window leaves for a summary. `None` if the window is unknown, or if nearly nothing is left by an estimate
/// that may be too high.
fn room_beside(call: &ModelRequest) -> Option<u64> {
    let window = call.model.context_window;
    let room = agent::room(&call.messages, 0, window, || call.system_prompt.clone());
    (window > 0 && room.tokens >= limits::LEAST_OUTPUT).then_some(room.tokens)
}

/// Asks for each summary, one after the other, and joins them. In some dialects a short one follows.
async fn summarise(
    summariser: &mut Summariser,
    plan: &Plan,
    instructions: Option<&str>,
) -> Result<Box<Finished>, Refusal> {
    let mut answers = Vec::new();
    let mut total: Option<Usage> = None;
    // One after the other, so that the limits of the session are checked before each request.
    for request in compaction::requests(plan, instructions) {
        let (text, usage) = summariser.ask(&request).await?;
        answers.push(text);
        total = Some(total.map_or(usage.clone(), |total| total.plus(&usage)));
    }
    let mut finished = compaction::finish(plan, answers)?;
    let dialect = summariser.agent.options.dialect;
    if dialect.follows(SessionRule::CompactsAsOmp) {
        let answer = summariser.shorten(plan, &finished.entry.summary).await?;
        let (short, usage) = answer.unzip();
        finished.complete_as_omp(short);
        if let Some(usage) = usage {
            total = Some(total.map_or(usage.clone(), |total| total.plus(&usage)));
        }
    }
    finished.entry.usage.clone_from(&total);
    finished.result.usage = total;
    Ok(Box::new(finished))
}
