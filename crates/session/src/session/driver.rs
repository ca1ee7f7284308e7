//! Carrying out what the machine wants: on disk first, then told; requests, tools and timers started and stopped. This is the only
//! place that gives the machine an input that something follows from.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use agent::compaction::{Refusal, SummaryKind};
use agent::{Activity, Change, Effect, HookPoint, Input, ModelInput, Prepared, ToolInput, convert};
use extensions::line::Failure;
use llm::{ModelEvent, PromptHistory};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wire::command::SessionNameParams;
use wire::connection::Snapshot;
use wire::entry::CustomEntry;
use wire::event::CompactionReason;
use wire::state::PermissionMode;
use wire::table::Respond;
use wire::{EntryBody, Event, Message, SessionCommand, SessionRule};

use crate::outbox::Responder;

use super::cache_warming::CacheWarmer;
use super::clock::now_ms;
use super::permission_wait;
use super::queue;
use super::run_limits::check_price;

use super::dialogs::Dialogs;
use super::extensions::{Extensions, ModelHooks, failure, report};
use super::interrupted_run::InterruptedRun;
use super::model_probes::ModelProbes;
use super::model_request::{Judge, Received, RunningRequest, answer_room, request_for};
use super::running_turn::RunningTurn;
use super::session_core::SessionCore;
use super::storage::Batch;
use super::summaries::Summaries;
use super::tool_calls::ChosenBy;
use super::user_shells::UserShells;

/// The machine of a session with the components that carry out its effects. Everything that may move the machine takes this type.
pub(super) struct Driver {
    pub(super) core: SessionCore,
    pub(super) turn: RunningTurn,
    pub(super) summaries: Summaries,
    pub(super) extensions: Extensions,
    /// Questions to the user.
    pub(super) dialogs: Dialogs,
    /// Shell commands of the user.
    pub(super) shells: UserShells,
    /// Local servers that are asked whether they have a model.
    pub(super) probes: ModelProbes,
    /// The entry of the last request in the provider's prompt cache.
    pub(super) warming: CacheWarmer,
}

impl Driver {
    /// A driver with nothing under way.
    pub(super) fn new(core: SessionCore, extensions: Extensions) -> Self {
        Self {
            dialogs: Dialogs::new(core.agent.settings.dialog_wait()),
            turn: RunningTurn::new(),
            summaries: Summaries::default(),
            shells: UserShells::new(),
            probes: ModelProbes::default(),
            warming: CacheWarmer::default(),
            extensions,
            core,
        }
    }

