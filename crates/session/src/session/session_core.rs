//! The state that every component of a session works with: the machine, the conversation on disk, the directory and the tools. One
//! type owns them because almost every step needs several of them at once. It only reads and changes them: it waits for no
//! extension, no dialog and no run. A procedure that needs those takes them as further parameters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{Change, Fallback, LoopSettings};
use serde_json::json;
use store::{Context, Damage};
use tokio::sync::mpsc;
use wire::event::{ChangeReason, CloseReason};
use wire::hosted::{HostToolNames, HostToolsParams};
use wire::state::{PermissionMode, SessionState};
use wire::{Event, SessionRule};

use crate::factory::Agent;
use crate::hooks::Facts;
use crate::off_thread::off_thread;
use crate::outbox::Outbox;
use crate::strings;

use super::checkpoints::SessionCheckpoints;
use super::client_tools::{Activation, ClientTools};
use super::conversation::{Conversation, messages_of};
use super::dialogs::Ui;
use super::machine::RecordedMachine;
use super::mcp::{self, McpConnections};
use super::model_choice::ModelChoice;
use super::permission_wait::PermissionWait;
use super::storage::Storage;
use super::tool_calls::{Environment, Layer, OpenSubagent, ToolRegistry};
use super::view::View;
use super::workspace::Workspace;
use super::{stream_rules, todos, trust};

/// The state that the components of a session share.
pub(super) struct SessionCore {
    pub(super) agent: Arc<Agent>,
    pub(super) outbox: Outbox,
    pub(super) machine: RecordedMachine,
    pub(super) conversation: Conversation,
    pub(super) workspace: Workspace,
    /// All tools, and which of them the model may call.
    pub(super) tools: ToolRegistry,
    /// Tools that the client carries out and URIs that it serves.
    pub(super) client_tools: ClientTools,
    /// MCP servers.
    pub(super) mcp: McpConnections,
    /// Which calls may run.
    pub(super) permissions: PermissionWait,
    /// Begins to open sessions for a call of `task`. A session is opened by the type that contains this one, so it is passed in.
    pub(super) open_subagents: fn() -> mpsc::Sender<OpenSubagent>,
}

/// What a session begins with.
pub(super) struct Beginning {
    pub(super) log: Storage,
    /// The directory that it works in.
    pub(super) cwd: PathBuf,
    /// The log at its leaf.
    pub(super) context: Context,
    /// The model and the thinking level.
    pub(super) start: models::Start,
}

impl SessionCore {
    /// The state of a session at its beginning, and warnings for the user. Nothing is written.
    pub(super) fn open(
        agent: Arc<Agent>,
        outbox: &Outbox,
        beginning: Beginning,
        open_subagents: fn() -> mpsc::Sender<OpenSubagent>,
    ) -> (Self, Vec<String>) {
        let Beginning {
            log,
            cwd,
            context,
            start,
        } = beginning;
        let mut tools = ToolRegistry::of_agent(&agent);
        let (messages, kept) = messages_of(context, log.path());
        let machine = RecordedMachine::open(agent.inputs.as_ref(), agent.loop_settings(), messages);
        let (permissions, notes) = PermissionWait::new(&agent, &cwd, None);
        let mut warnings = start.warnings.clone();
        warnings.extend(notes.iter().map(ToString::to_string));
        warnings.extend(tools.take_problems());
        let mut choice = ModelChoice::new(start);
        choice.fallbacks.set(agent.settings.fallback_models.clone());
        let resources = agent.load_resources(&cwd);
        let mut core = Self {
            // Today's pi has no date in the system prompt (pi-1.5-delta.md 6).
            workspace: Workspace::new(
                cwd,
                resources,
                !agent.options.dialect.follows(SessionRule::OmitsDate),
            ),
            client_tools: ClientTools::new(outbox.routes().clone()),
            outbox: outbox.traced(&log.header().id),
            machine,
            conversation: Conversation::new(log, choice, kept, agent.settings.compaction.enabled),
            tools,
            mcp: McpConnections::default(),
            permissions,
            open_subagents,
            agent,
        };
        core.conversation.checkpoints = SessionCheckpoints::new(core.agent.agent_dir.clone());
        core.tools.processes().connect(core.outbox.for_task());
        let wakes = core.agent.settings.tools.process_wakeups;
        core.tools.processes().set_wakeups(wakes);
        core.restore_tools(false);
        // Last, since it depends on whether the tool that writes the list is active.
        core.read_todos();
        (core, warnings)
    }

