//! One session: its only writer and its only reader. It takes mail and reports, feeds the machine of `pinion_core`, and
//! carries out what the machine wants. Each file of this folder adds one concern to [`Session`]; none of them decides what
//! follows what in a run.

mod access;
mod answering;
mod browsing;
mod client_tools;
mod commands;
mod compacting;
mod dialogs;
mod drive;
mod enclosing;
mod equipment;
mod exporting;
mod extensions;
mod frames;
mod happening;
mod lifecycle;
mod looking;
mod machine;
mod mcp;
mod modelling;
mod navigating;
mod outlining;
mod permitting;
mod progress;
mod prompting;
mod queueing;
mod reading;
mod resuming;
mod retiring;
mod ruling;
mod shell;
mod storage;
mod summarising;
mod switching;
mod todos;
mod tool_calls;
mod tool_pipeline;
mod trusting;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use config::resources::Resources;
use llm::PromptHistory;
use models::Scoped;
use tokio::time::Sleep;
use wire::event::CloseReason;
use wire::table::Respond;
use wire::{BashExecutionMessage, Event, Message, Model, ThinkingLevel};

use crate::agent::Agent;
use crate::hub::turn_away;
use crate::limits;
use crate::mail::Mailbox;
use crate::outbox::{Outbox, Responder};
use crate::strings;

pub use self::dialogs::{Answer, Dialog, NoAnswer, Show, Ui};
pub use self::lifecycle::Opening;
pub(crate) use self::retiring::Retired;

use self::answering::Answering;
use self::client_tools::ClientTools;
use self::compacting::Asked;
use self::dialogs::Dialogs;
use self::extensions::{Agenda, Extended};
use self::happening::Happening;
use self::looking::Looking;
use self::machine::RecordedMachine;
use self::mcp::Mcp;
use self::modelling::Probes;
use self::navigating::Moving;
use self::permitting::Permitting;
use self::prompting::Later;
use self::shell::Shells;
use self::storage::Storage;
use self::summarising::Summarising;
use self::tool_calls::{ToolCalls, ToolRegistry};

/// A session. Made by [`Session::start`], runs until its mailbox is closed.
pub struct Session {
    agent: Arc<Agent>,
    outbox: Outbox,
    machine: RecordedMachine,
    log: Storage,
    /// The directory that tools work in.
    cwd: PathBuf,
    resources: Resources,
    /// Put together for the first request.
    system_prompt: Option<String>,
    /// The model for the next run.
    model: Model,
    thinking: ThinkingLevel,
    /// What the client chose itself; new sessions begin with it.
    chosen: (Option<Model>, Option<ThinkingLevel>),
    /// Models that cycling goes through, when `--models` limits it.
    scope: Vec<Scoped>,
    /// Odd things noticed at the start, until somebody takes them.
    warnings: Vec<String>,
    /// All tools, and which of them the model may call.
    tools: ToolRegistry,
    auto_compaction: bool,
    /// How many messages the newest compaction left at the front of the conversation; 0 without one.
    kept: usize,
    /// The request that is out.
    answering: Option<Answering>,
    /// The summaries that are being made, for a compaction or a branch that is left.
    summarising: Option<Summarising>,
    /// The client that waits for a branch summary.
    moving: Option<Moving>,
    /// The client that waits for it, if one asked.
    asked_to_compact: Option<Asked>,
    /// What the run that is under way asks, fixed when it starts.
    run_model: Option<(Model, ThinkingLevel)>,
    /// What the requests of this session asked for.
    prompt_history: PromptHistory,
    calls: ToolCalls,
    /// Tools that the client carries out and URIs that it serves.
    client_tools: ClientTools,
    /// Questions to the user.
    dialogs: Dialogs,
    /// Which calls may run.
    permitting: Permitting,
    extensions: Extended,
    /// MCP servers.
    mcp: Mcp,
    /// What is left to be done while an event waits for extensions.
    agenda: Agenda,
    retry_timer: Option<Pin<Box<Sleep>>>,
    shells: Shells,
    looking: Looking,
    /// Local servers that are asked whether they have a model.
    probes: Probes,
    /// User shell commands that ended during the run that is under way; written down after it.
    parked: Vec<BashExecutionMessage>,
    /// Those that are written down and join the conversation with the next prompt.
    unheard: Vec<Arc<Message>>,
    /// What waits for the session to be idle, in order.
    later: VecDeque<Later>,
    /// Who asked for the session to be closed.
    closing: Option<Responder<()>>,
    /// It was put away: it ends without a word of anybody.
    is_retired: bool,
}

