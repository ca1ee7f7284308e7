//! One session: its only writer and its only reader. It takes mail and reports, feeds the machine of `agent`, and
//! carries out what the machine wants. Each file of this folder adds one concern to [`Session`]; none of them decides what
//! follows what in a run.

mod access;
mod asker;
mod attachments;
mod checkpoints;
mod client_tools;
mod clock;
mod commands;
mod compaction;
mod conversation;
mod deferred;
mod dialogs;
mod drive;
mod export;
mod extension_loading;
mod extension_models;
mod extension_notices;
mod extension_requests;
mod extension_state;
mod extensions;
mod fallbacks;
mod file_search;
mod handoff;
mod hook_points;
mod lifecycle;
mod machine;
mod mcp;
mod message_pages;
mod model_choice;
mod model_probes;
mod model_request;
mod navigation;
mod newest_pi;
mod outline;
mod permission_wait;
mod progress;
mod prompts;
mod queries;
mod queue;
mod router;
mod run_limits;
mod run_options;
mod session_change;
mod session_list;
mod storage;
mod stream_rules;
mod summaries;
#[cfg(test)]
mod tests;
mod todos;
mod tool_calls;
mod tool_pipeline;
mod trust;
mod user_shells;
mod view;
mod wakeup;
mod workspace;

use std::pin::Pin;
use std::sync::Arc;

use agent::Deferred;
use tokio::time::Sleep;
use wire::event::CloseReason;
use wire::table::Respond;

use crate::factory::Agent;
use crate::limits;
use crate::outbox::{Outbox, Responder};
use crate::requests::RequestReceiver;
use crate::strings;

pub use self::dialogs::{Answer, Dialog, NoAnswer, Show, Ui};
pub use self::lifecycle::Opening;
pub use self::tool_calls::PROCESS_TOOL;
pub(crate) use self::tool_calls::subagents_dir;

use self::client_tools::ClientTools;
use self::compaction::Asked;
use self::conversation::Conversation;
use self::deferred::DeferredAction;
use self::dialogs::Dialogs;
use self::extensions::Extensions;
use self::machine::RecordedMachine;
use self::mcp::McpConnections;
use self::model_probes::ModelProbes;
use self::model_request::RunningRequest;
use self::navigation::PendingNavigation;
use self::permission_wait::PermissionWait;
use self::queries::Queries;
use self::summaries::Summarising;
use self::tool_calls::{ToolCalls, ToolRegistry};
use self::user_shells::UserShells;
use self::wakeup::Wakeup;
use self::workspace::Workspace;

/// A session. Made by [`Session::start`], runs until its requests is closed.
pub struct Session {
    agent: Arc<Agent>,
    outbox: Outbox,
    machine: RecordedMachine,
    conversation: Conversation,
    workspace: Workspace,
    /// Odd things noticed at the start, until they are taken.
    warnings: Vec<String>,
    /// All tools, and which of them the model may call.
    tools: ToolRegistry,
    /// The request that is out.
    answering: Option<RunningRequest>,
    /// The summaries that are being made, for a compaction or a branch that is left.
    summarising: Option<Summarising>,
    /// The client that waits for a branch summary.
    moving: Option<PendingNavigation>,
    /// The client that waits for it, if one asked.
    asked_to_compact: Option<Asked>,
    calls: ToolCalls,
    /// Tools that the client carries out and URIs that it serves.
    client_tools: ClientTools,
    /// Questions to the user.
    dialogs: Dialogs,
    /// Which calls may run.
    permitting: PermissionWait,
    extensions: Extensions,
    /// MCP servers.
    mcp: McpConnections,
    retry_timer: Option<Pin<Box<Sleep>>>,
    shells: UserShells,
    /// Commands that only read and take their time.
    queries: Queries,
    /// Local servers that are asked whether they have a model.
    probes: ModelProbes,
    /// What waits for the session to be idle, in order.
    deferred: Deferred<DeferredAction>,
    /// Who asked for the session to be closed.
    closing: Option<Responder<()>>,
    /// It was evicted: it ends without further events.
    is_retired: bool,
}