    /// Gives the machine a change that nothing follows from.
    pub(super) fn apply(&mut self, change: Change) {
        let mut effects = Vec::new();
        self.machine.step(change.into(), &mut effects);
        // Effects of an input go through `Driver::drive`; here they would be lost.
        debug_assert!(effects.is_empty(), "{effects:?}");
    }

    /// Changes settings of the machine, as an input like any other.
    pub(super) fn change_settings(&mut self, change: impl FnOnce(&mut LoopSettings)) {
        let mut settings = self.machine.settings();
        change(&mut settings);
        self.apply(Change::Settings(settings));
    }

    /// Shell commands of the user become part of the conversation with the next prompt.
    pub(super) fn add_shell_messages(&mut self) {
        for message in self.conversation.take_unsent_shells() {
            self.apply(Change::Add(message));
        }
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
        self.view().state(&self.agent, self.permissions.mode())
    }

    /// Returns true if the context leaves too little room for an answer.
    pub(super) fn context_is_full(&self) -> bool {
        self.conversation
            .is_full(self.machine.messages(), &self.agent.settings.compaction)
    }

    /// The system prompt of the next request.
    pub(super) fn system_prompt(&mut self) -> String {
        let rules = self.client_tools.uri_rules();
        let (toolbox, permissions) = (&self.agent.toolbox, &self.permissions);
        let limits = |cwd: &Path| [toolbox.limits(cwd), permissions.limits()].concat();
        self.workspace.system_prompt(&self.tools, &rules, limits)
    }

    /// Returns true if a tool is active or may become so: tools that the command line leaves out stay out.
    pub(super) fn may_activate(&self, name: &str) -> bool {
        let options = &self.agent.options;
        let is_of_server = self.tools.has(Layer::Mcp, name);
        // Tools of the client are active although no list of the command line names them.
        self.tools.is_active(name)
            || options.allows_tool(name)
            || (is_of_server && options.allows_server_tool(name))
    }

    /// The client chooses a permission mode.
    pub(super) fn choose_permission_mode(&mut self, mode: PermissionMode) {
        // Only then: a prompt that is made anew is in no provider's cache.
        if self.permissions.choose(mode) {
            self.workspace.forget_system_prompt();
            // Sub-agents that run already must not go on with a looser mode.
            self.tools.subagents().set_mode(self.permissions.mode());
        }
    }

    /// The MCP connections, and what they need of the session. `ui` asks the user for them.
    pub(super) fn mcp(&mut self, ui: Ui) -> (&mut McpConnections, mcp::Host<'_>) {
        let host = mcp::Host {
            source: &*self.agent,
            cwd: &self.workspace.cwd,
            ui,
            tools: &mut self.tools,
            outbox: &self.outbox,
        };
        (&mut self.mcp, host)
    }

    /// Replaces the tools of the client.
    ///
    /// # Errors
    /// When a definition is not valid. Nothing changes then.
    pub(super) fn set_client_tools(&mut self, params: &HostToolsParams) -> Result<HostToolNames, String> {
        let options = &self.agent.options;
        let activation = Activation {
            named: &options.tool_filter.named,
            excluded: &options.tool_filter.excluded,
        };
        let names = self.client_tools.set_tools(params, &mut self.tools, activation)?;
        // The prompt has a line for each tool of the client.
        self.workspace.forget_system_prompt();
        Ok(names)
    }

    /// The model that takes over. The client hears of models that do not exist, or that a limit of the cost excludes.
    pub(super) async fn fall_back(&mut self) -> Option<Fallback> {
        let (choice, mut skipped) = (&mut self.conversation.choice, Vec::new());
        let fallback = choice.fall_back(&self.agent.registry, self.machine.budget(), &mut skipped);
        for reason in skipped {
            let notice = format!("Fallback model skipped: {reason}");
            self.outbox.notice("warning", notice).await;
        }
        fallback
    }

