//! The commands of a session: each goes to the component whose concern it is, or to `router` if it concerns several. The command
//! table (`wire::table`) says which commands there are and what each one replies; a row without a method here does not compile.

use std::sync::Arc;

use agent::{Change, Input, QueueKind};
use config::resources::CommandInfo;
use wire::changes::{Changes, ChangesParams, RewindParams, RewindTarget, Rewound, UnrewindParams};
use wire::command::{
    BashParams, BranchParams, CompactParams, CompleteParams, EditQueuedParams, EnabledParams, EntriesParams,
    ExportParams, FallbackModelsParams, ForkParams, InterruptModeParams, LabelParams, ListParams,
    LoginParams, MessageParams, NavigateParams, NegotiateParams, NewSessionParams, NoParams,
    PermissionModeParams, ProjectTrustParams, PromptParams, QueueModeParams, RemoveQueuedParams,
    SessionNameParams, SetModelParams, ShortcutParams, StatsParams, SwitchParams, ThinkingParams,
    TodosParams,
};
use wire::event::CompactionResult;
use wire::hosted::{HostToolNames, HostToolsParams, HostUriSchemes, HostUriSchemesParams};
use wire::looking::{Directory, DirectoryParams, FindFilesParams, FoundFiles};
use wire::mcp::{McpReconnectParams, McpServers, McpServersParams};
use wire::omp::{
    AvailableCommand, AvailableCommands, CommandInput, ContinueSessionParams, ContinuedSession, FastMode,
    Handoff, MessagesPage, MessagesPageParams, PAGE_BUSY,
};
use wire::process::{
    KillProcessParams, ProcessData, ProcessInfo, ProcessesReply, ReadProcessParams, ResizeProcessParams,
    WriteProcessParams,
};
use wire::reply::{
    Accepted, Cancelled, Commands, Completions, ContextUsageReply, CycledModel, CycledThinking, Entries,
    Exported, FallbackModels, ForkMessages, Forked, LastText, LoggedIn, LoginProviders, Messages, Models,
    Navigated, Negotiated, PermissionModeReply, ProjectTrust, QueueItems, Queues, SessionOutline,
    SessionTree, Sessions, Shortcuts, ThinkingLevels, Todos,
};
use wire::run_limits::{SessionLimits, SetLimitsParams};
use wire::state::{BashResult, SessionState, SessionStats};
use wire::subagent::{
    SubagentMessages, SubagentMessagesParams, SubagentSubscription, SubagentSubscriptionParams, Subagents,
};
use wire::table::{Respond, Responding, SessionHandler};
use wire::tool::{ActiveTools, ActiveToolsParams, Tools};
use wire::{Model, Reply};

use crate::outbox::{Origin, Responder};
use crate::strings;

use super::Session;
use super::asker::Asker;
use super::client_tools::Activation;
use super::conversation::Conversation;
use super::export::Export;
use super::fallbacks::check_names;
use super::handoff::handoff;
use super::run_limits::{check_new, limits_reply};
use super::session_list::SessionList;
use super::{checkpoints, file_search, message_pages, outline, todos, trust};

/// A slash command in the words of oh-my-pi.
fn available(command: CommandInfo) -> AvailableCommand {
    let source = match command.source {
        _ if command.name.starts_with("mcp:") => "mcp_prompt",
        "prompt" => "file",
        other => other,
    };
    let general = || (source != "file").then(|| "arguments".to_owned());
    let hint = command.argument_hint.or_else(general);
    AvailableCommand {
        name: command.name,
        description: command.description,
        input: hint.map(|hint| CommandInput { hint }),
        source: source.to_owned(),
    }
}

impl Responding for Session {
    type Origin = Origin;
    type Responder<R: Into<Reply>> = Responder<R>;

    fn responder<R: Into<Reply>>(&mut self, origin: Origin) -> Responder<R> {
        Responder::new(origin, &self.outbox)
    }
}

