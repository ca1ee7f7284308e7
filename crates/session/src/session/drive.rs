//! Carrying out what the machine wants: on disk first, then told; requests, tools and timers started and stopped.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use agent::{Change, Effect, Fallback, Input, ToolInput};
use wire::event::CompactionReason;
use wire::{Event, Message};

use super::Session;
use super::extensions::failure;
use super::model_request::RunningRequest;
use super::storage::Batch;

impl Session {
    /// Gives the machine an input and carries out what follows from it, and from what that gives at once.
    pub(super) async fn drive(&mut self, input: Input) {
        if matches!(input, Input::Abort) {
            self.extensions.abort_run(self.machine.is_idle());
        }
        let spent = self.extensions.tasks.spending.take().map(Input::Spent);
        let mut inputs: VecDeque<Input> = spent.into_iter().chain([input]).collect();
        while let Some(input) = inputs.pop_front() {
            let mut effects = Vec::new();
            self.machine.step(input, &mut effects);
            let mut effects = VecDeque::from(effects);
            while let Some(effect) = effects.pop_front() {
                self.perform(effect, &mut effects, &mut inputs).await;
            }
        }
    }

    /// Gives the machine a change that nothing follows from.
    pub(super) fn apply(&mut self, change: Change) {
        let mut effects = Vec::new();
        self.machine.step(change.into(), &mut effects);
        debug_assert!(effects.is_empty(), "{effects:?}");
    }

    /// Carries out an effect. `following` are the effects after it, `inputs` what the machine is given next.
    async fn perform(
        &mut self,
        effect: Effect,
        following: &mut VecDeque<Effect>,
        inputs: &mut VecDeque<Input>,
    ) {
        match effect {
            Effect::Emit(event) => {
                let overflow = CompactionReason::Overflow;
                if matches!(event, Event::CompactionStart { reason } if reason == overflow) {
                    self.omit_failed_answer().await;
                }
                self.outbox.tell(event).await;
            }
            Effect::Tell(event, turn) => {
                self.tell_subscribers(&event, turn);
                self.outbox.tell(event).await;
            }
            Effect::Persist(message) => self.persist_group(message, following).await,
            Effect::Record(body) => self.conversation.log.record(body, &self.outbox).await,
            Effect::CallModel => {
                self.watch_rules().await;
                self.tools.want_result(self.machine.output().is_expected());
                self.ask_model();
            }
            Effect::CancelModel => self.answering.iter().for_each(RunningRequest::cancel),
            Effect::ChooseModel => {
                inputs.push_back(Input::Fallback(fall_back(self).await));
            }
            Effect::PrepareTool(slot, call) => {
                if let Some(outcome) = self.prepare(slot, &call) {
                    inputs.push_back(Input::Tool(slot, ToolInput::Prepared(outcome)));
                }
            }
            Effect::Decide(slot) => {
                if let Some(decision) = self.decide(slot) {
                    inputs.push_back(Input::Tool(slot, ToolInput::Decided(decision)));
                }
            }
            Effect::RunTool(slot) => self.run_call(slot, inputs).await,
            Effect::CancelTool(slot) => self.cancel_call(slot).await,
            Effect::AnswerNested {
                request,
                result,
                is_error,
            } => self.answer_nested(request, result, is_error),
            Effect::UpdateNested(request, partial) => self.update_nested(request, &partial),
            Effect::ForgetTools => self.calls.forget(),
            Effect::RunHooks(ticket, point) => self.run_hooks(ticket, point, inputs),
            Effect::HooksFailed(point, why) => {
                self.extensions.failures.push(failure("<runtime>", point, why))
            }
            Effect::CancelHooks(ticket) => self.cancel_hooks(ticket),
            Effect::CancelTools => self.cancel_calls(inputs).await,
            Effect::StartRetryTimer(ms) => {
                self.omit_failed_answer().await;
                self.retry_timer = Some(Box::pin(tokio::time::sleep(Duration::from_millis(ms))));
            }
            Effect::CancelRetryTimer => self.retry_timer = None,
            Effect::CheckContext => inputs.push_back(Input::Context(self.context_is_full())),
            Effect::Compact(reason) => self.begin_compaction(reason),
            Effect::EndCompaction(made) => self.end_compaction(made),
            Effect::CancelCompaction => {
                if let Some(summarising) = &self.summarising {
                    summarising.cancel();
                }
            }
            Effect::Idle => {
                self.extensions.rest();
                self.conversation.choice.rest();
                self.retry_timer = None;
                self.calls.reset();
            }
        }
    }

    /// Appends a prompt before it is acknowledged. Its run does not append it again. A prompt that extensions may change, or
    /// before which the conversation is compacted, is appended when its run begins.
    pub(super) async fn store_prompt(&mut self, messages: &[Arc<Message>]) {
        if self.context_is_full() || self.extensions.hear("message_end") {
            return;
        }
        let mut batch = Batch::default();
        for message in messages {
            batch.push_message(Arc::clone(message));
            self.conversation.log.note_prompt(Arc::clone(message));
        }
        self.conversation.log.keep(batch, &self.outbox).await;
    }

    /// Appends a message together with the entries that follow it with nothing but events in between: one write, and with
    /// `durability` `disk` one sync. What hooks may still change, or add entries to, has not left the machine.
    async fn persist_group(&mut self, message: Arc<Message>, following: &mut VecDeque<Effect>) {
        if self.conversation.log.has_prompt(&message) {
            return;
        }
        let is_plain =
            |effect: &&Effect| matches!(effect, Effect::Persist(_) | Effect::Record(_) | Effect::Emit(_));
        let end = following.iter().take_while(is_plain).count();
        let (mut batch, mut events) = (Batch::of(message), Vec::new());
        for effect in following.drain(..end) {
            match effect {
                Effect::Persist(message) => batch.push_message(message),
                Effect::Record(body) => batch.push(body),
                event => events.push(event),
            }
        }
        for event in events.into_iter().rev() {
            following.push_front(event);
        }
        self.conversation.log.keep(batch, &self.outbox).await;
    }
}

/// The model that takes over. The client hears of models that a limit of the cost excludes.
async fn fall_back(session: &mut Session) -> Option<Fallback> {
    let (choice, mut skipped) = (&mut session.conversation.choice, Vec::new());
    let budget = session.machine.budget();
    let fallback = choice.fall_back(&session.agent.registry, budget, &mut skipped);
    for reason in skipped {
        let notice = format!("Fallback model skipped: {reason}");
        session.outbox.notice("warning", notice).await;
    }
    fallback
}
