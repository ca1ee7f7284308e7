//! The request to a model that is running, and what the events of its answer mean for the machine.

use std::pin::Pin;
use std::sync::Arc;

use agent::{ModelInput, Verdict};
use llm::{AdaptiveThinking, Conventions, ForeignThinking, ModelEvent, ModelRequest, ModelStream};
use models::Registry;
use tokio_util::sync::CancellationToken;
use wire::{
    AssistantBlock, AssistantMessage, Message, Model, SessionRule, StopReason, TextContent, ThinkingContent,
    ThinkingLevel, Usage,
};

use crate::factory::Agent;
use crate::limits;

use super::access::{open, refused};
use super::session_core::SessionCore;

type Opening = Pin<Box<dyn Future<Output = Result<ModelStream, Box<AssistantMessage>>> + Send>>;

enum Source {
    /// Keys and headers are being looked up.
    Opening(Opening),
    Open(ModelStream),
    Closed,
}

/// A request that is running.
pub(super) struct RunningRequest {
    source: Source,
    cancel: CancellationToken,
    model: Model,
    /// Token counts as last reported.
    usage: Usage,
    /// The message as it began, once it did. The stream has its content.
    head: Option<AssistantMessage>,
    /// The last event of the stream, while those before it are handled.
    last: Option<ModelEvent>,
}

impl RunningRequest {
    /// Waits for an event and takes all that are there. `None` never comes before the last event.
    pub(super) async fn next(&mut self) -> Option<Vec<ModelEvent>> {
        if let Source::Opening(opening) = &mut self.source {
            match opening.as_mut().await {
                Ok(stream) => self.source = Source::Open(stream),
                Err(message) => {
                    self.source = Source::Closed;
                    return Some(vec![ModelEvent::Error {
                        message,
                        retry_after: None,
                    }]);
                }
            }
        }
        let Source::Open(stream) = &mut self.source else {
            // The failure was the last event, and the caller drops the request with it.
            return std::future::pending().await;
        };
        let mut events = Vec::new();
        stream.next_batch(&mut events).await.then_some(events)
    }

    pub(super) fn cancel(&self) {
        // The stream then ends with its last event, which has the text and the usage so far.
        self.cancel.cancel();
    }

    /// The answer so far, for clients that join in the middle of it and for extensions; none before it began. While the events of a
    /// batch are handled, its content is ahead of the event at hand, as in pi (docs/internals/decisions/40-one-text-of-an-answer.md).
    pub(super) fn partial_message(&self) -> Option<Message> {
        let mut message = self.head.clone()?;
        message.usage = self.usage.clone();
        message.content = match (&self.last, &self.source) {
            // The stream has given its content away.
            (Some(ModelEvent::Done(whole) | ModelEvent::Error { message: whole, .. }), _) => {
                whole.content.clone()
            }
            (_, Source::Open(stream)) => stream.partial_content(),
            _ => Vec::new(),
        };
        message.content.iter_mut().for_each(keep_text);
        Some(Message::Assistant(message))
    }

    /// Takes the last event out of a batch, until [`take_last`](Self::take_last). The content of the events before it is in
    /// its message.
    pub(super) fn keep_last(&mut self, events: &mut Vec<ModelEvent>) {
        self.last = events.pop_if(|event| event.is_last());
    }

    pub(super) fn take_last(&mut self) -> Option<ModelEvent> {
        self.last.take()
    }
}

impl RunningRequest {
    /// A request that is not sent, for this reason.
    pub(super) fn refused(model: Model, reason: String, cancel: CancellationToken) -> Self {
        let message = refused(&model, reason, false);
        Self {
            source: Source::Opening(Box::pin(std::future::ready(Err(message)))),
            cancel,
            model,
            usage: Usage::default(),
            head: None,
            last: None,
        }
    }
}

/// What became of an event of the stream.
#[derive(Default)]
pub(super) struct Received {
    /// For the machine.
    pub(super) input: Option<ModelInput>,
    /// For the user.
    pub(super) warning: Option<String>,
}