impl SessionHandler for Session {
    async fn prompt(&mut self, params: PromptParams, responder: Responder<Accepted>) {
        Session::prompt(self, responder, params).await;
    }

    async fn steer(&mut self, params: MessageParams, responder: Responder<Accepted>) {
        self.enqueue(responder, QueueKind::Steering, params).await;
    }

    async fn follow_up(&mut self, params: MessageParams, responder: Responder<Accepted>) {
        self.enqueue(responder, QueueKind::FollowUp, params).await;
    }

    async fn queue_message(&mut self, params: MessageParams) -> Result<Accepted, String> {
        Session::queue_message(self, params).await
    }

    async fn abort(&mut self, _: NoParams, responder: Responder<()>) {
        Session::abort(self, responder).await;
    }

    async fn abort_and_prompt(&mut self, params: MessageParams, responder: Responder<Accepted>) {
        Session::abort_and_prompt(self, responder, params).await;
    }

    async fn clear_queue(&mut self, _: NoParams) -> Result<Queues, String> {
        Ok(Session::clear_queue(self).await)
    }

    async fn get_queue(&mut self, _: NoParams) -> Result<QueueItems, String> {
        Ok(Session::get_queue(self))
    }

    async fn edit_queued(&mut self, params: EditQueuedParams) -> Result<(), String> {
        Session::edit_queued(self, params).await
    }

    async fn remove_queued(&mut self, params: RemoveQueuedParams) -> Result<(), String> {
        Session::remove_queued(self, params).await
    }

    async fn resume(&mut self, _: NoParams, responder: Responder<Accepted>) {
        Session::resume(self, responder).await;
    }

    async fn new_session(&mut self, params: NewSessionParams, responder: Responder<Cancelled>) {
        Session::new_session(self, responder, params).await;
    }

    async fn reset(&mut self, _: NoParams, responder: Responder<Cancelled>) {
        Session::new_session(self, responder, NewSessionParams::default()).await;
    }

    async fn get_state(&mut self, _: NoParams) -> Result<SessionState, String> {
        Ok(self.state())
    }

    async fn get_messages(&mut self, _: NoParams) -> Result<Messages, String> {
        Ok(self.view().messages())
    }

    async fn get_messages_page(&mut self, params: MessagesPageParams) -> Result<MessagesPage, String> {
        if self.machine.is_running() || self.machine.is_compacting() {
            return Err(PAGE_BUSY.to_owned());
        }
        let log = &self.conversation.log;
        let conversation = message_pages::Conversation {
            session_id: &log.header().id,
            leaf_id: log.leaf_id(),
            messages: self.machine.messages(),
        };
        conversation.page(&params)
    }

    async fn get_entries(&mut self, params: EntriesParams) -> Result<Entries, String> {
        self.view().entries(&params)
    }

    async fn set_model(&mut self, params: SetModelParams, responder: Responder<Model>) {
        Session::set_model(self, Asker::Client(responder), params).await;
    }

    async fn cycle_model(&mut self, _: NoParams) -> Result<Option<CycledModel>, String> {
        let Some(next) = self.conversation.choice.next_model(&self.agent.registry) else {
            return Ok(None);
        };
        self.select_model(next.model.clone(), next.level, "cycle").await;
        Ok(Some(CycledModel {
            model: next.model,
            thinking_level: self.conversation.choice.thinking,
            is_scoped: next.is_scoped,
        }))
    }

    async fn get_available_models(&mut self, _: NoParams, responder: Responder<Models>) {
        self.queries.list_models(responder, Arc::clone(&self.agent)).await;
    }

    async fn set_fast_mode(&mut self, params: EnabledParams) -> Result<FastMode, String> {
        if params.enabled {
            return Err(strings::NO_FAST_MODE.to_owned());
        }
        Ok(FastMode {
            enabled: false,
            active: false,
        })
    }

