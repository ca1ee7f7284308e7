//! The commands of a session: each goes to the component whose concern it is, or to `router` if it concerns several. The command
//! table (`wire::table`) says which commands there are and what each one replies; a row without a method here does not compile.

use std::sync::Arc;

use agent::{Change, QueueKind};
use wire::changes::{Changes, ChangesParams, RewindParams, Rewound, UnrewindParams};
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
    AvailableCommands, ContinueSessionParams, ContinuedSession, FastMode, Handoff, MessagesPage,
    MessagesPageParams,
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
use wire::{Model, Reply, SessionRule};

use crate::outbox::{Origin, Responder};
use crate::strings;

use super::Session;
use super::asker::Asker;
use super::conversation::Conversation;
use super::export::Export;
use super::extensions::{command_list, login_providers};
use super::fallbacks::check_names;
use super::run_limits::{check_new, limits_reply};
use super::session_list::SessionList;
use super::tool_calls::ChosenBy;
use super::{
    available_commands, extension_loading, extension_models, file_search, model_switch, navigation,
    newest_pi, outline, prompts, queue, session_change, shell_commands, state_reply, todos, trust,
};

impl Responding for Session {
    type Origin = Origin;
    type Responder<R: Into<Reply>> = Responder<R>;

    fn responder<R: Into<Reply>>(&mut self, origin: Origin) -> Responder<R> {
        Responder::new(origin, &self.driver.core.outbox)
    }
}

impl SessionHandler for Session {
    async fn prompt(&mut self, params: PromptParams, responder: Responder<Accepted>) {
        prompts::prompt(&mut self.driver, responder, params).await;
    }

    async fn steer(&mut self, params: MessageParams, responder: Responder<Accepted>) {
        prompts::enqueue(&mut self.driver, responder, QueueKind::Steering, params).await;
    }

    async fn follow_up(&mut self, params: MessageParams, responder: Responder<Accepted>) {
        prompts::enqueue(&mut self.driver, responder, QueueKind::FollowUp, params).await;
    }

    async fn queue_message(&mut self, params: MessageParams) -> Result<Accepted, String> {
        prompts::queue_message(&mut self.driver, params).await
    }

    async fn abort(&mut self, _: NoParams, responder: Responder<()>) {
        self.withdraw().await;
        let next = prompts::abort(&mut self.driver, responder).await;
        self.defer(next);
    }