    /// Gives the machine the todo list at the leaf of the log.
    pub(super) fn read_todos(&mut self) {
        let settings = self.agent.settings.todo.list;
        let change = todos::at_leaf(&self.conversation.log, settings, self.tools.has_todo_tool());
        self.apply(change);
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
        // Once for each branch: the machine forgets its rules when the session goes to another one (`Change::Branch`).
        if settings.enabled && !self.machine.has_rules() {
            let (change, problems) = stream_rules::read(resources, settings.rules, &self.conversation.log);
            warnings.extend(problems);
            self.apply(change);
        }
        for warning in warnings {
            self.outbox.notice("warning", warning).await;
        }
    }

    /// Carries out skill and template calls in what the user typed.
    pub(super) async fn expand(&self, text: &str) -> String {
        let expanded = self.workspace.resources.expand(text);
        if let Some(problem) = expanded.problem {
            self.outbox.notice("warning", problem.to_string()).await;
        }
        expanded.text
    }

    /// What calls may use of the session now.
    pub(super) fn environment(&mut self) -> Environment {
        let checkpoint = self.conversation.checkpoint(self.agent.checkpoints());
        let file = self.conversation.log.file_text();
        let model = self
            .conversation
            .choice
            // That of the run and not the selected one: the calls are those of its answer.
            .run_model
            .as_ref()
            .map(|(model, level)| (model, *level));
        Environment {
            toolbox: self.agent.toolbox.clone(),
            cwd: self.workspace.cwd.clone(),
            session: self.conversation.log.header().id.clone(),
            env: Agent::tool_env(&self.conversation.log.header().id, file.as_deref(), model),
            sees_images: model.is_some_and(|(model, _)| model.sees_images()),
            shrinks_images: self.agent.settings.images.auto_resize,
            tmp_dir: self.agent.mcp.tmp_dir.clone(),
            checkpoint,
            start_line: Some(Arc::new(self.outbox.clone())),
            task_owner: None,
        }
    }

    /// The state of the session for hook executables.
    pub(super) fn hook_facts(&self) -> Facts {
        let (agent, file) = (&self.agent, self.conversation.log.file_text());
        let header = self.conversation.log.header();
        let (model, level) = self.conversation.choice.selected();
        let mut env = agent.toolbox.env().to_vec();
        let about = Agent::tool_env(&header.id, file.as_deref(), Some((model, level)));
        // The agent may itself run in a session of another agent, whose variables name that session.
        env.retain(|(name, _)| about.iter().all(|(known, _)| known != name));
        env.extend(about);
        env.push(("PI_CODING_AGENT_DIR".into(), agent.agent_dir.clone().into()));
        Facts {
            session: json!({
                "id": header.id,
                "file": file,
                "name": self.conversation.log.session_name(),
                "cwd": self.workspace.cwd.to_string_lossy(),
                "model": {"provider": model.provider, "id": model.id},
            }),
            agent: json!({
                "name": "pinion",
                "version": agent.version,
                "dir": agent.agent_dir.to_string_lossy(),
            }),
            env,
            cwd: self.workspace.cwd.clone(),
        }
    }
}