    async fn set_fallback_models(&mut self, params: FallbackModelsParams) -> Result<FallbackModels, String> {
        check_names(&self.agent.registry, &params.models)?;
        let has_fallback = !params.models.is_empty();
        self.conversation.choice.fallbacks.set(params.models);
        self.change_settings(|settings| settings.has_fallback = has_fallback);
        self.get_fallback_models(NoParams {}).await
    }

    async fn get_fallback_models(&mut self, _: NoParams) -> Result<FallbackModels, String> {
        let models = self.conversation.choice.fallbacks.names().to_vec();
        Ok(FallbackModels { models })
    }

    async fn set_thinking_level(&mut self, params: ThinkingParams) -> Result<(), String> {
        self.select_level(&params).await
    }

    async fn cycle_thinking_level(&mut self, _: NoParams) -> Result<Option<CycledThinking>, String> {
        let Some(level) = self.conversation.choice.next_level() else {
            return Ok(None);
        };
        let switch = self.conversation.choice.select_level(level);
        self.switched(switch, "cycle").await;
        Ok(Some(CycledThinking { level }))
    }

    async fn get_available_thinking_levels(&mut self, _: NoParams) -> Result<ThinkingLevels, String> {
        Ok(self.conversation.choice.levels())
    }

    async fn set_steering_mode(&mut self, params: QueueModeParams) -> Result<(), String> {
        self.change_settings(|settings| settings.steering_mode = params.mode);
        Ok(())
    }

    async fn set_follow_up_mode(&mut self, params: QueueModeParams) -> Result<(), String> {
        self.change_settings(|settings| settings.follow_up_mode = params.mode);
        Ok(())
    }

    async fn set_queue_mode(&mut self, params: QueueModeParams) -> Result<(), String> {
        self.change_settings(|settings| {
            settings.steering_mode = params.mode;
            settings.follow_up_mode = params.mode;
        });
        Ok(())
    }

    async fn set_interrupt_mode(&mut self, params: InterruptModeParams) -> Result<(), String> {
        self.change_settings(|settings| settings.interrupt_mode = params.mode);
        Ok(())
    }

    async fn compact(&mut self, params: CompactParams, responder: Responder<CompactionResult>) {
        Session::compact(self, responder, params).await;
    }

    async fn handoff(&mut self, params: CompactParams, responder: Responder<Handoff>) {
        if self.machine.is_running() {
            return responder.refuse(strings::HANDOFF_BUSY).await;
        }
        if self.machine.messages().len() < 2 {
            return responder.refuse(strings::NOTHING_TO_HAND_OFF).await;
        }
        let (params, responder) = handoff(params, responder);
        Session::compact(self, responder, params).await;
    }

    async fn set_auto_compaction(&mut self, params: EnabledParams) -> Result<(), String> {
        self.conversation.auto_compaction = params.enabled;
        Ok(())
    }

    async fn set_limits(&mut self, params: SetLimitsParams) -> Result<SessionLimits, String> {
        let SetLimitsParams { limits, reset } = params;
        check_new(limits, self.conversation.choice.asked_models())?;
        let reset = reset.unwrap_or(false);
        self.apply(Change::Limits { limits, reset });
        self.get_limits(NoParams {}).await
    }

    async fn get_limits(&mut self, _: NoParams) -> Result<SessionLimits, String> {
        if let Some(spent) = self.extensions.tasks.spending.take() {
            self.drive(Input::Spent(spent)).await;
        }
        self.machine.count_others();
        Ok(limits_reply(self.machine.budget()))
    }

    async fn set_auto_retry(&mut self, params: EnabledParams) -> Result<(), String> {
        self.change_settings(|settings| settings.retry.enabled = params.enabled);
        Ok(())
    }

    async fn abort_retry(&mut self, _: NoParams) -> Result<(), String> {
        self.drive(Input::AbortRetry).await;
        Ok(())
    }

    async fn bash(&mut self, params: BashParams, responder: Responder<BashResult>) {
        Session::bash(self, responder, params).await;
    }