impl RunningRequest {
    /// Opens a request that is made while the session continues. `cancel` ends the making, too.
    pub(super) fn open(
        agent: Arc<Agent>,
        model: Model,
        making: impl Future<Output = ModelRequest> + Send + 'static,
        cancel: CancellationToken,
        span: tracing::Span,
    ) -> Self {
        let cancelled = cancel.clone();
        let opening = async move {
            let request = making.await;
            open(agent, request, cancelled, span).await
        };
        Self {
            source: Source::Opening(Box::pin(opening)),
            cancel,
            model,
            usage: Usage::default(),
            head: None,
            last: None,
        }
    }

    /// Takes an event. After [`ModelInput::Finished`] no other comes.
    pub(super) fn accept(&mut self, event: ModelEvent, registry: &Registry, judge: Judge) -> Received {
        let window = self.model.context_window;
        let input = match event {
            ModelEvent::Start(message) => {
                self.usage = message.usage.clone();
                // A copy for snapshots, since the machine takes the message.
                self.head = Some((*message).clone());
                ModelInput::Started(*message)
            }
            ModelEvent::Stream(event) => ModelInput::Update(event, self.usage.clone()),
            ModelEvent::Usage(usage) => {
                // Clients see the counts with the next update.
                self.usage = usage;
                return Received::default();
            }
            ModelEvent::Remark(text) => {
                return Received {
                    warning: Some(text),
                    ..Received::default()
                };
            }
            ModelEvent::Done(message) => {
                let verdict = judge.verdict(&message, window, None);
                ModelInput::Finished(*message, verdict)
            }
            ModelEvent::Error {
                mut message,
                retry_after,
            } => {
                let advice = advice(registry, &self.model, &message);
                let asked = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                let verdict = judge.verdict(&message, window, asked);
                // After the verdict, which reads the provider's own words.
                if let (Some(text), Some(advice)) = (&mut message.error_message, advice) {
                    text.push('\n');
                    text.push_str(&advice);
                }
                ModelInput::Finished(*message, verdict)
            }
        };
        Received {
            input: Some(input),
            ..Received::default()
        }
    }
}

/// Leaves out of a text or reasoning block what updates do not show: signatures are for the provider alone.
fn keep_text(block: &mut AssistantBlock) {
    match block {
        AssistantBlock::Text(text) => *text = TextContent::new(std::mem::take(&mut text.text)),
        AssistantBlock::Thinking(thinking) => {
            *thinking = ThinkingContent {
                thinking: std::mem::take(&mut thinking.thinking),
                ..ThinkingContent::default()
            };
        }
        // Its end has all members of the call.
        AssistantBlock::ToolCall(_) => {}
    }
}

/// A request with what the settings say about all requests.
pub(super) fn request_for(agent: &Agent, model: Model, thinking: ThinkingLevel, now: i64) -> ModelRequest {
    let mut request = ModelRequest::new(model, now);
    request.thinking = thinking;
    request.thinking_budgets = agent.budgets();
    request.timeouts = agent.timeouts(&request.model);
    // By default only the run tries again: attempts of both layers would multiply (pi-core.md, appendix A, row 16).
    request.provider_retries = agent.settings.retry.provider.max_retries.unwrap_or(0);
    request.max_retry_delay = agent.max_retry_delay();
    let dialect = agent.options.dialect;
    if dialect.follows(SessionRule::RequestsOfNewestPi) {
        // Each member says what it means: `llm` knows no dialects (docs/internals/decisions/36-dialects-in-the-session.md).
        request.conventions = Conventions {
            full_usage: true,
            foreign_thinking: ForeignThinking::Omit,
            adaptive_thinking: AdaptiveThinking::ByFlag,
            keeps_reasoning_details: true,
            strict_by_flag: true,
            error_objects: true,
            dashed_session_header: true,
            names_answering_model: true,
            strict_diagnostics: true,
            omits_empty_text: false,
        };
    }
    request.conventions.omits_empty_text = dialect.follows(SessionRule::OmitsEmptyText);
    request
}

