//! Mail: each command goes to the file that knows its concern. The command table (`wire::table`) says which commands there are
//! and what each one replies; a row without a method here does not compile.

use pinion_core::{Change, Input, LoopSettings, QueueKind};
use wire::command::{
    BashParams, BranchParams, CompactParams, CompleteParams, EditQueuedParams, EnabledParams, EntriesParams,
    ExportParams, ForkParams, InterruptModeParams, LabelParams, ListParams, LoginParams, MessageParams,
    NavigateParams, NegotiateParams, NewSessionParams, NoParams, PermissionModeParams, ProjectTrustParams,
    PromptParams, QueueModeParams, RemoveQueuedParams, SessionNameParams, SetModelParams, ShortcutParams,
    StatsParams, SwitchParams, ThinkingParams, TodosParams,
};
use wire::event::CompactionResult;
use wire::hosted::{HostToolNames, HostToolsParams, HostUriSchemes, HostUriSchemesParams};
use wire::looking::{Directory, DirectoryParams, FindFilesParams, FoundFiles};
use wire::mcp::{McpReconnectParams, McpServers, McpServersParams};
use wire::reply::{
    Accepted, Cancelled, Commands, Completions, ContextUsageReply, CycledModel, CycledThinking, Entries,
    Exported, ForkMessages, Forked, LastText, LoggedIn, LoginProviders, Messages, Models, Navigated,
    Negotiated, PermissionModeReply, ProjectTrust, QueueItems, Queues, SessionOutline, SessionTree, Sessions,
    Shortcuts, ThinkingLevels, Todos,
};
use wire::state::{BashResult, SessionState, SessionStats};
use wire::table::{Responding, SessionHandler};
use wire::tool::{ActiveTools, ActiveToolsParams, Tools};
use wire::{ConnectionCommand, Model, Reply};

use crate::mail::Mail;
use crate::outbox::{Origin, Responder};
use crate::strings;

use super::Session;
use super::compacting::Asker;
use super::prompting::Later;

