//! Asking the model: the request made of the conversation, and the events of the answer handed to the machine.

use std::pin::Pin;
use std::sync::Arc;

use llm::{ModelEvent, ModelRequest, ModelStream, PromptHistory};
use models::Registry;
use pinion_core::{Input, ModelInput, Verdict, convert};
use tokio_util::sync::CancellationToken;
use wire::{AssistantMessage, Message, Model, StopReason, Usage};

use super::Session;
use super::access::open;
use super::drive::now_ms;
use super::progress::Progress;

type Opening = Pin<Box<dyn Future<Output = Result<ModelStream, Box<AssistantMessage>>> + Send>>;

enum Source {
    /// Keys and headers are being looked up.
    Opening(Opening),
    Open(ModelStream),
    Closed,
}

/// The request that is out.
pub(super) struct Answering {
    source: Source,
    cancel: CancellationToken,
    model: Model,
    /// Token counts as last reported.
    usage: Usage,
    /// The answer as far as it has come, once it began.
    progress: Option<Progress>,
}

impl Answering {
    /// Waits for news and takes all there is. `None` never comes before the last event.
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
            return std::future::pending().await;
        };
        let mut events = Vec::new();
        stream.next_batch(&mut events).await.then_some(events)
    }

    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The answer as far as it has come; none before it began.
    pub(super) fn so_far(&self) -> Option<Message> {
        Some(self.progress.as_ref()?.message(&self.usage))
    }
}

impl Session {
    /// Sends the conversation to the model of the run: the one that was chosen when the run asked for the first time.
    pub(super) fn ask_model(&mut self) {
        let chosen = (self.model.clone(), self.thinking);
        let (model, thinking) = self.run_model.get_or_insert(chosen).clone();
        let now = now_ms();
        let system_prompt = self.extensions.prompt().map(str::to_owned);
        let system_prompt = system_prompt.unwrap_or_else(|| self.system_prompt());
        let context = self.ask_context();
        let settings = &self.agent.settings;
        let mut request = ModelRequest::new(model.clone(), now);
        let block_images = settings.images.block_images;
        let messages = self.machine.messages();
        request.messages = convert::to_llm(messages, block_images);
        let context = context.map(|context| (context, messages.to_vec()));
        request.rewrite = self.rewrite();
        request.change_headers = self.change_headers();
        request.on_response = self.on_response();
        request.system_prompt = system_prompt;
        request.tools = self.tool_specs();
        request.thinking = thinking;
        request.thinking_budgets = self.agent.budgets();
        request.session_id = Some(self.log.header().id.clone());
        request.cache_retention = self.agent.options.cache_retention;
        request.idle_timeout = self.agent.idle_timeout();
        request.provider_retries = settings.retry.provider.max_retries.unwrap_or(0);
        request.max_retry_delay = self.agent.max_retry_delay();
        if context.is_some() {
            // An extension may change conversation and prompt of each request, so that nothing is a continuation.
            self.prompt_history = PromptHistory::default();
        } else {
            self.prompt_history.observe(&mut request);
        }
        let cancel = CancellationToken::new();
        let (agent, span) = (Arc::clone(&self.agent), self.outbox.trace().current());
        let cancelled = cancel.clone();
        let source = Source::Opening(Box::pin(async move {
            if let Some((context, messages)) = context {
                tokio::select! {
                    (messages, system) = context.seen(messages, request.system_prompt.clone()) => {
                        request.messages = convert::to_llm(&messages, block_images);
                        request.system_prompt = system;
                    }
                    () = cancelled.cancelled() => {}
                }
            }
            open(agent, request, cancelled, span).await
        }));
        self.answering = Some(Answering {
            source,
            cancel,
            model,
            usage: Usage::default(),
            progress: None,
        });
    }

    pub(super) async fn on_model(&mut self, events: Vec<ModelEvent>) {
        for event in events {
            let Some(answering) = &mut self.answering else {
                return;
            };
            let input = match event {
                ModelEvent::Start(message) => {
                    answering.usage = message.usage.clone();
                    answering.progress = Some(Progress::new((*message).clone()));
                    ModelInput::Started(*message)
                }
                ModelEvent::Stream(event) => {
                    if let Some(progress) = &mut answering.progress {
                        progress.grow(&event);
                    }
                    ModelInput::Update(event, answering.usage.clone())
                }
                ModelEvent::Usage(usage) => {
                    answering.usage = usage;
                    continue;
                }
                ModelEvent::Remark(text) => {
                    self.notice("warning", text).await;
                    continue;
                }
                ModelEvent::Done(message) => {
                    let window = answering.model.context_window;
                    self.answering = None;
                    let verdict = verdict(&message, window, None, self.auto_compaction);
                    ModelInput::Finished(*message, verdict)
                }
                ModelEvent::Error {
                    mut message,
                    retry_after,
                } => {
                    let window = answering.model.context_window;
                    let advice = unknown_model(&self.agent.registry, &answering.model, &message);
                    self.answering = None;
                    let asked = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
                    let verdict = verdict(&message, window, asked, self.auto_compaction);
                    if let (Some(text), Some(advice)) = (&mut message.error_message, advice) {
                        text.push('\n');
                        text.push_str(&advice);
                    }
                    ModelInput::Finished(*message, verdict)
                }
            };
            self.drive(Input::Model(input)).await;
        }
    }
}

/// Advice for a model that its provider does not know.
fn unknown_model(registry: &Registry, model: &Model, message: &AssistantMessage) -> Option<String> {
    let failed = message.stop_reason == StopReason::Error;
    let error = message.error_message.as_deref().filter(|_| failed)?;
    registry.unknown_model_advice(model, error)
}

/// Is it worth asking again? Not when somebody aborted. When the conversation is too long only compacting it helps.
fn verdict(message: &AssistantMessage, window: u64, asked: Option<u64>, compacts: bool) -> Verdict {
    let text = message.error_message.as_deref().unwrap_or("");
    match () {
        // The conversation left no room for an answer (pi-1.5-delta.md 5). One that is complete stands, however full it is.
        () if message.stop_reason == StopReason::Length
            && compacts
            && llm::is_context_overflow(message, window) =>
        {
            Verdict::Overflow
        }
        () if message.stop_reason != StopReason::Error => Verdict::Final,
        () if llm::is_context_overflow(message, window) => {
            if compacts {
                Verdict::Overflow
            } else {
                Verdict::Final
            }
        }
        () if llm::is_retryable(text) => Verdict::Retry(asked),
        () => Verdict::Final,
    }
}
