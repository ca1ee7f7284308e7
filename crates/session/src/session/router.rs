//! What concerns several components of a session: each wake-up and each command goes to its component here, and what follows for
//! the others is passed on. Nothing is decided here that a component could decide.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::compaction::Refusal;
use agent::{Change, Input, LoopSettings, ModelInput, convert};
use llm::{ModelEvent, PromptHistory};
use models::Start;
use serde_json::json;
use store::Context;
use tokio_util::sync::CancellationToken;
use wire::command::{BashParams, SetModelParams, ThinkingParams};
use wire::connection::Snapshot;
use wire::event::{CloseReason, CompactionReason};
use wire::hosted::Frame;
use wire::reply::Commands;
use wire::state::{BashResult, SessionState};
use wire::table::Respond;
use wire::{ConnectionCommand, Event, Model, Response, SessionCommand, ThinkingLevel};

use crate::SessionError;
use crate::factory::Agent;
use crate::off_thread::off_thread;
use crate::outbox::{ClientId, Responder};
use crate::requests::SessionRequest;
use crate::retired::{Habits, Retired};
use crate::strings;

use super::Session;
use super::asker::Asker;
use super::client_tools::Withdrawn;
use super::clock::now_ms;
use super::deferred::DeferredAction;
use super::extensions::Saying;
use super::mcp::{self, McpConnections, McpEvent};
use super::model_choice::{LevelSettings, Switch};
use super::model_probes::Probed;
use super::model_request::{Received, RunningRequest, request_for};
use super::run_limits::check_price;
use super::summaries::{Summarised, Summariser};
use super::tool_calls::CallNews;
use super::user_shells::ShellReport;
use super::view::View;
use super::{stream_rules, todos, trust};

/// Entries of an unused session: its model and its thinking level.
const NOTED_AT_START: usize = 2;

impl Session {
    /// Deals with a request of a client or of the manager.
    pub(super) async fn on_mail(&mut self, mail: SessionRequest) {
        match mail {
            SessionRequest::Reject(client, response) => {
                let _gone = self.outbox.response(client, response).await;
            }
            SessionRequest::Connection(origin, command) => {
                if let ConnectionCommand::Hello(params) = &command {
                    self.outbox.hear(params);
                }
                let snapshot =
                    matches!(command, ConnectionCommand::Replay(_)).then(|| Box::new(self.snapshot()));
                self.outbox.ask_connection(origin, command, snapshot).await;
            }
            // The manager keeps these for itself; a session knows no others.
            SessionRequest::Manager(origin, command) => {
                self.outbox
                    .refuse(origin, strings::not_available(command.name()))
                    .await;
            }
            SessionRequest::Frame(frame) => self.on_frame(frame).await,
            SessionRequest::Command(origin, command) => {
                let is_early = self.start_servers(&command).await;
                if is_early || self.extensions.holds(&command) {
                    self.defer(DeferredAction::Held(origin, Box::new(command)));
                } else {
                    command.dispatch(self, origin).await;
                }
            }
            SessionRequest::Retire(answer) => {
                let retired = self.retired().map(Box::new);
                let is_wanted = retired.is_some();
                // The caller may have given up. The session must then stay, because nothing would open it again.
                self.is_retired = answer.send(retired).is_ok() && is_wanted;
            }
            // The caller may have given up.
            SessionRequest::Describe(answer) => drop(answer.send(self.describe())),
        }
    }

    /// Changes settings of the machine, as an input like any other.
    pub(super) fn change_settings(&mut self, change: impl FnOnce(&mut LoopSettings)) {
        let mut settings = self.machine.settings();
        change(&mut settings);
        self.apply(Change::Settings(settings));
    }