impl Session {
    pub(super) async fn on_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Reject(client, response) => {
                let _gone = self.outbox.response(client, response).await;
            }
            Mail::Connection(origin, command) => {
                if let ConnectionCommand::Hello(params) = &command {
                    self.outbox.hear(params);
                }
                let snapshot =
                    matches!(command, ConnectionCommand::Replay(_)).then(|| Box::new(self.snapshot()));
                self.outbox.ask_connection(origin, command, snapshot).await;
            }
            // The hub keeps these for itself; a session knows no others.
            Mail::Manager(origin, command) => {
                self.outbox
                    .refuse(origin, strings::not_available(command.name()))
                    .await;
            }
            Mail::Frame(frame) => self.on_frame(frame).await,
            Mail::Command(origin, command) => {
                let is_early = self.begin_mcp(&command).await;
                if is_early || self.waits_for_extensions(&command) {
                    self.later.push_back(Later::Held(origin, Box::new(command)));
                } else {
                    command.dispatch(self, origin).await;
                }
            }
            Mail::Retire(answer) => {
                let retired = self.retired().map(Box::new);
                let is_wanted = retired.is_some();
                // The caller may have given up. The session must then stay, because nothing would open it again.
                self.is_retired = answer.send(retired).is_ok() && is_wanted;
            }
            // The caller may have given up.
            Mail::Describe(answer) => drop(answer.send(self.describe())),
        }
    }

    /// Changes settings of the machine, as an input like any other.
    fn change_settings(&mut self, change: impl FnOnce(&mut LoopSettings)) {
        let mut settings = self.machine.settings();
        change(&mut settings);
        self.step(Change::Settings(settings).into());
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
        Ok(self.session_state())
    }

    async fn get_messages(&mut self, _: NoParams) -> Result<Messages, String> {
        Ok(Session::get_messages(self))
    }

    async fn get_entries(&mut self, params: EntriesParams) -> Result<Entries, String> {
        Session::get_entries(self, &params)
    }

    async fn set_model(&mut self, params: SetModelParams, responder: Responder<Model>) {
        Session::set_model(self, Asker::Client(responder), params).await;
    }

    async fn cycle_model(&mut self, _: NoParams) -> Result<Option<CycledModel>, String> {
        Ok(Session::cycle_model(self).await)
    }

    async fn get_available_models(&mut self, _: NoParams, responder: Responder<Models>) {
        self.available_models(responder);
    }

    async fn set_thinking_level(&mut self, params: ThinkingParams) -> Result<(), String> {
        Session::set_thinking_level(self, &params).await
    }

    async fn cycle_thinking_level(&mut self, _: NoParams) -> Result<Option<CycledThinking>, String> {
        Ok(Session::cycle_thinking_level(self).await)
    }

    async fn get_available_thinking_levels(&mut self, _: NoParams) -> Result<ThinkingLevels, String> {
        Ok(self.available_thinking_levels())
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

    async fn set_auto_compaction(&mut self, params: EnabledParams) -> Result<(), String> {
        self.auto_compaction = params.enabled;
        Ok(())
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
        Ok(self.last_text())
    }

    async fn get_session_stats(&mut self, params: StatsParams) -> Result<SessionStats, String> {
        Ok(self.stats(params))
    }

    async fn export_html(&mut self, params: ExportParams, responder: Responder<Exported>) {
        self.export(responder, params).await;
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

    async fn set_entry_label(&mut self, params: LabelParams) -> Result<(), String> {
        Session::set_entry_label(self, params).await
    }

    async fn clone_session(&mut self, _: NoParams, responder: Responder<Cancelled>) {
        Session::clone_session(self, responder).await;
    }

    async fn get_fork_messages(&mut self, _: NoParams) -> Result<ForkMessages, String> {
        Ok(self.fork_messages(false))
    }

    async fn get_branch_messages(&mut self, _: NoParams) -> Result<ForkMessages, String> {
        Ok(self.fork_messages(true))
    }

    async fn get_tree(&mut self, _: NoParams) -> Result<SessionTree, String> {
        self.tree()
    }

    async fn get_session_tree(&mut self, _: NoParams) -> Result<SessionOutline, String> {
        self.outline()
    }

    async fn list_sessions(&mut self, params: ListParams, responder: Responder<Sessions>) {
        Session::list_sessions(self, responder, params);
    }

    async fn close_session(&mut self, _: NoParams, responder: Responder<()>) {
        self.close(responder).await;
    }

    async fn list_directory(&mut self, params: DirectoryParams, responder: Responder<Directory>) {
        Session::list_directory(self, responder, params);
    }

    async fn find_files(&mut self, params: FindFilesParams, responder: Responder<FoundFiles>) {
        Session::find_files(self, responder, params);
    }

    async fn get_commands(&mut self, _: NoParams) -> Result<Commands, String> {
        Ok(self.commands())
    }

    async fn complete_arguments(&mut self, params: CompleteParams, responder: Responder<Completions>) {
        Session::complete_arguments(self, responder, params).await;
    }

    async fn get_tools(&mut self, _: NoParams) -> Result<Tools, String> {
        Ok(Session::get_tools(self))
    }

    async fn set_active_tools(&mut self, params: ActiveToolsParams) -> Result<ActiveTools, String> {
        Ok(self.set_tools(params))
    }

    async fn reload_resources(&mut self, _: NoParams, responder: Responder<Commands>) {
        self.reload(responder).await;
    }

    async fn get_shortcuts(&mut self, _: NoParams) -> Result<Shortcuts, String> {
        Ok(self.shortcuts())
    }

    async fn run_shortcut(&mut self, params: ShortcutParams, responder: Responder<()>) {
        Session::run_shortcut(self, responder, params).await;
    }

    async fn get_context_usage(&mut self, _: NoParams) -> Result<ContextUsageReply, String> {
        Ok(Session::get_context_usage(self))
    }

    async fn negotiate_protocol(&mut self, params: NegotiateParams) -> Result<Negotiated, String> {
        // Version 1 is the framing that is always spoken. A client that asks for another goes on with this one.
        match params.protocol_version.as_u64() {
            Some(protocol_version @ 1) => Ok(Negotiated { protocol_version }),
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
        Session::set_todos(self, &params).await
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
        Ok(Session::get_project_trust(self))
    }

    async fn set_project_trust(&mut self, params: ProjectTrustParams) -> Result<ProjectTrust, String> {
        Session::set_project_trust(self, params)
    }

    async fn set_host_tools(&mut self, params: HostToolsParams) -> Result<HostToolNames, String> {
        Session::set_host_tools(self, &params)
    }

    async fn set_host_uri_schemes(&mut self, params: HostUriSchemesParams) -> Result<HostUriSchemes, String> {
        Session::set_host_uri_schemes(self, &params)
    }

    async fn get_mcp_servers(&mut self, _: NoParams) -> Result<McpServers, String> {
        Ok(Session::get_mcp_servers(self).await)
    }

    async fn set_mcp_servers(&mut self, params: McpServersParams) -> Result<McpServers, String> {
        Session::set_mcp_servers(self, &params).await
    }

    async fn mcp_reconnect(&mut self, params: McpReconnectParams) -> Result<(), String> {
        Session::mcp_reconnect(self, &params).await
    }
}