/// Another conversation or directory takes the place of this one.
impl SessionCore {
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
        // If the settings have not changed, names that a client set stay.
        if old.settings.fallback_models != self.agent.settings.fallback_models {
            let names = self.agent.settings.fallback_models.clone();
            self.conversation.choice.fallbacks.set(names);
        }
        let (was, now) = (&old.settings.compaction, &self.agent.settings.compaction);
        trust::follow_one(&mut self.conversation.auto_compaction, &was.enabled, now.enabled);
        let tools = self.agent.options.tools.clone();
        self.tools.follow_options(&old.options.tools, tools);
    }

    /// Everything that files say about this session, read again. `missing_guards` locks the agent down.
    pub(super) fn reload(&mut self, missing_guards: &[String]) {
        let cwd = self.workspace.cwd.clone();
        let agent = Arc::new(self.agent.maker.make(&cwd, missing_guards));
        self.take_agent(agent);
        self.permissions.reread(&self.agent, &self.workspace.cwd);
        self.workspace
            .set_resources(self.agent.load_resources(&self.workspace.cwd));
    }

    /// Locks the agent down: a guard is missing. A looser mode that the client chose before does not count any more.
    pub(super) fn lock_down(&mut self, missing_guards: &[String]) {
        // First, since `reload` keeps the choice of the client.
        self.permissions.forget_loose_choice();
        self.reload(missing_guards);
        self.workspace.forget_system_prompt();
        // Their calls may have been checked by the same guard.
        self.tools.subagents().set_mode(self.permissions.mode());
    }

    /// Reads the texts of messages that were left out when the session was opened. Everything but its state needs them.
    ///
    /// # Errors
    /// When the file cannot be read, or another program changed it meanwhile.
    pub(super) async fn load_texts(&mut self) -> Result<(), String> {
        if !store::lacks_texts(&self.conversation.log) {
            return Ok(());
        }
        let loaded = self.conversation.log.run(store::load_texts).await;
        loaded.map_err(|error| error.to_string())?;
        let messages = self.conversation.read_leaf();
        self.apply(Change::Conversation(messages));
        Ok(())
    }

    /// The machine begins another session. Queue modes and retries stay as they are.
    pub(super) fn open_machine(&mut self, messages: Vec<Arc<wire::Message>>) {
        let settings = self.machine.settings();
        // With the settings of the session before: a new session keeps the queue modes (behaviour.md 9.3).
        self.apply(Change::Open { settings, messages });
    }

    /// What the log says now takes the place of everything that the session was about.
    pub(super) async fn take_up(&mut self, context: Context, start: models::Start, ui: Ui) {
        let has_level = context.thinking_level.is_some();
        let has_messages = !context.messages.is_empty();
        let messages = self.conversation.take_up(context);
        self.open_machine(messages);
        self.conversation.choice.restart(start);
        self.permissions = self.permissions.renewed(&self.agent, &self.workspace.cwd);
        let (agent, cwd) = (Arc::clone(&self.agent), self.workspace.cwd.clone());
        self.workspace
            .set_resources(off_thread(move || agent.load_resources(&cwd)).await);
        let (mcp, host) = self.mcp(ui);
        mcp.relocate(host);
        self.workspace.forget_system_prompt();
        self.restore_tools(true);
        // After the tools: the list has reminders only if the tool that writes it is active.
        self.read_todos();
        // As in pi, a session with messages but without a level gets one at once (pi-core.md 2.4).
        if has_messages && !has_level {
            self.conversation.store_start(true, &self.outbox).await;
        }
    }

    /// Entries that waited are in the file now, or may be `kept` while another session takes the place of this one.
    ///
    /// # Errors
    /// They would be lost: what to tell a client that wants to leave the session.
    pub(super) async fn stored(&mut self, kept: bool) -> Result<(), String> {
        let log = &mut self.conversation.log;
        // The order counts: a flush that succeeds makes room unnecessary, and room is limited.
        if log.waiting() == 0 || log.flush(&self.outbox).await || (kept && log.has_room()) {
            return Ok(());
        }
        Err(strings::unstored_entries(log.waiting(), log.error()))
    }

    /// Says which session the next events are about. Pages rely on it being there before the response.
    pub(super) async fn tell_changed(&self, reason: ChangeReason) {
        let event = Event::SessionChanged {
            reason,
            session_id: self.conversation.log.header().id.clone(),
            session_file: self.conversation.log.file_text(),
            session_name: self.conversation.log.session_name().map(str::to_owned),
            message_count: self.machine.messages().len(),
        };
        self.outbox.tell(event).await;
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

    /// Sends the warnings about the opened session.
    pub(super) async fn report_warnings(&mut self) {
        self.report_damage().await;
        let stored = PathBuf::from(&self.conversation.log.header().cwd);
        if !stored.as_os_str().is_empty() && stored != self.workspace.cwd && !stored.is_dir() {
            let message = strings::works_elsewhere(&stored, &self.workspace.cwd);
            self.outbox.notice("warning", message).await;
        }
    }

    async fn report_damage(&mut self) {
        let log = &self.conversation.log;
        let damage: &Damage = log.damage();
        if damage.is_none() {
            return;
        }
        let event = Event::SessionDamage {
            path: log
                .path()
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
            message: damage.to_string(),
            lines: damage.skipped.iter().map(|skipped| skipped.line).collect(),
            torn_bytes: damage.torn_bytes,
        };
        self.outbox.tell(event).await;
    }
}