    /// The session for commands that only read.
    pub(super) fn view(&self) -> View<'_> {
        View {
            machine: &self.machine,
            conversation: &self.conversation,
            cwd: &self.workspace.cwd,
        }
    }

    /// The reply of `get_state`.
    pub(super) fn state(&self) -> SessionState {
        self.view().state(&self.agent, self.permitting.mode())
    }

    /// The session as it is now, for a client that cannot follow what led to it.
    pub(super) fn snapshot(&self) -> Snapshot {
        let message = self.answering.as_ref().and_then(|answering| answering.so_far());
        let live = self.outbox.standing();
        Snapshot {
            state: self.state(),
            messages: self.machine.messages().to_vec(),
            message: message.map(Arc::new),
            dialogs: self.dialogs.open(),
            retry: live.retry().filter(|_| self.machine.is_waiting_to_retry()),
            queue: self.queued_texts(),
            tools: live.tools(),
            bash: live.bash(),
            shown: live.shown(),
        }
    }

    /// What can be called as a slash command.
    pub(super) fn commands(&self) -> Commands {
        Commands {
            commands: self
                .all_commands()
                .iter()
                .filter_map(|command| serde_json::to_value(command).ok())
                .collect(),
        }
    }

    /// The system prompt of the next request.
    pub(super) fn system_prompt(&mut self) -> String {
        let rules = self.client_tools.uri_rules();
        let (toolbox, permitting) = (&self.agent.toolbox, &self.permitting);
        let limits = |cwd: &Path| [toolbox.limits(cwd), permitting.limits()].concat();
        self.workspace.system_prompt(&self.tools, &rules, limits)
    }

    /// Makes these tools the active ones.
    pub(super) fn choose_tools(&mut self, names: impl Iterator<Item = String>) {
        self.tools.choose(names);
        self.workspace.forget_system_prompt();
        self.extensions.tools_changed();
    }

    /// Sets the model, for a client or an extension.
    pub(super) async fn set_model(&mut self, asker: Asker<Model>, params: SetModelParams) {
        if let Some(probed) = self.probes.look_for(&self.agent, asker, params) {
            self.on_probed(probed).await;
        }
    }

    /// Takes a model that was found, and answers.
    pub(super) async fn on_probed(&mut self, probed: Probed) {
        let SetModelParams { provider, model_id } = probed.params;
        let outcome = match probed.model {
            Some(model) => {
                self.select_model(model.clone(), None, "set").await;
                Ok(model)
            }
            None => Err(strings::model_not_found(provider.as_deref(), model_id.as_deref())),
        };
        match probed.asker {
            Asker::Client(responder) => responder.respond(outcome).await,
            Asker::Extension(id) => self.answer_later(id, Ok(json!(outcome.is_ok()))),
        }
    }

    pub(super) async fn select_model(&mut self, model: Model, level: Option<ThinkingLevel>, source: &str) {
        let settings = LevelSettings {
            own: self
                .agent
                .settings
                .model_thinking_level(&model.provider, &model.id),
            default: self.agent.default_thinking(&model),
        };
        let switch = self.conversation.choice.select(model, level, settings);
        self.switched(switch, source).await;
    }

    /// Stores a switch of the model, and tells clients and extensions.
    pub(super) async fn switched(&mut self, switch: Switch, source: &str) {
        self.conversation.store_switch(&switch, &self.outbox).await;
        if let Some(previous) = &switch.previous_model {
            self.note_model(previous, source);
        }
        if let Some(previous) = switch.previous_level {
            self.note_thinking(previous);
        }
    }

    /// Sets the thinking level, for a client or an extension.
    pub(super) async fn select_level(&mut self, params: &ThinkingParams) -> Result<(), String> {
        let level = ThinkingLevel::parse(&params.level)
            .ok_or_else(|| format!("Invalid thinking level: {}", params.level))?;
        let switch = self.conversation.choice.select_level(level);
        self.switched(switch, "set").await;
        Ok(())
    }

    /// Chooses model, level and scope for another conversation. An unknown model of the command line may come from an
    /// extension that loads later.
    pub(super) async fn choose_for(&mut self, context: &Context, flags: bool) -> Result<Start, SessionError> {
        match self.agent.choose_off_thread(context, flags).await {
            Err(error) if self.extensions.may_resolve(&error) => {
                self.agent.choose_without_flags_off_thread(context).await
            }
            chosen => chosen,
        }
    }

    /// Runs a shell command of the user.
    pub(super) async fn run_bash(&mut self, responder: Responder<BashResult>, params: BashParams) {
        let place = (self.agent.toolbox.clone(), self.workspace.cwd.clone());
        self.shells.run(responder, params, place, &self.outbox).await;
    }

    pub(super) async fn on_shell(&mut self, report: ShellReport) {
        let is_idle = self.machine.is_idle();
        self.shells
            .accept(report, is_idle, &mut self.conversation.log, &self.outbox)
            .await;
        if is_idle {
            self.hear();
        }
    }

    /// Shell commands of the user become part of the conversation with the next prompt.
    pub(super) fn hear(&mut self) {
        for message in self.shells.take_unheard() {
            self.apply(Change::Add(message));
        }
    }

    /// The MCP connections, and what they need of the session.
    pub(super) fn mcp(&mut self) -> (&mut McpConnections, mcp::Host<'_>) {
        let host = mcp::Host {
            source: &*self.agent,
            cwd: &self.workspace.cwd,
            ui: self.dialogs.ui(),
            tools: &mut self.tools,
            outbox: &self.outbox,
        };
        (&mut self.mcp, host)
    }

    /// Starts MCP servers for a command that needs them. Returns true if the command should wait for them.
    pub(super) async fn start_servers(&mut self, command: &SessionCommand) -> bool {
        let is_idle = self.machine.is_idle();
        let (mcp, host) = self.mcp();
        mcp.begin(command, is_idle, host).await
    }

    pub(super) async fn on_mcp(&mut self, event: McpEvent) {
        let (mcp, host) = self.mcp();
        let Some(prompted) = mcp.accept(event, host).await else {
            return;
        };
        match prompted.into_prompt() {
            (responder, Ok((params, attachments))) => {
                let saying = Saying {
                    // It is a server's text: no slash in it means anything.
                    expand: false,
                    ..Saying::new(responder, params, attachments)
                };
                self.say(saying).await;
            }
            (responder, Err(error)) => responder.refuse(error).await,
        }
    }

    /// Withdraws all requests to the client: it learns of it, and the calls end at once.
    pub(super) async fn withdraw_client_requests(&mut self, inputs: &mut VecDeque<Input>) {
        for Withdrawn { slot, event } in self.client_tools.withdraw(|_| true) {
            if let Some(event) = event {
                self.outbox.tell(event).await;
            }
            self.settle_call(slot, inputs).await;
        }
    }

    /// The client is gone. Calls that wait for it fail, which is stored with the rest of the run.
    pub(super) async fn lose_client(&mut self) {
        self.client_tools.lose_client();
        if self.client_tools.are_asked() {
            self.drive(Input::Abort).await;
        }
    }

    /// Gives the machine the todo list at the leaf of the log.
    pub(super) fn read_todos(&mut self) {
        let settings = self.agent.settings.todo.list;
        let change = todos::at_leaf(&self.conversation.log, settings, self.tools.has_todo_tool());
        self.apply(change);
    }

    /// Carries out the writes that calls of the todo tool have made.
    pub(super) async fn answer_todo_writes(&mut self, inputs: &mut VecDeque<Input>) {
        for write in self.tools.take_todo_writes() {
            let stored = self.conversation.log.path().is_some();
            let (phases, result) = self.machine.todos().written(write.ops, stored);
            self.apply(Change::Todos(phases));
            // The call waits for it in any case: a write is made when the call starts.
            if write.done.send(result).is_ok() {
                self.settle_call(write.slot, inputs).await;
            }
        }
    }

    /// Makes sure that the machine watches for the rules there are. Clients learn once which files of the project were left
    /// out, and which of its rules are invalid.
    pub(super) async fn watch_rules(&mut self) {
        let resources = &mut self.workspace.resources;
        let mut warnings: Vec<String> = resources
            .take_left_out()
            .iter()
            .map(ToString::to_string)
            .collect();
        let settings = self.agent.settings.ttsr;
        if settings.enabled && !self.machine.has_rules() {
            let (change, problems) = stream_rules::read(resources, settings.rules, &self.conversation.log);
            warnings.extend(problems);
            self.apply(change);
        }
        for warning in warnings {
            self.outbox.notice("warning", warning).await;
        }
    }

    /// The settings of the directory that the session goes on in, as decisions on trust are by now.
    pub(super) async fn fit_agent(&mut self, cwd: &Path) {
        let (agent, cwd) = (Arc::clone(&self.agent), cwd.to_path_buf());
        let fitting = off_thread(move || agent.fitting(&cwd)).await;
        self.take_agent(fitting);
    }

    /// What the settings said counts as they say it now; what the client or an extension switched stays so.
    fn take_agent(&mut self, agent: Arc<Agent>) {
        let old = std::mem::replace(&mut self.agent, agent);
        let kept = trust::follow(
            self.machine.settings(),
            old.loop_settings(),
            self.agent.loop_settings(),
        );
        self.apply(Change::Settings(kept));
        if old.settings.fallback_models != self.agent.settings.fallback_models {
            let names = self.agent.settings.fallback_models.clone();
            self.conversation.choice.fallbacks.set(names);
        }
        let (was, now) = (&old.settings.compaction, &self.agent.settings.compaction);
        trust::follow_one(&mut self.conversation.auto_compaction, &was.enabled, now.enabled);
        let tools = self.agent.options.tools.clone();
        if self.tools.active_names() == old.options.tools {
            self.tools.activate(tools);
        }
    }

    /// Everything that files say about this session, read again.
    pub(super) fn load_anew(&mut self) {
        let cwd = self.workspace.cwd.clone();
        let agent = Arc::new(self.agent.maker.make(&cwd, self.extensions.guards.faults()));
        self.take_agent(agent);
        self.permitting = self.permitting.anew(&self.agent, &self.workspace.cwd);
        self.workspace
            .set_resources(self.agent.load_resources(&self.workspace.cwd));
    }

    /// Sends the conversation to the model of the run: the model that was chosen when the run sent its first request.
    pub(super) fn ask_model(&mut self) {
        let (model, thinking) = self.conversation.choice.for_run();
        // Extensions begin runs and change prices after the limits were checked.
        if let Err(reason) = check_price(self.machine.budget(), &model) {
            self.answering = Some(RunningRequest::refused(model, reason, CancellationToken::new()));
            return;
        }
        let now = now_ms();
        let system_prompt = self.extensions.prompt().map(str::to_owned);
        let system_prompt = system_prompt.unwrap_or_else(|| self.system_prompt());
        let hooks = self.model_hooks();
        let mut request = request_for(&self.agent, model.clone(), thinking, now);
        let block_images = self.agent.settings.images.block_images;
        let messages = self.machine.messages();
        request.messages = convert::to_llm(messages, block_images);
        let context = hooks.context.map(|context| (context, messages.to_vec()));
        request.rewrite = hooks.rewrite;
        request.change_headers = hooks.change_headers;
        request.on_response = hooks.on_response;
        request.system_prompt = system_prompt;
        request.tools = self.tools.specs();
        request.session_id = Some(self.conversation.log.header().id.clone());
        request.cache_retention = self.agent.options.cache_retention;
        if context.is_some() {
            // An extension may change conversation and prompt of each request, so that nothing is a continuation.
            self.conversation.prompt_history = PromptHistory::default();
        } else {
            self.conversation.prompt_history.observe(&mut request);
        }
        let cancel = CancellationToken::new();
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
            request
        };
        let (agent, span) = (Arc::clone(&self.agent), self.outbox.trace().current());
        self.answering = Some(RunningRequest::open(agent, model, making, cancel, span));
    }

    pub(super) async fn on_model(&mut self, events: Vec<ModelEvent>) {
        for event in events {
            let Some(answering) = &mut self.answering else {
                return;
            };
            let compacts = self.conversation.auto_compaction;
            let Received { input, warning } = answering.accept(event, &self.agent.registry, compacts);
            if let Some(warning) = warning {
                self.outbox.notice("warning", warning).await;
            }
            if let Some(input) = input {
                if matches!(input, ModelInput::Finished(..)) {
                    self.answering = None;
                }
                self.drive(Input::Model(input)).await;
            }
        }
    }

    pub(super) async fn on_summarised(&mut self, summarised: Summarised) {
        let work = self.summarising.take();
        let cancelled = work.is_some_and(|work| work.is_cancelled());
        match summarised {
            // A summary that wins the race against an abort changes nothing.
            Summarised::Compaction(_) if cancelled => self.compacted(Err(Refusal::Aborted)).await,
            Summarised::Compaction(outcome) => self.compacted(outcome).await,
            Summarised::Branch(_) if cancelled => self.summarised_branch(Err(Refusal::Aborted)).await,
            Summarised::Branch(outcome) => self.summarised_branch(outcome).await,
        }
    }

    /// A summariser with the model of the next run: for a compaction with a reason, else for a branch.
    pub(super) fn summariser(
        &mut self,
        reason: Option<CompactionReason>,
        cancel: CancellationToken,
    ) -> Summariser {
        Summariser::new(
            Arc::clone(&self.agent),
            self.outbox.clone(),
            &self.conversation.choice,
            self.machine.settings().retry,
            (reason, cancel),
            self.machine.task_budget(self.extensions.tasks.spending.clone()),
        )
    }

    /// An answer of the client goes to the dialog or to the client tool that waits for it. An answer that nothing waits for is
    /// ignored.
    pub(super) async fn on_frame(&mut self, frame: Frame) {
        if let Frame::UiResponse(response) = &frame {
            return self.dialogs.answered(response);
        }
        match self.client_tools.answer(frame) {
            // What the client sends next may depend on what follows from its answer.
            Ok(Some(slot)) => {
                let report = self.calls.settle(slot).await;
                if let Some((slot, CallNews::Input(input))) =
                    report.and_then(|report| self.calls.accept(report))
                {
                    self.drive(Input::Tool(slot, input)).await;
                }
            }
            Ok(None) => {}
            // There is no command to answer, so the client gets what it gets for a line that cannot be parsed.
            Err(error) => {
                let response = Response {
                    id: None,
                    command: Some("parse".into()),
                    outcome: Err(error),
                };
                let _gone = self.outbox.response(ClientId::default(), response).await;
            }
        }
    }

    /// The state that is needed to continue later; `None` while work is running or waiting, or when state would be lost.
    pub(super) fn retired(&self) -> Option<Retired> {
        let is_at_rest = self.machine.is_idle()
            && self.machine.queues().is_empty()
            && self.summarising.is_none()
            && self.deferred.is_empty()
            && self.closing.is_none()
            && !self.machine.is_holding()
            && !self.shells.are_busy()
            && self.dialogs.open().is_empty()
            && self.extensions.is_at_rest()
            && !self.mcp.is_asking()
            && !self.probes.are_running()
            && !self.queries.are_running()
            && !self.tools.processes().are_running()
            // Entries that are only in memory would be lost.
            && self.conversation.log.waiting() == 0
            && !self.conversation.log.has_left();
        let is_equipped = self.client_tools.are_in_use() || self.mcp.has_set();
        // Going to another place of the tree is no entry: the file would lead back to its end.
        let newest = self
            .conversation
            .log
            .entries()
            .last()
            .map(|entry| entry.id.as_str());
        let is_at_end = self.conversation.log.leaf_id() == newest;
        let is_on_disk = self.conversation.log.is_on_disk();
        let is_empty =
            self.machine.messages().is_empty() && self.conversation.log.entries().len() <= NOTED_AT_START;
        if !is_at_rest || is_equipped || !is_at_end || !(is_on_disk || is_empty) {
            return None;
        }
        let path = self.conversation.log.path().filter(|_| is_on_disk);
        Some(Retired {
            described: self.describe(),
            file: path.map(PathBuf::from),
            cwd: self.workspace.cwd.clone(),
            habits: Habits {
                settings: self.machine.settings(),
                auto_compaction: self.conversation.auto_compaction,
                permission_mode: self.permitting.chosen(),
                durability: self.conversation.log.durability(),
                chosen: self.conversation.choice.chosen.clone(),
                shells: self.shells.made(),
                hears_mcp: self.mcp.is_heard(),
            },
        })
    }

    /// Restores the choices of the client from before the eviction.
    pub(crate) fn resume_habits(&mut self, retired: Retired) {
        let habits = retired.habits;
        self.apply(Change::Settings(habits.settings));
        self.conversation.auto_compaction = habits.auto_compaction;
        self.conversation.choice.chosen = habits.chosen;
        self.conversation.log.direct().set_durability(habits.durability);
        self.shells.go_on_from(habits.shells);
        if habits.hears_mcp {
            self.mcp.hear();
        }
        if let Some(mode) = habits.permission_mode {
            self.choose_permission_mode(mode);
        }
    }

    /// Tells clients that the session is closed.
    pub(super) async fn tell_closed(&self, reason: CloseReason) {
        let event = Event::SessionClosed {
            reason,
            session_id: self.conversation.log.header().id.clone(),
            session_file: self.conversation.log.file_text(),
        };
        self.outbox.tell(event).await;
    }
}