    async fn abort_bash(&mut self, _: NoParams) -> Result<(), String> {
        self.shells.cancel();
        Ok(())
    }

    async fn get_last_assistant_text(&mut self, _: NoParams) -> Result<LastText, String> {
        Ok(self.view().last_text())
    }

    async fn get_session_stats(&mut self, params: StatsParams) -> Result<SessionStats, String> {
        Ok(self.view().stats(params, self.agent.options.dialect))
    }

    async fn export_html(&mut self, params: ExportParams, responder: Responder<Exported>) {
        let system_prompt = self.system_prompt();
        let (log, cwd) = (&self.conversation.log, &self.workspace.cwd);
        match Export::new(log, params.output_path, cwd, system_prompt, self.tools.specs()) {
            Ok(export) => self.queries.run(responder, export.write()).await,
            Err(error) => responder.refuse(error).await,
        }
    }

    async fn switch_session(&mut self, params: SwitchParams, responder: Responder<Cancelled>) {
        Session::switch_session(self, responder, params).await;
    }

    async fn fork(&mut self, params: ForkParams, responder: Responder<Forked>) {
        Session::fork(self, responder, params).await;
    }

    async fn branch(&mut self, params: BranchParams, responder: Responder<Forked>) {
        Session::branch(self, responder, params).await;
    }

    async fn navigate_tree(&mut self, params: NavigateParams, responder: Responder<Navigated>) {
        self.navigate(responder, params).await;
    }

    async fn get_changes(&mut self, params: ChangesParams, responder: Responder<Changes>) {
        let kind = self.agent.checkpoints();
        let Conversation { checkpoints, log, .. } = &mut self.conversation;
        match checkpoints.changes(log, kind, &params) {
            Ok(changes) => self.queries.run(responder, changes).await,
            Err(error) => responder.refuse(error).await,
        }
    }

    async fn rewind(&mut self, params: RewindParams, responder: Responder<Rewound>) {
        if !self.machine.is_idle() || self.shells.are_busy() {
            return responder.refuse(strings::REWIND_BUSY).await;
        }
        let kind = self.agent.checkpoints();
        let Conversation { checkpoints, log, .. } = &mut self.conversation;
        match checkpoints.rewind(log, kind, &params).await {
            Err(error) => responder.refuse(error).await,
            Ok(rewound) if params.what == RewindTarget::Files => responder.respond(Ok(rewound)).await,
            Ok(rewound) => {
                let responder = responder.taking(|moved| checkpoints::moved(rewound, moved));
                self.navigate(responder, checkpoints::place(params.entry_id))
                    .await;
            }
        }
    }

    async fn unrewind(&mut self, params: UnrewindParams, responder: Responder<Rewound>) {
        if !self.machine.is_idle() || self.shells.are_busy() {
            return responder.refuse(strings::REWIND_BUSY).await;
        }
        let kind = self.agent.checkpoints();
        let Conversation { checkpoints, log, .. } = &mut self.conversation;
        match checkpoints.unrewind(log, kind, &params).await {
            Err(error) => responder.refuse(error).await,
            Ok((rewound, None)) => responder.respond(Ok(rewound)).await,
            Ok((rewound, Some(leaf))) => {
                let responder = responder.taking(|moved| checkpoints::moved(rewound, moved));
                self.navigate(responder, checkpoints::place(leaf)).await;
            }
        }
    }

    async fn set_entry_label(&mut self, params: LabelParams) -> Result<(), String> {
        Session::set_entry_label(self, params).await
    }

    async fn clone_session(&mut self, _: NoParams, responder: Responder<Cancelled>) {
        Session::clone_session(self, responder).await;
    }

    async fn get_fork_messages(&mut self, _: NoParams) -> Result<ForkMessages, String> {
        Ok(self.view().fork_messages(false))
    }

    async fn get_branch_messages(&mut self, _: NoParams) -> Result<ForkMessages, String> {
        Ok(self.view().fork_messages(true))
    }