impl Session {
    /// Serves the requests until it is closed and every command has been answered, then ends its work.
    pub async fn run(mut self, requests: RequestReceiver) {
        self.report_oddities().await;
        self.begin_extensions().await;
        let mut requests = Some(requests);
        // What waits for the session to be idle is owed an answer.
        while requests.is_some() || !self.deferred.is_empty() || self.probes.are_running() {
            let wakeup = self.next(requests.as_mut()).await;
            if matches!(wakeup, Wakeup::Closed) {
                requests = None;
            }
            self.deal_with(wakeup).await;
            if self.closing.is_some()
                || self.is_retired
                || self.extensions.wants_shutdown() && self.machine.is_idle()
            {
                break;
            }
        }
        match self.closing.take() {
            // The request that closes it is answered at the end.
            Some(responder) => {
                self.wind_up().await;
                self.end_extensions().await;
                self.conversation.log.finish(&self.outbox).await;
                // The handle is free as soon as the client can know.
                let left = requests.map(|mut requests| requests.close()).unwrap_or_default();
                self.tell_closed(CloseReason::Closed).await;
                responder.respond(Ok(())).await;
                for mail in left {
                    mail.turn_away(&self.outbox, strings::CLOSED).await;
                }
            }
            None if self.is_retired => {
                self.wind_up().await;
                self.end_extensions().await;
                self.conversation.log.finish(&self.outbox).await;
                self.tell_closed(CloseReason::Evicted).await;
            }
            // The client is gone: no more events (behaviour.md 11), except the ends of calls that waited for it.
            None => {
                if !self.client_tools.are_asked() && !self.outbox.is_heard_to_the_end() {
                    self.outbox = self.outbox.without_events();
                }
                self.lose_client().await;
                self.wind_up().await;
                self.end_extensions().await;
                self.conversation.log.finish(&self.outbox).await;
            }
        }
    }

    async fn deal_with(&mut self, wakeup: Wakeup) {
        match wakeup {
            Wakeup::SessionRequest(mail) => self.on_mail(mail).await,
            Wakeup::Model(events) => self.on_model(events).await,
            Wakeup::Call(report) => self.on_call(report).await,
            Wakeup::Shell(report) => self.on_shell(report).await,
            Wakeup::Summarised(summarised) => self.on_summarised(summarised).await,
            Wakeup::TodoDue => self.drive(agent::Change::TodosDue.into()).await,
            Wakeup::StorageDue => drop(self.conversation.log.flush(&self.outbox).await),
            Wakeup::TimeLimit => self.drive(agent::Input::Abort).await,
            Wakeup::RetryDue => self.drive(agent::Input::RetryDue).await,
            Wakeup::Dialog(event) => self.dialogs.deal_with(event, &self.outbox).await,
            Wakeup::Permission(answer) => self.on_permission(answer).await,
            Wakeup::Extension(news) => self.on_extension(news).await,
            Wakeup::Mcp(event) => self.on_mcp(event).await,
            Wakeup::Probed(probed) => self.on_probed(*probed).await,
            Wakeup::Queried | Wakeup::ProcessExited => {}
            Wakeup::Closed => self.dialogs.lose_client(),
        }
        self.note_prompts();
        self.catch_up().await;
    }

    /// The run ends as after an abort, so that the messages so far are on disk. Work that does not end in time is left behind.
    async fn wind_up(&mut self) {
        self.tools.processes().set_wakeups(false);
        self.mcp.withdraw_prompt().await;
        let quiet = async {
            self.drive(agent::Input::Abort).await;
            self.shells.cancel();
            self.catch_up().await;
            while !self.machine.is_idle()
                || self.shells.are_running()
                || self.machine.is_holding()
                || self.extensions.owes()
                || self.mcp.is_asking()
                || self.queries.are_running()
            {
                let wakeup = self.next(None).await;
                self.deal_with(wakeup).await;
            }
        };
        if tokio::time::timeout(limits::END_WAIT, quiet).await.is_err() {
            // The entry that is being written comes first; a disk that hangs is given up, and the rest stays unwritten.
            let _late = tokio::time::timeout(limits::END_WAIT, self.conversation.log.settle()).await;
            self.cut_off().await;
        }
        self.queries.detach();
        self.answering = None;
        self.summarising = None;
        self.calls.cancel();
        self.shells.cancel();
        self.tools.processes().end().await;
        self.mcp.end();
    }

    /// Asks the user of the client.
    #[must_use]
    pub fn ui(&self) -> Ui {
        self.dialogs.ui()
    }
}
