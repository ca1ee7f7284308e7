//! Saying something to the model, now or later, and stopping (pi-core.md 1.7, 1.8, 1.11).

use std::sync::Arc;

use agent::{Input, QueueKind, Queued};
use wire::Message;
use wire::command::{CompactParams, MessageParams, PromptParams};
use wire::event::CompactionResult;
use wire::reply::{Accepted, Disposition, Queues};
use wire::table::Respond;

use crate::limits;
use crate::outbox::Responder;
use crate::strings;

use super::Session;
use super::asker::Asker;
use super::attachments::Attachments;
use super::compaction::Asked;
use super::deferred::DeferredAction;
use super::extensions::Saying;
use super::mcp::Room;
use super::queue::queued_id;

impl Session {
    pub(super) async fn prompt(&mut self, responder: Responder<Accepted>, mut params: PromptParams) {
        let faults = self.extensions.guards.faults();
        if !faults.is_empty() && !self.agent.options.is_attended {
            let error = strings::guards_missing(&faults.join("\n"));
            return responder.refuse(error).await;
        }
        self.tools.processes().allow_wakeups();
        let Some(responder) = self.run_command(responder, &params.message) else {
            return;
        };
        let room = Room {
            dir: self.agent.mcp.tmp_dir.clone(),
            shrink: self.agent.settings.images.auto_resize,
        };
        let Some((responder, given)) = self.mcp.ask_prompt(responder, params, room).await else {
            return;
        };
        params = given;
        let (attachments, images) = (
            std::mem::take(&mut params.attachments),
            std::mem::take(&mut params.images),
        );
        match Attachments::new(attachments, images) {
            Ok(enclosed) => self.say(Saying::new(responder, params, enclosed)).await,
            Err(error) => responder.refuse(error).await,
        }
    }

    /// Steering and follow-ups: queued also when nothing is under way, unless extensions deal with them. Their slash commands
    /// cannot wait in a queue (pi-core.md 1.7).
    pub(super) async fn enqueue(
        &mut self,
        responder: Responder<Accepted>,
        kind: QueueKind,
        params: MessageParams,
    ) {
        if let Some(command) = self.extensions.links.command(&params.message) {
            return responder.refuse(strings::not_queueable(&command.name)).await;
        }
        self.say(Saying::queued(
            responder,
            params.message,
            params.images.into(),
            kind,
        ))
        .await;
    }

    /// The single queue of older clients: steering that skips the remaining calls of a turn (dialects.md 5, row 14).
    pub(super) async fn queue_message(&mut self, params: MessageParams) -> Result<Accepted, String> {
        let text = self.expand(&params.message).await;
        self.push(QueueKind::Steering, text, params.images.into(), true)
            .await
    }

    pub(super) async fn push(
        &mut self,
        kind: QueueKind,
        text: String,
        enclosed: Attachments,
        interrupts: bool,
    ) -> Result<Accepted, String> {
        if self.machine.queues().len() >= limits::QUEUED {
            return Err(strings::queue_full(limits::QUEUED));
        }
        let queued = Queued {
            message: Arc::new(enclosed.message(text.clone())),
            text,
            interrupts,
        };
        self.drive(Input::Enqueue(kind, queued)).await;
        Ok(Accepted {
            disposition: Disposition::Queued,
            id: Some(queued_id(self.machine.queues().newest())),
        })
    }

    pub(super) async fn clear_queue(&mut self) -> Queues {
        let (steering, follow_up) = self.machine.queues().texts();
        self.drive(Input::ClearQueue).await;
        Queues { steering, follow_up }
    }

    pub(super) async fn abort(&mut self, responder: Responder<()>) {
        self.withdraw_sayings().await;
        self.mcp.withdraw_prompt().await;
        self.extensions.providers.end_logins().await;
        self.drive(Input::Abort).await;
        self.defer(DeferredAction::Respond(responder));
    }

    pub(super) async fn abort_and_prompt(&mut self, responder: Responder<Accepted>, params: MessageParams) {
        let MessageParams { message, images } = params;
        self.drive(Input::Abort).await;
        self.defer(DeferredAction::Prompt(
            responder,
            PromptParams {
                message,
                images,
                attachments: Vec::new(),
                streaming_behavior: None,
                limits: None,
                fallback_models: None,
                output_schema: None,
            },
        ));
    }

    pub(super) async fn compact(&mut self, responder: Responder<CompactionResult>, params: CompactParams) {
        self.drive(Input::Abort).await;
        self.defer(DeferredAction::Compact(Asked {
            asker: Asker::Client(responder),
            instructions: params.custom_instructions,
        }));
    }

    /// Carries out skill and template calls in what the user typed.
    pub(super) async fn expand(&self, text: &str) -> String {
        let expanded = self.workspace.resources.expand(text);
        if let Some(problem) = expanded.problem {
            self.outbox.notice("warning", problem.to_string()).await;
        }
        expanded.text
    }

    /// Begins a run without a command.
    pub(super) async fn begin_run(&mut self, messages: Vec<Arc<Message>>) {
        self.extensions.forget_prompt();
        self.hear();
        let messages = self.system_message().into_iter().chain(messages).collect();
        let full = self.context_is_full();
        self.tools.set_output(None);
        self.drive(Input::Prompt {
            messages,
            full,
            limits: None,
            wants_result: false,
        })
        .await;
    }

    /// `continue`: one more request after a run that died. Whether one did is decided in `agent`.
    pub(super) async fn resume(&mut self, responder: Responder<Accepted>) {
        let refusal = if !self.machine.is_idle() {
            Some(strings::CONTINUE_BUSY.to_owned())
        } else if !self.machine.can_continue() {
            Some(strings::NOTHING_TO_CONTINUE.to_owned())
        } else {
            self.check_model().err()
        };
        if let Some(refusal) = refusal {
            responder.refuse(refusal).await;
            return;
        }
        responder.respond(Ok(Accepted::new(Disposition::Started))).await;
        self.hear();
        let full = self.context_is_full();
        self.drive(Input::Continue { full }).await;
    }
}