/// Tokens that the context leaves for an answer, if the output limit is to be lowered to them. An estimate by which nearly nothing
/// fits may be too high, so the provider decides then: it rejects the request, which leads to a compaction. Today's pi asks for the
/// rest all the same; a session of it does so if the provider has counted the context.
pub(super) fn answer_room(core: &SessionCore, request: &ModelRequest) -> Option<u64> {
    let window = request.model.context_window;
    // The window is unknown (pi-core.md 3.2).
    if window == 0 {
        return None;
    }
    // Made only if the provider has not counted the context yet: tools and prompt can be long.
    let prompt = || {
        let tools = serde_json::to_string(&request.tools).unwrap_or_default();
        format!("{}{tools}", request.system_prompt)
    };
    let room = agent::room(core.machine.messages(), core.conversation.kept, window, prompt);
    match room.tokens {
        tokens if tokens >= limits::LEAST_OUTPUT => Some(tokens),
        tokens => {
            let is_asked = room.is_counted && core.follows(SessionRule::AsksForLeastRoom);
            is_asked.then_some(tokens.max(1))
        }
    }
}

/// Advice for a request that failed.
fn advice(registry: &Registry, model: &Model, message: &AssistantMessage) -> Option<String> {
    let failed = message.stop_reason == StopReason::Error;
    let error = message.error_message.as_deref().filter(|_| failed)?;
    models::advice(registry, model, error)
}

/// What a session makes of failed requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge {
    /// The session compacts by itself, so a conversation that is too long is not a final failure.
    compacts: bool,
    /// After such a final failure, the answer leaves the conversation.
    discards: bool,
    /// Used-up quotas have a verdict of their own.
    knows_quotas: bool,
}

impl Judge {
    /// As the session is now.
    pub(super) fn of(core: &SessionCore) -> Self {
        Self {
            compacts: core.conversation.auto_compaction,
            discards: core.follows(SessionRule::LeavesOutOverflows),
            knows_quotas: core.follows(SessionRule::KnowsQuotas),
        }
    }

    /// Says whether the request is worth repeating. After an abort it is not; a conversation that is too long has to be compacted.
    fn verdict(self, message: &AssistantMessage, window: u64, asked: Option<u64>) -> Verdict {
        match () {
            // The conversation left no room for an answer (pi-1.5-delta.md 5). A complete answer stands, however full the context is.
            () if message.stop_reason == StopReason::Length
                && self.compacts
                && llm::is_context_overflow(message, window) =>
            {
                Verdict::Overflow
            }
            () if message.stop_reason != StopReason::Error => Verdict::Final,
            // Before retries: the same request would find no more room (pi-core.md 4.1).
            () if llm::is_context_overflow(message, window) => match self.compacts {
                true => Verdict::Overflow,
                false if self.discards => Verdict::Discarded,
                false => Verdict::Final,
            },
            () => self.of_failure(message, asked),
        }
    }

    /// What a failure of the provider means.
    fn of_failure(self, message: &AssistantMessage, asked: Option<u64>) -> Verdict {
        let text = message.error_message.as_deref().unwrap_or("");
        // Before retries, which are no use until the quota is there again.
        if let Some(wait) = self.quota_wait(message) {
            return Verdict::Exhausted(asked.unwrap_or(wait));
        }
        match () {
            () if llm::is_retryable(text) => Verdict::Retry(asked),
            // Another model may answer. A faulty request would fail there, too, so it stays final (GUARANTEES.md, 85).
            () if llm::is_unavailable(text) => Verdict::Unavailable,
            () => Verdict::Final,
        }
    }

    /// The wait for a used-up quota in milliseconds.
    fn quota_wait(self, message: &AssistantMessage) -> Option<u64> {
        let text = message.error_message.as_deref().filter(|_| self.knows_quotas)?;
        let wait = llm::quota_wait(text, message.http_status)?;
        Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }
}