impl Session {
    /// Serves the mailbox until it is closed and every command has been answered, then ends what is going on.
    pub async fn run(mut self, mailbox: Mailbox) {
        self.report_oddities().await;
        self.begin_extensions().await;
        let mut mailbox = Some(mailbox);
        // What waits for the session to be idle is owed an answer.
        while mailbox.is_some() || !self.later.is_empty() || self.probes.are_running() {
            let happening = self.next(mailbox.as_mut()).await;
            if matches!(happening, Happening::Closed) {
                mailbox = None;
            }
            self.deal_with(happening).await;
            if self.closing.is_some()
                || self.is_retired
                || self.extensions.wants_shutdown() && self.machine.is_idle()
            {
                break;
            }
        }
        match self.closing.take() {
            // Whoever closes it wants to see it end.
            Some(responder) => {
                self.wind_up().await;
                self.end_extensions().await;
                self.finish_storage().await;
                // The handle is free as soon as the client can know.
                let left = mailbox.map(|mut mailbox| mailbox.close()).unwrap_or_default();
                self.tell_closed(CloseReason::Closed).await;
                responder.respond(Ok(())).await;
                for mail in left {
                    turn_away(&self.outbox, mail, strings::CLOSED).await;
                }
            }
            None if self.is_retired => {
                self.wind_up().await;
                self.end_extensions().await;
                self.finish_storage().await;
                self.tell_closed(CloseReason::Evicted).await;
            }
            // The client is gone: nothing more is told (behaviour.md 11), except how calls end that waited for it.
            None => {
                if !self.client_tools.are_asked() && !self.outbox.is_heard_to_the_end() {
                    self.outbox = self.outbox.without_events();
                }
                self.lose_client().await;
                self.wind_up().await;
                self.end_extensions().await;
                self.finish_storage().await;
            }
        }
    }

    async fn deal_with(&mut self, happening: Happening) {
        match happening {
            Happening::Mail(mail) => self.on_mail(mail).await,
            Happening::Model(events) => self.on_model(events).await,
            Happening::Call(report) => self.on_call(report).await,
            Happening::Shell(report) => self.on_shell(report).await,
            Happening::Summarised(summarised) => self.on_summarised(summarised).await,
            Happening::TodoDue => self.clear_todos().await,
            Happening::StorageDue => drop(self.flush_storage().await),
            Happening::RetryDue => self.drive(pinion_core::Input::RetryDue).await,
            Happening::Dialog(news) => self.dialogs.deal_with(news, &self.outbox).await,
            Happening::Permission(answer) => self.on_permission(answer).await,
            Happening::Extension(news) => self.on_extension(news).await,
            Happening::Mcp(news) => self.on_mcp(news).await,
            Happening::Probed(probed) => self.on_probed(*probed).await,
            Happening::Closed => self.dialogs.lose_client(),
        }
        self.note_prompts();
        self.catch_up().await;
    }

    /// The run ends as after an abort, so that what was said so far is on disk. What does not end in time is left behind.
    async fn wind_up(&mut self) {
        self.withdraw_prompt().await;
        let quiet = async {
            self.drive(pinion_core::Input::Abort).await;
            self.shells.cancel();
            self.catch_up().await;
            while !self.machine.is_idle()
                || self.shells.are_running()
                || !self.agenda.is_empty()
                || self.extensions.owes()
                || self.mcp.is_asking()
            {
                let happening = self.next(None).await;
                self.deal_with(happening).await;
            }
        };
        if tokio::time::timeout(limits::END_WAIT, quiet).await.is_err() {
            // The entry that is being written comes first; a disk that hangs is given up, and the rest stays unwritten.
            let _late = tokio::time::timeout(limits::END_WAIT, self.log.settle()).await;
            self.cut_off().await;
        }
        self.answering = None;
        self.summarising = None;
        self.calls.cancel();
        self.shells.cancel();
        self.end_mcp();
    }

    /// Asks whoever sits in front of the client.
    #[must_use]
    pub fn ui(&self) -> Ui {
        self.dialogs.ui()
    }

    /// Tells people something that no client depends on.
    async fn notice(&self, level: &str, message: String) {
        self.outbox
            .tell(Event::Notice {
                level: level.to_owned(),
                message,
            })
            .await;
    }
}