    async fn abort_and_prompt(&mut self, params: MessageParams, responder: Responder<Accepted>) {
        self.withdraw().await;
        let next = prompts::abort_and_prompt(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn clear_queue(&mut self, _: NoParams) -> Result<Queues, String> {
        Ok(prompts::clear_queue(&mut self.driver).await)
    }

    async fn get_queue(&mut self, _: NoParams) -> Result<QueueItems, String> {
        Ok(queue::listing(&self.driver.core.machine))
    }

    async fn edit_queued(&mut self, params: EditQueuedParams) -> Result<(), String> {
        prompts::edit_queued(&mut self.driver, params).await
    }

    async fn remove_queued(&mut self, params: RemoveQueuedParams) -> Result<(), String> {
        prompts::remove_queued(&mut self.driver, params).await
    }

    async fn resume(&mut self, _: NoParams, responder: Responder<Accepted>) {
        prompts::resume(&mut self.driver, responder).await;
    }

    async fn new_session(&mut self, params: NewSessionParams, responder: Responder<Cancelled>) {
        let next = session_change::new_session(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn reset(&mut self, _: NoParams, responder: Responder<Cancelled>) {
        // The older name of `new_session` (dialects.md 5, row 31).
        let next =
            session_change::new_session(&mut self.driver, responder, NewSessionParams::default()).await;
        self.defer(next);
    }

    async fn get_state(&mut self, _: NoParams, responder: Responder<SessionState>) {
        state_reply::respond(&mut self.driver, responder).await;
    }

    async fn get_messages(&mut self, _: NoParams) -> Result<Messages, String> {
        Ok(self.driver.core.view().messages())
    }

    async fn get_messages_page(&mut self, params: MessagesPageParams) -> Result<MessagesPage, String> {
        self.driver.core.view().page(&params)
    }

    async fn get_entries(&mut self, params: EntriesParams) -> Result<Entries, String> {
        self.driver.core.view().entries(&params)
    }

    async fn set_model(&mut self, params: SetModelParams, responder: Responder<Model>) {
        model_switch::set_model(&mut self.driver, Asker::Client(responder), params).await;
    }

    async fn cycle_model(&mut self, _: NoParams, responder: Responder<Option<CycledModel>>) {
        model_switch::cycle_model(&mut self.driver, responder).await;
    }

    async fn get_available_models(&mut self, _: NoParams, responder: Responder<Models>) {
        self.queries
            .list_models(responder, Arc::clone(&self.driver.core.agent))
            .await;
    }

    async fn set_fast_mode(&mut self, params: EnabledParams) -> Result<FastMode, String> {
        // No provider here has service tiers, so fast mode can only be off (dialects.md 14).
        if params.enabled {
            return Err(strings::NO_FAST_MODE.to_owned());
        }
        Ok(FastMode {
            enabled: false,
            active: false,
        })
    }

    async fn set_fallback_models(&mut self, params: FallbackModelsParams) -> Result<FallbackModels, String> {
        check_names(&self.driver.core.agent.registry, &params.models)?;
        self.driver.core.conversation.choice.fallbacks.set(params.models);
        self.get_fallback_models(NoParams {}).await
    }

    async fn get_fallback_models(&mut self, _: NoParams) -> Result<FallbackModels, String> {
        let models = self.driver.core.conversation.choice.fallbacks.names().to_vec();
        Ok(FallbackModels { models })
    }

    async fn set_thinking_level(&mut self, params: ThinkingParams, responder: Responder<()>) {
        model_switch::set_level(&mut self.driver, responder, &params).await;
    }

    async fn cycle_thinking_level(&mut self, _: NoParams, responder: Responder<Option<CycledThinking>>) {
        model_switch::cycle_level(&mut self.driver, responder).await;
    }

    async fn get_available_thinking_levels(&mut self, _: NoParams) -> Result<ThinkingLevels, String> {
        Ok(self.driver.core.conversation.choice.levels())
    }

    async fn set_steering_mode(&mut self, params: QueueModeParams) -> Result<(), String> {
        // For this session only: no command changes a settings file (GUARANTEES.md, 15).
        self.driver
            .core
            .change_settings(|settings| settings.steering_mode = params.mode);
        Ok(())
    }

    async fn set_follow_up_mode(&mut self, params: QueueModeParams) -> Result<(), String> {
        self.driver
            .core
            .change_settings(|settings| settings.follow_up_mode = params.mode);
        Ok(())
    }

    async fn set_queue_mode(&mut self, params: QueueModeParams) -> Result<(), String> {
        // The single queue of older clients stands for both (dialects.md 5, row 14).
        self.driver.core.change_settings(|settings| {
            settings.steering_mode = params.mode;
            settings.follow_up_mode = params.mode;
        });
        Ok(())
    }

    async fn set_interrupt_mode(&mut self, params: InterruptModeParams) -> Result<(), String> {
        // A run that is under way keeps its mode (`agent::Change::Settings`).
        self.driver
            .core
            .change_settings(|settings| settings.interrupt_mode = params.mode);
        Ok(())
    }

    async fn compact(&mut self, params: CompactParams, responder: Responder<CompactionResult>) {
        let next = prompts::compact(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn handoff(&mut self, params: CompactParams, responder: Responder<Handoff>) {
        let next = prompts::hand_off(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn set_auto_compaction(&mut self, params: EnabledParams) -> Result<(), String> {
        // No setting of the machine, which asks the session whether the context is full (`Effect::CheckContext`).
        self.driver.core.conversation.auto_compaction = params.enabled;
        Ok(())
    }

    async fn set_limits(&mut self, params: SetLimitsParams) -> Result<SessionLimits, String> {
        let SetLimitsParams { limits, reset } = params;
        // Both the model of the active run and the selected one, which may differ: the limits hold for both, and a limit of the cost
        // needs their prices (GUARANTEES.md, 84).
        check_new(limits, self.driver.core.conversation.choice.asked_models())?;
        let reset = reset.unwrap_or(false);
        self.driver.core.apply(Change::Limits { limits, reset });
        self.driver.core.machine.share_limits();
        self.get_limits(NoParams {}).await
    }

    async fn get_limits(&mut self, _: NoParams) -> Result<SessionLimits, String> {
        // Tasks count on the side until the next input; the reply must be complete.
        let spending = &self.driver.extensions.tasks.spending;
        self.driver.core.machine.count_tasks(spending);
        Ok(limits_reply(self.driver.core.machine.budget()))
    }

    async fn set_auto_retry(&mut self, params: EnabledParams) -> Result<(), String> {
        // A retry that waits already is still made (behaviour.md 7.7).
        self.driver
            .core
            .change_settings(|settings| settings.retry.enabled = params.enabled);
        Ok(())
    }

    async fn abort_retry(&mut self, _: NoParams, responder: Responder<()>) {
        self.driver.abort_retry(responder).await;
    }

    async fn bash(&mut self, params: BashParams, responder: Responder<BashResult>) {
        shell_commands::bash(&mut self.driver, responder, params).await;
    }

    async fn abort_bash(&mut self, _: NoParams, responder: Responder<()>) {
        self.driver.shells.cancel();
        self.driver.extensions.client_requests.end_shells();
        // Without a wait: the response comes before those of the commands that are ended (behaviour.md 10).
        responder.respond(Ok(())).await;
    }

    async fn get_last_assistant_text(&mut self, _: NoParams) -> Result<LastText, String> {
        Ok(self.driver.core.view().last_text())
    }

    async fn get_session_stats(&mut self, params: StatsParams) -> Result<SessionStats, String> {
        let core = &self.driver.core;
        Ok(core.view().stats(params, core.agent.options.dialect))
    }

    async fn export_html(&mut self, params: ExportParams, responder: Responder<Exported>) {
        let system_prompt = self.driver.core.system_prompt();
        let core = &self.driver.core;
        let path = params.output_path;
        match Export::new(
            &core.conversation.log,
            path.map(|path| newest_pi::with_home(&core.agent, path)),
            &core.workspace.cwd,
            system_prompt,
            core.tools.specs(),
            core.follows(SessionRule::ExportsEmptySessions),
        ) {
            Ok(export) => self.queries.run(responder, export.write()).await,
            Err(error) => responder.refuse(error).await,
        }
    }

    async fn switch_session(&mut self, params: SwitchParams, responder: Responder<Cancelled>) {
        let next = session_change::switch_session(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn fork(&mut self, params: ForkParams, responder: Responder<Forked>) {
        let next = session_change::fork(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn branch(&mut self, params: BranchParams, responder: Responder<Forked>) {
        let next = session_change::branch(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn navigate_tree(&mut self, params: NavigateParams, responder: Responder<Navigated>) {
        let next = navigation::navigate(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn get_changes(&mut self, params: ChangesParams, responder: Responder<Changes>) {
        let kind = self.driver.core.agent.checkpoints();
        let Conversation { checkpoints, log, .. } = &mut self.driver.core.conversation;
        match checkpoints.changes(log, kind, &params) {
            Ok(changes) => self.queries.run(responder, changes).await,
            Err(error) => responder.refuse(error).await,
        }
    }

    async fn rewind(&mut self, params: RewindParams, responder: Responder<Rewound>) {
        // Calls and commands that run could change the files that are being restored.
        if !self.driver.core.machine.is_idle() || self.driver.shells.are_busy() {
            return responder.refuse(strings::REWIND_BUSY).await;
        }
        let next = navigation::rewind(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn unrewind(&mut self, params: UnrewindParams, responder: Responder<Rewound>) {
        if !self.driver.core.machine.is_idle() || self.driver.shells.are_busy() {
            return responder.refuse(strings::REWIND_BUSY).await;
        }
        let next = navigation::unrewind(&mut self.driver, responder, &params).await;
        self.defer(next);
    }

    async fn set_entry_label(&mut self, params: LabelParams) -> Result<(), String> {
        let core = &mut self.driver.core;
        core.conversation.set_label(params, &core.outbox).await
    }

    async fn clone_session(&mut self, _: NoParams, responder: Responder<Cancelled>) {
        let next = session_change::clone_session(&mut self.driver, responder).await;
        self.defer(next);
    }

    async fn get_fork_messages(&mut self, _: NoParams) -> Result<ForkMessages, String> {
        Ok(self.driver.core.view().fork_messages(false))
    }

    async fn get_branch_messages(&mut self, _: NoParams) -> Result<ForkMessages, String> {
        // Clients of the older `branch` name a message by its line (dialects.md 5, row 5).
        Ok(self.driver.core.view().fork_messages(true))
    }

    async fn get_tree(&mut self, _: NoParams) -> Result<SessionTree, String> {
        outline::tree(&self.driver.core.conversation.log)
    }

    async fn get_session_tree(&mut self, _: NoParams) -> Result<SessionOutline, String> {
        outline::outline(&self.driver.core.conversation.log)
    }

    async fn list_sessions(&mut self, params: ListParams, responder: Responder<Sessions>) {
        let list = SessionList::new(&self.driver.core.agent, &self.driver.core.workspace.cwd);
        let current = self.driver.core.view().listed();
        self.queries.run(responder, list.read(params, current)).await;
    }

    async fn continue_session(
        &mut self,
        params: ContinueSessionParams,
        responder: Responder<ContinuedSession>,
    ) {
        let next = session_change::continue_session(&mut self.driver, responder, params).await;
        self.defer(next);
    }

    async fn close_session(&mut self, _: NoParams, responder: Responder<()>) {
        self.close(responder).await;
    }

    async fn list_directory(&mut self, params: DirectoryParams, responder: Responder<Directory>) {
        let home = self.driver.core.agent.options.resources.home.clone();
        let cwd = self.driver.core.workspace.cwd.clone();
        let list = file_search::list_directory(params.path, cwd, home);
        self.queries.run(responder, list).await;
    }

    async fn find_files(&mut self, params: FindFilesParams, responder: Responder<FoundFiles>) {
        let cancel = self.queries.file_searches.begin(responder.origin().client);
        let find = file_search::find_files(params, self.driver.core.workspace.cwd.clone(), cancel);
        self.queries.run(responder, find).await;
    }

    async fn get_commands(&mut self, _: NoParams) -> Result<Commands, String> {
        Ok(command_list(&self.driver.extensions, &self.driver.core))
    }

    async fn get_available_commands(&mut self, _: NoParams) -> Result<AvailableCommands, String> {
        let commands = self.driver.extensions.commands(&self.driver.core);
        Ok(available_commands::reply(commands))
    }

    async fn get_subagents(&mut self, _: NoParams) -> Result<Subagents, String> {
        Ok(Subagents {
            subagents: self.driver.core.tools.subagents().working(),
        })
    }

    async fn get_subagent_messages(
        &mut self,
        params: SubagentMessagesParams,
    ) -> Result<SubagentMessages, String> {
        self.driver.core.tools.subagents().messages(params).await
    }

    async fn set_subagent_subscription(
        &mut self,
        params: SubagentSubscriptionParams,
    ) -> Result<SubagentSubscription, String> {
        self.driver.core.tools.subagents().set_level(params.level);
        Ok(SubagentSubscription { level: params.level })
    }

    async fn list_processes(&mut self, _: NoParams) -> Result<ProcessesReply, String> {
        Ok(self.driver.core.tools.processes().list())
    }

    async fn read_process(&mut self, params: ReadProcessParams) -> Result<ProcessData, String> {
        self.driver.core.tools.processes().read(&params)
    }

    async fn write_process(&mut self, params: WriteProcessParams, responder: Responder<()>) {
        // In a task: a process that does not read its input would hold the session up.
        let write = self.driver.core.tools.processes().clone().write(params);
        self.queries.run(responder, write).await;
    }

    async fn resize_process(&mut self, params: ResizeProcessParams) -> Result<(), String> {
        self.driver.core.tools.processes().resize(&params)
    }

    async fn kill_process(&mut self, params: KillProcessParams, responder: Responder<ProcessInfo>) {
        // In a task, since it waits until the process is gone.
        let kill = self.driver.core.tools.processes().clone().kill(params.process_id);
        self.queries.run(responder, kill).await;
    }

    async fn set_process_wakeups(&mut self, params: EnabledParams) -> Result<(), String> {
        self.driver.core.tools.processes().set_wakeups(params.enabled);
        Ok(())
    }

    async fn complete_arguments(&mut self, params: CompleteParams, responder: Responder<Completions>) {
        extension_loading::complete_arguments(&mut self.driver, responder, params).await;
    }

    async fn get_tools(&mut self, _: NoParams) -> Result<Tools, String> {
        Ok(self.driver.core.tools.listing())
    }

    async fn set_active_tools(&mut self, params: ActiveToolsParams) -> Result<ActiveTools, String> {
        let names = params.tool_names.into_iter();
        self.driver.choose_tools(names, ChosenBy::Client);
        // Fewer than the client named, if the command line leaves some out or no tool has the name.
        Ok(self.driver.core.tools.active_listing())
    }

    async fn reload_resources(&mut self, _: NoParams, responder: Responder<Commands>) {
        let next = session_change::reload(&mut self.driver, responder).await;
        self.defer(next);
    }

    async fn get_shortcuts(&mut self, _: NoParams) -> Result<Shortcuts, String> {
        Ok(self.driver.extensions.links.shortcuts())
    }

    async fn run_shortcut(&mut self, params: ShortcutParams, responder: Responder<()>) {
        extension_loading::run_shortcut(&mut self.driver, responder, params).await;
    }

    async fn get_context_usage(&mut self, _: NoParams) -> Result<ContextUsageReply, String> {
        Ok(self.driver.core.view().context_usage_reply())
    }

    async fn negotiate_protocol(&mut self, params: NegotiateParams) -> Result<Negotiated, String> {
        // oh-my-pi refuses the version that a connection begins with.
        let lowest = match self.driver.core.follows(SessionRule::NegotiatesNewVersionsOnly) {
            true => 2,
            false => 1,
        };
        // The connection changes its framing with the response. A client that asks for an unknown version goes on as before.
        match params.protocol_version.as_u64() {
            Some(version @ 1..=2) if version >= lowest => Ok(Negotiated {
                protocol_version: version,
            }),
            _ => Err(strings::unknown_protocol(&params.protocol_version)),
        }
    }

    async fn get_login_providers(&mut self, _: NoParams) -> Result<LoginProviders, String> {
        Ok(login_providers(&self.driver.core.agent.registry))
    }

    async fn login(&mut self, params: LoginParams, responder: Responder<LoggedIn>) {
        extension_models::log_in(&mut self.driver, responder, params).await;
    }

    async fn set_todos(&mut self, params: TodosParams) -> Result<Todos, String> {
        let (phases, entry) = todos::edit(&params)?;
        // The list counts once it is stored.
        let stored = self
            .driver
            .core
            .conversation
            .log
            .append(entry, &self.driver.core.outbox)
            .await;
        stored.map_err(|error| error.to_string())?;
        self.driver.core.apply(Change::Todos(phases));
        Ok(Todos {
            todo_phases: self.driver.core.machine.todos().phases().to_vec(),
        })
    }

    async fn set_session_name(&mut self, params: SessionNameParams) -> Result<(), String> {
        self.driver.set_session_name(&params).await
    }

    async fn set_permission_mode(
        &mut self,
        params: PermissionModeParams,
    ) -> Result<PermissionModeReply, String> {
        self.driver.choose_permission_mode(params.mode);
        // A project can require a stricter mode than the client chooses.
        Ok(PermissionModeReply {
            permission_mode: self.driver.core.permissions.mode(),
        })
    }

    async fn get_project_trust(&mut self, _: NoParams) -> Result<ProjectTrust, String> {
        Ok(trust::describe(&self.driver.core.agent))
    }

    async fn set_project_trust(&mut self, params: ProjectTrustParams) -> Result<ProjectTrust, String> {
        trust::decide(&self.driver.core.agent, params)
    }

    async fn set_host_tools(&mut self, params: HostToolsParams) -> Result<HostToolNames, String> {
        self.driver.core.set_client_tools(&params)
    }

    async fn set_host_uri_schemes(&mut self, params: HostUriSchemesParams) -> Result<HostUriSchemes, String> {
        let schemes = self
            .driver
            .core
            .client_tools
            .set_schemes(&params, &mut self.driver.core.tools)?;
        // The prompt tells the model which URIs it can read.
        self.driver.core.workspace.forget_system_prompt();
        Ok(schemes)
    }

    async fn get_mcp_servers(&mut self, _: NoParams) -> Result<McpServers, String> {
        let (mcp, host) = self.driver.core.mcp(self.driver.dialogs.ui());
        Ok(mcp.list(host).await)
    }

    async fn set_mcp_servers(&mut self, params: McpServersParams) -> Result<McpServers, String> {
        let (mcp, host) = self.driver.core.mcp(self.driver.dialogs.ui());
        mcp.set(&params, host).await
    }

    async fn mcp_reconnect(&mut self, params: McpReconnectParams) -> Result<(), String> {
        let (mcp, host) = self.driver.core.mcp(self.driver.dialogs.ui());
        mcp.reconnect(&params, host).await
    }
}