    async fn get_tree(&mut self, _: NoParams) -> Result<SessionTree, String> {
        outline::tree(&self.conversation.log)
    }

    async fn get_session_tree(&mut self, _: NoParams) -> Result<SessionOutline, String> {
        outline::outline(&self.conversation.log)
    }

    async fn list_sessions(&mut self, params: ListParams, responder: Responder<Sessions>) {
        let list = SessionList::new(&self.agent, &self.workspace.cwd);
        let current = self.view().listed();
        self.queries.run(responder, list.read(params, current)).await;
    }

    async fn continue_session(
        &mut self,
        params: ContinueSessionParams,
        responder: Responder<ContinuedSession>,
    ) {
        Session::continue_session(self, responder, params).await;
    }

    async fn close_session(&mut self, _: NoParams, responder: Responder<()>) {
        self.close(responder).await;
    }

    async fn list_directory(&mut self, params: DirectoryParams, responder: Responder<Directory>) {
        let home = self.agent.options.resources.home.clone();
        let cwd = self.workspace.cwd.clone();
        let list = file_search::list_directory(params.path, cwd, home);
        self.queries.run(responder, list).await;
    }

    async fn find_files(&mut self, params: FindFilesParams, responder: Responder<FoundFiles>) {
        let cancel = self.queries.file_searches.begin(responder.origin().client);
        let find = file_search::find_files(params, self.workspace.cwd.clone(), cancel);
        self.queries.run(responder, find).await;
    }

    async fn get_commands(&mut self, _: NoParams) -> Result<Commands, String> {
        Ok(self.commands())
    }

    async fn get_available_commands(&mut self, _: NoParams) -> Result<AvailableCommands, String> {
        let commands = self.all_commands();
        Ok(AvailableCommands {
            commands: commands.into_iter().map(available).collect(),
        })
    }

    async fn get_subagents(&mut self, _: NoParams) -> Result<Subagents, String> {
        Ok(Subagents {
            subagents: self.tools.subagents().working(),
        })
    }

    async fn get_subagent_messages(
        &mut self,
        params: SubagentMessagesParams,
    ) -> Result<SubagentMessages, String> {
        self.tools.subagents().messages(params).await
    }

    async fn set_subagent_subscription(
        &mut self,
        params: SubagentSubscriptionParams,
    ) -> Result<SubagentSubscription, String> {
        self.tools.subagents().set_level(params.level);
        Ok(SubagentSubscription { level: params.level })
    }

    async fn list_processes(&mut self, _: NoParams) -> Result<ProcessesReply, String> {
        Ok(self.tools.processes().list())
    }

    async fn read_process(&mut self, params: ReadProcessParams) -> Result<ProcessData, String> {
        self.tools.processes().read(&params)
    }

    async fn write_process(&mut self, params: WriteProcessParams, responder: Responder<()>) {
        let write = self.tools.processes().clone().write(params);
        self.queries.run(responder, write).await;
    }

    async fn resize_process(&mut self, params: ResizeProcessParams) -> Result<(), String> {
        self.tools.processes().resize(&params)
    }

    async fn kill_process(&mut self, params: KillProcessParams, responder: Responder<ProcessInfo>) {
        let kill = self.tools.processes().clone().kill(params.process_id);
        self.queries.run(responder, kill).await;
    }

    async fn set_process_wakeups(&mut self, params: EnabledParams) -> Result<(), String> {
        self.tools.processes().set_wakeups(params.enabled);
        Ok(())
    }

    async fn complete_arguments(&mut self, params: CompleteParams, responder: Responder<Completions>) {
        Session::complete_arguments(self, responder, params).await;
    }

    async fn get_tools(&mut self, _: NoParams) -> Result<Tools, String> {
        Ok(self.tools.listing())
    }