    /// Gives the machine an input and carries out what follows from it, and from what that gives at once.
    pub(super) async fn drive(&mut self, input: Input) {
        if matches!(input, Input::Abort) {
            self.summaries.interrupted.abort();
            // Processes that were asked nothing during the run do not know yet that there is one to abort.
            self.extensions.sync_state(&mut self.core);
            // Before the machine ends the run: handlers that hold it back learn of the abort, and the grace period begins.
            self.extensions.abort_run(self.core.machine.has_settled());
        }
        // Counted before the input, since what follows from the input depends on the limits that are left.
        self.core.machine.count_tasks(&self.extensions.tasks.spending);
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            sync_reminders(&mut self.core);
            let mut effects = Vec::new();
            self.core.machine.step(input, &mut effects);
            self.perform_all(effects, &mut inputs).await;
        }
    }

    /// Cancels a retry delay. Clients of today's pi get the response before the session settles or begins a run, others after it.
    pub(super) async fn abort_retry(&mut self, responder: Responder<()>) {
        let mut effects = Vec::new();
        // Not through `drive`, which carries out all effects before it returns: the response has a place among them.
        self.core.machine.step(Input::AbortRetry, &mut effects);
        let settles = |effect: &Effect| {
            matches!(
                effect,
                Effect::Emit(Event::AgentSettled { .. }) | Effect::Tell(Event::AgentSettled { .. }, _)
            )
        };
        let end = match self.core.follows(SessionRule::AnswersAbortOfRetryFirst) {
            true => {
                let goes_on = |effect: &Effect| settles(effect) || begins_run(effect);
                effects.iter().position(goes_on).unwrap_or(effects.len())
            }
            false => effects.len(),
        };
        let rest = effects.split_off(end);
        let mut inputs = VecDeque::new();
        self.perform_all(effects, &mut inputs).await;
        responder.respond(Ok(())).await;
        self.perform_all(rest, &mut inputs).await;
        for input in inputs {
            self.drive(input).await;
        }
    }

    async fn perform_all(&mut self, effects: Vec<Effect>, inputs: &mut VecDeque<Input>) {
        // An input that an effect gives at once waits in `inputs`: the other effects of this step were decided without it.
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            if begins_run(&effect) {
                if let Some(prompt) = self.turn.unanswered.take() {
                    // Before the first event of its run, as without a compaction (behaviour.md 2.1).
                    prompt.accept(&mut self.core).await;
                }
                self.extensions.client_requests.end_commands(true).await;
                // This run has its own end, after which the session settles.
                self.summaries.interrupted = InterruptedRun::None;
            }
            // A message that follows is in the conversation already, where kept messages would come behind it.
            let ends_turn =
                ends_turn(&effect) && !effects.iter().any(|next| matches!(next, Effect::Persist(_)));
            // It is the last event of a prompt, and clients may stop reading after it.
            if settles(&effect) {
                add_kept(self).await;
                // Before the event, which depends on it for clients of today's oh-my-pi.
                self.core.tools.processes().tell_pending_wakeup().await;
            }
            self.perform(effect, &mut effects, inputs).await;
            if ends_turn {
                add_kept(self).await;
            }
        }
    }

    /// Carries out an effect. `following` are the effects after it, `inputs` what the machine is given next.
    async fn perform(
        &mut self,
        effect: Effect,
        following: &mut VecDeque<Effect>,
        inputs: &mut VecDeque<Input>,
    ) {
        match effect {
            Effect::Emit(event) => self.tell(event, None).await,
            Effect::Tell(event, turn) => self.tell(event, Some(turn)).await,
            Effect::Persist(message) => self.persist_group(message, following).await,
            Effect::Record(body) => self.core.conversation.log.record(body, &self.core.outbox).await,
            Effect::CallModel => self.call_model().await,
            // The request stays: its last event, which comes in any case, ends the turn.
            Effect::CancelModel => self.turn.request.iter().for_each(RunningRequest::cancel),
            // The machine waits for the choice, so that it comes with the inputs of this very step.
            Effect::ChooseModel => inputs.push_back(Input::Fallback(self.core.fall_back().await)),
            Effect::PrepareTool(slot, call) => {
                if let Some(arguments) = self.core.tools.repaired(&call) {
                    inputs.push_back(Input::Tool(slot, ToolInput::Repaired(arguments)));
                }
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
            } => self.extensions.links.answer_nested(request, result, is_error),
            Effect::UpdateNested(request, partial) => self.extensions.links.update_nested(request, &partial),
            Effect::ForgetTools => self.turn.calls.forget(),
            Effect::RunHooks(ticket, point) => self.run_hooks(ticket, point, inputs),
            Effect::HooksFailed(point, why) => {
                self.extensions.failures.push(failure("<runtime>", point, why))
            }
            Effect::CancelHooks(ticket) => self.cancel_hooks(ticket),
            Effect::CancelTools => self.cancel_calls(inputs).await,
            Effect::StartRetryTimer(ms) => {
                // Before the timer starts: the retry must not overtake the entry.
                self.core.omit_failed_answer().await;
                self.turn.retry_timer = Some(Box::pin(tokio::time::sleep(Duration::from_millis(ms))));
            }
            Effect::CancelRetryTimer => self.turn.retry_timer = None,
            Effect::CheckContext => inputs.push_back(Input::Context(self.summaries.must_compact(&self.core))),
            Effect::Compact(reason) => self.begin_compaction(reason),
            Effect::EndCompaction(made) => self.summaries.end_compaction(made.ok_or(Refusal::Aborted)),
            Effect::CancelCompaction => self.summaries.cancel(),
            Effect::Idle => {
                self.extensions.on_idle();
                self.warming.on_idle(self.core.agent.settings.cache_warming);
                self.core.conversation.choice.on_idle();
                self.core.conversation.prompt_history.forget_encoded();
                self.turn.on_idle();
                // Without it, extensions that are next asked in another run would take that run for this one.
                self.extensions.sync_state(&mut self.core);
            }
        }
    }

    async fn call_model(&mut self) {
        // With the first request of a branch: rule files are read when there is an answer to watch.
        self.core.watch_rules().await;
        let core = &mut self.core;
        let fallbacks = &mut core.conversation.choice.fallbacks;
        fallbacks.report_unknown(&core.agent.registry, &core.outbox).await;
        // Before the request lists the tools: the tool for the result is among them only while the run waits for one.
        self.core
            .tools
            .want_result(self.core.machine.output().is_expected());
        self.ask_model();
    }

    /// Sends an event of the machine; `turn` is its turn if it has subscribers that nothing waits for.
    async fn tell(&mut self, mut event: Event, turn: Option<u64>) {
        match &mut event {
            Event::AgentEnd { will_retry, .. } => *will_retry &= !self.core.hides_recovery(),
            Event::CompactionStart {
                reason: CompactionReason::Overflow,
            } => {
                // Before the event: the compaction must not keep the answer that found no room.
                self.core.omit_failed_answer().await;
            }
            _ => {}
        }
        // Subscribers first, as with events that they may answer.
        if let Some(turn) = turn {
            self.tell_subscribers(&event, turn);
        }
        if matches!(event, Event::AgentSettled { .. }) && self.summaries.interrupted.end() {
            return;
        }
        // Not `tell`: an event without a turn has no listeners, or the machine has waited for them.
        self.core.outbox.tell_clients(Arc::new(event)).await;
    }

    /// Decides whether a call that hooks let through may run. `None` if the user is asked first.
    fn decide(&mut self, slot: usize) -> Option<Prepared> {
        let SessionCore {
            agent,
            workspace,
            permissions,
            ..
        } = &mut self.core;
        let asker = permission_wait::AskContext {
            ui: self.dialogs.ui(),
            toolbox: &agent.toolbox,
            cwd: &workspace.cwd,
            wait: agent.settings.dialog_wait(),
        };
        permissions.decide(slot, &mut self.turn.calls, &asker)
    }

    /// Begins a compaction that hooks have nothing against; its outcome comes back as a wakeup.
    fn begin_compaction(&mut self, reason: CompactionReason) {
        if let Err(error) = self.check_named() {
            let refusal = Refusal::Failed(SummaryKind::History, error);
            return self.summaries.end_compaction(Err(refusal));
        }
        let spending = self.extensions.tasks.spending.clone();
        self.summaries.begin_compaction(&mut self.core, spending, reason);
    }

    /// Appends a message together with the entries that follow it with nothing but events in between: one write, and with
    /// `durability` `disk` one sync. What hooks may still change, or add entries to, has not left the machine.
    async fn persist_group(&mut self, message: Arc<Message>, following: &mut VecDeque<Effect>) {
        // Stored before the command was acknowledged.
        if self.core.conversation.log.has_prompt(&message) {
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
        // Events keep their places behind the write: clients learn of a message once it is on disk.
        for event in events.into_iter().rev() {
            following.push_front(event);
        }
        self.core.conversation.log.keep(batch, &self.core.outbox).await;
    }

    /// Checks that the model is not a placeholder, which stands for a model of an extension that has not loaded. The conversation must
    /// not reach another provider than the user's.
    pub(super) fn check_named(&self) -> Result<(), String> {
        let unresolved = self.extensions.providers.unresolved();
        self.core.conversation.choice.check_named(unresolved)
    }

    /// Sends the conversation to the model of the run: the model that was chosen when the run sent its first request.
    pub(super) fn ask_model(&mut self) {
        let (model, thinking) = self.core.conversation.choice.for_run();
        // Extensions begin runs, and change prices after the limits were checked.
        let checked = self.check_named();
        if let Err(reason) = checked.and_then(|()| check_price(self.core.machine.budget(), &model)) {
            // As a request that fails, so that the run ends like every other, with a message that says why.
            self.turn.request = Some(RunningRequest::refused(model, reason, CancellationToken::new()));
            return;
        }
        let now = now_ms();
        let system_prompt = self.extensions.prompt().map(str::to_owned);
        let system_prompt = system_prompt.unwrap_or_else(|| self.core.system_prompt());
        let hooks = model_hooks(&mut self.extensions, &mut self.core);
        let mut request = request_for(&self.core.agent, model.clone(), thinking, now);
        let block_images = self.core.agent.settings.images.block_images;
        let messages = self.core.machine.messages();
        request.messages = convert::to_llm(messages, block_images);
        // Copied, because the request is made while the session goes on and its conversation may change.
        let context = hooks.context.map(|context| (context, messages.to_vec()));
        request.hooks = hooks.request;
        request.system_prompt = system_prompt;
        request.tools = self.core.tools.specs();
        let caching = &self.core.agent.options.prompt_caching;
        let session_id = caching.session_id.as_ref();
        request.session_id = Some(
            session_id
                .unwrap_or(&self.core.conversation.log.header().id)
                .clone(),
        );
        request.cache_retention = caching.retention;
        // An extension that changes the conversation changes its size, too.
        request.output.room = match context {
            Some(_) => None,
            None => answer_room(&self.core, &request),
        };
        if context.is_some() {
            // An extension may change conversation and prompt of each request, so that nothing is a continuation.
            self.core.conversation.prompt_history = PromptHistory::default();
        } else {
            self.core.conversation.prompt_history.observe(&mut request);
        }
        let mode = self.core.agent.settings.cache_warming;
        let session = &self.core.conversation.log.header().id;
        let sent = self
            .warming
            .begin(mode, session, &request, self.core.machine.messages());
        // A token for this request alone: its abort must not end the next one.
        let cancel = CancellationToken::new();
        // An extension that looks at the context may hang; an abort must still end the making of the request.
        let cancelled = cancel.clone();
        let making = async move {
            if let Some((context, messages)) = context {
                tokio::select! {
                    (messages, system) = context.seen(messages, request.system_prompt.clone()) => {
                        request.messages = convert::to_llm(&messages, block_images);
                        request.system_prompt = system;
                    }
                    () = cancelled.cancelled() => {}
                }
            }
            if let Some(sent) = sent {
                // Set here only, so that it is empty before.
                let _first = sent.set(request.clone());
            }
            request
        };
        let (agent, span) = (Arc::clone(&self.core.agent), self.core.outbox.trace().current());
        self.turn.request = Some(RunningRequest::open(agent, model, making, cancel, span));
    }

    pub(super) async fn on_model(&mut self, mut events: Vec<ModelEvent>) {
        if let Some(request) = &mut self.turn.request {
            request.keep_last(&mut events);
        }
        for event in events {
            self.on_model_event(event).await;
        }
        // An input of the same batch may have ended the request.
        let last = self.turn.request.as_mut().and_then(RunningRequest::take_last);
        if let Some(last) = last {
            self.on_model_event(last).await;
        }
    }

    async fn on_model_event(&mut self, event: ModelEvent) {
        // An input of the same batch may have ended the request. What it still sent is of no run.
        let Some(answering) = &mut self.turn.request else {
            return;
        };
        let judge = Judge::of(&self.core);
        let Received { input, warning } = answering.accept(event, &self.core.agent.registry, judge);
        if let Some(warning) = warning {
            self.core.outbox.notice("warning", warning).await;
        }
        if let Some(input) = input {
            if matches!(input, ModelInput::Finished(..)) {
                // Before the machine learns of the end: among the effects may be the next request.
                self.turn.request = None;
            }
            self.drive(Input::Model(input)).await;
        }
    }

    /// The session as it is now, for a client that cannot follow what led to it.
    pub(super) fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        let live = core.outbox.standing();
        Snapshot {
            state: core.state(),
            messages: core.machine.messages().to_vec(),
            message: self.turn.partial_message().map(Arc::new),
            dialogs: self.dialogs.open(),
            // The live state learns of the end with the next event only; the machine knows it at once.
            retry: live
                .retry()
                .filter(|_| matches!(core.machine.activity(), Activity::WaitingToRetry { .. })),
            queue: queue::texts(&core.machine),
            tools: live.tools(),
            bash: live.bash(),
            shown: live.shown(),
        }
    }

    /// The client chooses a permission mode, which holds for the sessions of extensions, too.
    pub(super) fn choose_permission_mode(&mut self, mode: PermissionMode) {
        self.core.choose_permission_mode(mode);
        self.extensions.subsessions.set_mode(self.core.permissions.mode());
    }

    /// Makes these tools the active ones, as far as the command line allows.
    pub(super) fn choose_tools(&mut self, names: impl Iterator<Item = String>, chosen_by: ChosenBy) {
        let mut names: Vec<String> = names.filter(|name| self.core.may_activate(name)).collect();
        if self.core.follows(SessionRule::ToolsKeepOrder) {
            names = self.core.tools.active_first(names);
        }
        self.core.tools.choose(names.into_iter(), chosen_by);
        // The system prompt lists the active tools.
        self.core.workspace.forget_system_prompt();
        self.extensions.tools_changed();
    }

    /// Starts MCP servers for a command that needs them. Returns true if the command should wait for them.
    pub(super) async fn start_servers(&mut self, command: &SessionCommand) -> bool {
        let is_idle = self.core.machine.is_idle();
        let (mcp, host) = self.core.mcp(self.dialogs.ui());
        mcp.begin(command, is_idle, host).await
    }

    /// Names the session.
    ///
    /// # Errors
    /// When the name is empty or cannot be stored.
    pub(super) async fn set_session_name(&mut self, params: &SessionNameParams) -> Result<(), String> {
        let SessionCore {
            conversation, outbox, ..
        } = &mut self.core;
        let name = conversation.store_name(&params.name, outbox).await?;
        // Callers respond afterwards: the event precedes the response (behaviour.md 9.8).
        outbox.tell(Event::SessionInfoChanged { name: Some(name) }).await;
        Ok(())
    }

    /// A message that no run produced joins the conversation.
    pub(super) async fn add_message(&mut self, message: Arc<Message>) {
        self.core.apply(agent::Change::Add(Arc::clone(&message)));
        let SessionCore {
            conversation, outbox, ..
        } = &mut self.core;
        let start = Event::MessageStart {
            message: Arc::clone(&message),
        };
        outbox.tell(start).await;
        // As in a run: the message is on disk before the client hears of its end.
        conversation.log.persist(Arc::clone(&message), outbox).await;
        outbox.tell(Event::MessageEnd { message }).await;
    }

    /// Data of an extension.
    pub(super) async fn append_custom(
        &mut self,
        custom_type: String,
        data: Option<Value>,
    ) -> Result<(), String> {
        let body = EntryBody::Custom(CustomEntry {
            custom_type,
            data: data.filter(|data| !data.is_null()),
            extra: wire::Extra::default(),
        });
        let SessionCore {
            conversation, outbox, ..
        } = &mut self.core;
        let appended = conversation.log.append(body, outbox).await;
        let entry = appended.map_err(|error| error.to_string())?;
        outbox.tell(Event::EntryAppended { entry }).await;
        Ok(())
    }

    /// Tells clients that an extension failed.
    pub(super) async fn extension_failed(&self, failure: Failure) {
        report(failure, &self.core.outbox).await;
    }
}

