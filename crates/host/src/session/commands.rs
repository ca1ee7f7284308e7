//! Mail: each command goes to the file that knows its concern.

use pinion_core::{Change, QueueKind};
use wire::command::NegotiateParams;
use wire::reply::Negotiated;
use wire::{Command, Reply};

use crate::mail::Mail;
use crate::outbox::Origin;
use crate::strings;

use super::Session;
use super::prompting::Later;

impl Session {
    pub(super) async fn on_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Reject(client, response) => {
                let _gone = self.outbox.response(client, response).await;
            }
            Mail::Connection(origin, command) => {
                if let Command::Hello(params) = &command {
                    self.outbox.hear(params);
                }
                let snapshot = matches!(command, Command::Replay(_)).then(|| Box::new(self.snapshot()));
                self.outbox.ask_connection(origin, command, snapshot).await;
            }
            Mail::Frame(frame) => self.on_frame(frame).await,
            Mail::Command(origin, command) => {
                let is_early = self.begin_mcp(&command).await;
                if is_early || self.waits_for_extensions(&command) {
                    self.later.push_back(Later::Held(origin, Box::new(command)));
                } else {
                    self.on_command(origin, command).await;
                }
            }
            Mail::Retire(answer) => {
                let retired = self.retired().map(Box::new);
                let is_wanted = retired.is_some();
                // Who asked may have given up: then nobody would take it up again.
                self.is_retired = answer.send(retired).is_ok() && is_wanted;
            }
            // Who asked may have given up.
            Mail::Describe(answer) => drop(answer.send(self.describe())),
        }
    }

    pub(super) async fn on_command(&mut self, origin: Origin, command: Command) {
        let outcome = match command {
            // These answer for themselves, some of them later.
            Command::Prompt(params) => return self.prompt(origin, params).await,
            Command::Abort(_) => return self.abort(origin).await,
            Command::AbortAndPrompt(params) => return self.abort_and_prompt(origin, params).await,
            Command::Reset(_) => return self.new_session(origin, Default::default()).await,
            Command::NewSession(params) => return self.new_session(origin, params).await,
            Command::SwitchSession(params) => return self.switch_session(origin, params).await,
            Command::ReloadResources(_) => return self.reload(origin).await,
            Command::Fork(params) => return self.fork(origin, params).await,
            Command::Branch(params) => return self.branch(origin, params).await,
            Command::NavigateTree(params) => return self.navigate(origin, params).await,
            Command::CompleteArguments(params) => return self.complete_arguments(origin, params).await,
            Command::RunShortcut(params) => return self.run_shortcut(origin, params).await,
            Command::CloseSession(_) => return self.close(origin).await,
            Command::Clone(_) => return self.clone_session(origin).await,
            Command::ListSessions(params) => return self.list_sessions(origin, params),
            Command::ListDirectory(params) => return self.list_directory(origin, params),
            Command::FindFiles(params) => return self.find_files(origin, params),
            Command::Compact(params) => return self.compact(origin, params).await,
            Command::ExportHtml(params) => return self.export(origin, params).await,
            Command::Bash(params) => return self.bash(origin, params).await,
            Command::Login(params) => return self.log_in(origin, params).await,
            Command::Continue(_) => return self.resume(origin).await,
            Command::Steer(params) => return self.enqueue(origin, QueueKind::Steering, params).await,
            Command::FollowUp(params) => return self.enqueue(origin, QueueKind::FollowUp, params).await,
            Command::QueueMessage(params) => self.queue_message(params).await,
            Command::ClearQueue(_) => Ok(self.clear_queue().await),
            Command::GetQueue(_) => Ok(self.get_queue()),
            Command::EditQueued(params) => self.edit_queued(params).await,
            Command::RemoveQueued(params) => self.remove_queued(params).await,
            Command::GetState(_) => Ok(self.state()),
            Command::GetMessages(_) => Ok(self.get_messages()),
            Command::GetEntries(params) => self.get_entries(&params),
            Command::GetForkMessages(_) => Ok(self.fork_messages(false)),
            Command::GetBranchMessages(_) => Ok(self.fork_messages(true)),
            Command::GetTree(_) => self.tree(),
            Command::GetSessionTree(_) => self.outline(),
            Command::GetTools(_) => Ok(self.get_tools()),
            Command::SetActiveTools(params) => Ok(self.set_tools(params)),
            Command::GetCommands(_) => Ok(self.commands()),
            Command::GetShortcuts(_) => Ok(self.shortcuts()),
            Command::GetContextUsage(_) => Ok(self.get_context_usage()),
            Command::GetLastAssistantText(_) => Ok(self.last_text()),
            Command::GetSessionStats(params) => Ok(self.stats(params)),
            Command::SetModel(params) => self.set_model(&params).await,
            Command::CycleModel(_) => Ok(self.cycle_model().await),
            Command::GetLoginProviders(_) => Ok(self.login_providers()),
            Command::GetAvailableModels(_) => Ok(self.available_models().await),
            Command::SetThinkingLevel(params) => self.set_thinking_level(&params).await,
            Command::CycleThinkingLevel(_) => Ok(self.cycle_thinking_level().await),
            Command::GetAvailableThinkingLevels(_) => Ok(self.available_thinking_levels()),
            Command::AbortRetry(_) => {
                self.drive(pinion_core::Input::AbortRetry).await;
                Ok(Reply::Nothing)
            }
            Command::AbortBash(_) => Ok(self.abort_bash()),
            Command::SetEntryLabel(params) => self.set_entry_label(params).await,
            Command::SetSessionName(params) => self.set_session_name(&params).await,
            other => self.on_surroundings(other).await,
        };
        self.outbox.respond(origin, outcome).await;
    }

    /// Commands about what a session has around it (the host's tools, servers, what it may) and about its switches.
    async fn on_surroundings(&mut self, command: Command) -> Result<Reply, String> {
        match command {
            Command::SetHostTools(params) => self.set_host_tools(&params),
            Command::SetHostUriSchemes(params) => self.set_host_uri_schemes(&params),
            Command::NegotiateProtocol(params) => negotiate(&params),
            Command::SetTodos(params) => self.set_todos(&params).await,
            Command::SetPermissionMode(params) => Ok(self.set_permission_mode(params)),
            Command::GetProjectTrust(_) => Ok(self.get_project_trust()),
            Command::SetProjectTrust(params) => self.set_project_trust(params),
            Command::GetMcpServers(_) => Ok(self.get_mcp_servers().await),
            Command::SetMcpServers(params) => self.set_mcp_servers(&params).await,
            Command::McpReconnect(params) => self.mcp_reconnect(&params).await,
            other => self.set_switch(other),
        }
    }

    fn abort_bash(&mut self) -> Reply {
        self.shells.cancel();
        Reply::Nothing
    }

    /// Switches of the session: they change how it goes on and nothing else.
    fn set_switch(&mut self, command: Command) -> Result<Reply, String> {
        match command {
            Command::SetSteeringMode(params) => self.set_mode(|s| s.steering_mode = params.mode),
            Command::SetFollowUpMode(params) => self.set_mode(|s| s.follow_up_mode = params.mode),
            Command::SetQueueMode(params) => self.set_mode(|s| {
                s.steering_mode = params.mode;
                s.follow_up_mode = params.mode;
            }),
            Command::SetInterruptMode(params) => self.set_mode(|s| s.interrupt_mode = params.mode),
            Command::SetAutoRetry(params) => self.set_mode(|s| s.retry.enabled = params.enabled),
            Command::SetAutoCompaction(params) => {
                self.auto_compaction = params.enabled;
                Ok(Reply::Nothing)
            }
            other => Err(format!("Unknown command: {}", other.name())),
        }
    }

    fn set_mode(&mut self, change: impl FnOnce(&mut pinion_core::LoopSettings)) -> Result<Reply, String> {
        let mut settings = self.machine.settings();
        change(&mut settings);
        self.step(Change::Settings(settings).into());
        Ok(Reply::Nothing)
    }
}

/// Version 1 is the framing that is always spoken. A client that asks for another goes on with this one.
fn negotiate(params: &NegotiateParams) -> Result<Reply, String> {
    match params.protocol_version.as_u64() {
        Some(protocol_version @ 1) => Ok(Reply::Negotiated(Negotiated { protocol_version })),
        _ => Err(strings::unknown_protocol(&params.protocol_version)),
    }
}