    async fn set_active_tools(&mut self, params: ActiveToolsParams) -> Result<ActiveTools, String> {
        let options = self.agent.options.clone();
        // What the command line forbids stays forbidden.
        let names = params.tool_names.into_iter();
        self.choose_tools(names.filter(|name| options.allows_tool(name)));
        Ok(self.tools.active_listing())
    }

    async fn reload_resources(&mut self, _: NoParams, responder: Responder<Commands>) {
        self.reload(responder).await;
    }

    async fn get_shortcuts(&mut self, _: NoParams) -> Result<Shortcuts, String> {
        Ok(self.extensions.links.shortcuts())
    }

    async fn run_shortcut(&mut self, params: ShortcutParams, responder: Responder<()>) {
        Session::run_shortcut(self, responder, params).await;
    }

    async fn get_context_usage(&mut self, _: NoParams) -> Result<ContextUsageReply, String> {
        Ok(self.view().context_usage_reply())
    }

    async fn negotiate_protocol(&mut self, params: NegotiateParams) -> Result<Negotiated, String> {
        // The connection has changed its framing by now. A client that asks for an unknown version goes on as before.
        match params.protocol_version.as_u64() {
            Some(protocol_version @ 1..=2) => Ok(Negotiated { protocol_version }),
            _ => Err(strings::unknown_protocol(&params.protocol_version)),
        }
    }

    async fn get_login_providers(&mut self, _: NoParams) -> Result<LoginProviders, String> {
        Ok(self.login_providers())
    }

    async fn login(&mut self, params: LoginParams, responder: Responder<LoggedIn>) {
        self.log_in(responder, params).await;
    }

    async fn set_todos(&mut self, params: TodosParams) -> Result<Todos, String> {
        let (phases, entry) = todos::edit(&params)?;
        // The list counts once it is stored.
        let stored = self.conversation.log.append(entry, &self.outbox).await;
        stored.map_err(|error| error.to_string())?;
        self.apply(Change::Todos(phases));
        Ok(Todos {
            todo_phases: self.machine.todos().phases().to_vec(),
        })
    }

    async fn set_session_name(&mut self, params: SessionNameParams) -> Result<(), String> {
        Session::set_session_name(self, &params).await
    }

    async fn set_permission_mode(
        &mut self,
        params: PermissionModeParams,
    ) -> Result<PermissionModeReply, String> {
        Ok(Session::set_permission_mode(self, params))
    }

    async fn get_project_trust(&mut self, _: NoParams) -> Result<ProjectTrust, String> {
        Ok(trust::describe(&self.agent))
    }

    async fn set_project_trust(&mut self, params: ProjectTrustParams) -> Result<ProjectTrust, String> {
        trust::decide(&self.agent, params)
    }

    async fn set_host_tools(&mut self, params: HostToolsParams) -> Result<HostToolNames, String> {
        let options = &self.agent.options;
        let activation = Activation {
            named: &options.named_tools,
            excluded: &options.excluded_tools,
        };
        let names = self
            .client_tools
            .set_tools(&params, &mut self.tools, activation)?;
        self.workspace.forget_system_prompt();
        Ok(names)
    }

    async fn set_host_uri_schemes(&mut self, params: HostUriSchemesParams) -> Result<HostUriSchemes, String> {
        let schemes = self.client_tools.set_schemes(&params, &mut self.tools)?;
        self.workspace.forget_system_prompt();
        Ok(schemes)
    }

    async fn get_mcp_servers(&mut self, _: NoParams) -> Result<McpServers, String> {
        let (mcp, host) = self.mcp();
        Ok(mcp.list(host).await)
    }

    async fn set_mcp_servers(&mut self, params: McpServersParams) -> Result<McpServers, String> {
        let (mcp, host) = self.mcp();
        mcp.set(&params, host).await
    }

    async fn mcp_reconnect(&mut self, params: McpReconnectParams) -> Result<(), String> {
        let (mcp, host) = self.mcp();
        mcp.reconnect(&params, host).await
    }
}