/// Returns true for an effect after which the results of a turn are in the conversation and the next request is still to be made.
fn ends_turn(effect: &Effect) -> bool {
    matches!(
        effect,
        // The session is also busy without a turn: while it is compacted, or moves in its tree.
        Effect::Emit(Event::TurnEnd { .. }) | Effect::Tell(Event::TurnEnd { .. }, _) | Effect::Idle
    )
}

/// Adds the messages of extensions that were kept until the turn has ended.
async fn add_kept(driver: &mut Driver) {
    for message in std::mem::take(&mut driver.turn.kept) {
        driver.add_message(message).await;
    }
}

/// Returns true for an effect with which the session settles, or with which hooks decide whether it does.
fn settles(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Emit(Event::AgentSettled { .. })
            | Effect::Tell(Event::AgentSettled { .. }, _)
            | Effect::RunHooks(
                _,
                HookPoint::Settle { .. }
                    | HookPoint::Event {
                        event: Event::AgentSettled { .. },
                        ..
                    }
            )
    )
}

/// Returns true for the first effect of a run.
fn begins_run(effect: &Effect) -> bool {
    // The machine lets the event out in one of three forms: nothing listens, listeners only receive it, or the run waits for them.
    matches!(
        effect,
        Effect::Emit(Event::AgentStart)
            | Effect::Tell(Event::AgentStart, _)
            | Effect::RunHooks(
                _,
                HookPoint::Event {
                    event: Event::AgentStart,
                    ..
                }
            )
    )
}

/// The hooks of extensions on the next request to the model.
fn model_hooks(extensions: &mut Extensions, core: &mut SessionCore) -> ModelHooks {
    // These hooks are asked without `Extensions::ask`, which sends extensions the state of the session first.
    if ["context", "context_with_system"]
        .iter()
        .any(|name| extensions.has_listener(name))
    {
        extensions.sync_state(core);
    }
    let extensions = &*extensions;
    ModelHooks::new(&extensions.failures, |name| {
        let listeners = || extensions.listeners(core, name, &Value::Null);
        extensions.has_listener(name).then(listeners)
    })
}

/// Ends reminders while the tool of the list is not active. Clients, extensions and settings can switch it at any time.
fn sync_reminders(core: &mut SessionCore) {
    let reminds = core.agent.settings.todo.list.reminders && core.tools.has_todo_tool();
    // An input that changes nothing would only make the record of inputs longer.
    if reminds != core.machine.todos().has_reminders() {
        core.apply(Change::Reminders(reminds));
    }
}
