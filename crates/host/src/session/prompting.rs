//! Saying something to the model, now or later, and stopping (pi-core.md 1.7, 1.8, 1.11).

use std::sync::Arc;

use pinion_core::{Input, QueueKind, Queued};
use wire::command::{CompactParams, MessageParams, NavigateParams, PromptParams};
use wire::event::CompactionResult;
use wire::reply::{Accepted, Commands, Disposition, Navigated, Queues};
use wire::table::Respond;
use wire::{Message, SessionCommand};

use crate::limits;
use crate::outbox::{Origin, Responder};
use crate::strings;

use super::Session;
use super::compacting::{Asked, Asker};
use super::enclosing::Enclosed;
use super::extensions::Saying;
use super::queueing::queued_id;
use super::switching::{Change, ChangeAsker};

/// What waits for the session to be idle.
pub(super) enum Later {
    /// The answer to an abort.
    Respond(Responder<()>),
    /// A prompt that ends the run before it.
    Prompt(Responder<Accepted>, PromptParams),
    /// A compaction.
    Compact(Asked),
    /// Another place of the tree.
    Move(Asker<Navigated>, NavigateParams),
    /// Another session.
    Change(ChangeAsker, Change),
    /// A command that came while extensions were being loaded.
    Held(Origin, Box<SessionCommand>),
    /// The response to `reload_resources`, which lists what was loaded.
    Reloaded(Responder<Commands>),
    /// Something that an extension says.
    Say(Box<Saying>),
    /// A run that an extension begins.
    Turn(Vec<Arc<Message>>),
    /// A compaction that an extension wants; the id of its call.
    CompactFor(Option<u64>, Option<String>),
    /// An extension waits for the session to be idle.
    Idle(Option<u64>),
}

/// The answer to what starts a run.
pub(super) fn started() -> Accepted {
    Accepted::new(Disposition::Started)
}

impl Session {
    pub(super) async fn prompt(&mut self, responder: Responder<Accepted>, mut params: PromptParams) {
        let Some(responder) = self.run_command(responder, &params.message) else {
            return;
        };
        let Some((responder, given)) = self.ask_prompt(responder, params).await else {
            return;
        };
        params = given;
        let (attachments, images) = (
            std::mem::take(&mut params.attachments),
            std::mem::take(&mut params.images),
        );
        match Enclosed::new(attachments, images) {
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
        if let Some((_, name, _)) = self.extensions.command(&params.message) {
            return responder.refuse(strings::not_queueable(&name)).await;
        }
        self.say(Saying::queued(
            responder,
            params.message,
            params.images.into(),
            kind,
        ))
        .await;
    }

    /// The single queue of older clients: steering that skips what is left of a turn's calls (dialects.md 5, row 14).
    pub(super) async fn queue_message(&mut self, params: MessageParams) -> Result<Accepted, String> {
        let text = self.expand(&params.message).await;
        self.push(QueueKind::Steering, text, params.images.into(), true)
            .await
    }

    pub(super) async fn push(
        &mut self,
        kind: QueueKind,
        text: String,
        enclosed: Enclosed,
        interrupts: bool,
    ) -> Result<Accepted, String> {
        if self.machine.queued() >= limits::QUEUED {
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
            id: Some(queued_id(self.machine.newest_queued())),
        })
    }

    pub(super) async fn clear_queue(&mut self) -> Queues {
        let (steering, follow_up) = self.machine.queue_texts();
        self.drive(Input::ClearQueue).await;
        Queues { steering, follow_up }
    }

    pub(super) async fn abort(&mut self, responder: Responder<()>) {
        self.withdraw_sayings().await;
        self.withdraw_prompt().await;
        self.drive(Input::Abort).await;
        self.later.push_back(Later::Respond(responder));
    }

    pub(super) async fn abort_and_prompt(&mut self, responder: Responder<Accepted>, params: MessageParams) {
        let MessageParams { message, images } = params;
        self.drive(Input::Abort).await;
        self.later.push_back(Later::Prompt(
            responder,
            PromptParams {
                message,
                images,
                attachments: Vec::new(),
                streaming_behavior: None,
            },
        ));
    }

    pub(super) async fn compact(&mut self, responder: Responder<CompactionResult>, params: CompactParams) {
        self.drive(Input::Abort).await;
        self.later.push_back(Later::Compact(Asked {
            asker: Asker::Client(responder),
            instructions: params.custom_instructions,
        }));
    }

    /// Carries out skill and template calls in what the user typed.
    pub(super) async fn expand(&self, text: &str) -> String {
        let expanded = self.resources.expand(text);
        if let Some(problem) = expanded.problem {
            self.notice("warning", problem.to_string()).await;
        }
        expanded.text
    }

    /// Begins a run that nobody asked for.
    async fn begin_run(&mut self, messages: Vec<Arc<Message>>) {
        self.extensions.forget_prompt();
        self.hear();
        let full = self.context_is_full();
        self.drive(Input::Prompt { messages, full }).await;
    }

    /// Must ordered mail wait? While a session change or a prompt waits for the run before it, what came after it must not
    /// overtake it.
    pub(super) fn holds_mail(&self) -> bool {
        self.later.iter().any(|later| {
            matches!(
                later,
                Later::Prompt(..)
                    | Later::Compact(_)
                    | Later::Move(..)
                    | Later::Change(..)
                    | Later::Held(..)
                    | Later::Reloaded(_)
                    | Later::Say(_)
            )
        }) || self.extensions.holds_mail()
            || self.mcp.is_asking()
            // A prompt behind `set_model` is for the new model.
            || self.probes.are_running()
    }

    /// Does what waited for the session to be idle.
    pub(super) async fn catch_up(&mut self) {
        while self.machine.is_idle() && self.agenda.is_empty() && !self.extensions.holds_mail() {
            self.unpark().await;
            // What depends on extensions that are being loaded waits for them, and what came after it, too.
            let is_early = self.extensions.is_opening() || self.mcp.is_connecting();
            if matches!(self.later.front(), Some(Later::Held(..) | Later::Reloaded(_))) && is_early {
                break;
            }
            // Commands of the user belong to the session they were typed in; they are being killed and end in a moment.
            if matches!(self.later.front(), Some(Later::Change(_, change)) if change.ends_shells())
                && self.shells.are_running()
            {
                break;
            }
            if matches!(self.later.front(), Some(Later::Say(_) | Later::Turn(_)))
                && self.extensions.is_answering_first()
            {
                break;
            }
            match self.later.pop_front() {
                None => break,
                Some(Later::Respond(responder)) => responder.respond(Ok(())).await,
                Some(Later::Prompt(responder, params)) => self.prompt(responder, params).await,
                Some(Later::Compact(asked)) => self.compact_now(asked).await,
                Some(Later::Move(asker, params)) => self.move_if_allowed(asker, params).await,
                Some(Later::Change(asker, change)) => self.leave(asker, change).await,
                Some(Later::Held(origin, command)) => command.dispatch(self, origin).await,
                Some(Later::Reloaded(responder)) => responder.respond(Ok(self.commands())).await,
                Some(Later::Say(saying)) => self.say(*saying).await,
                Some(Later::Turn(messages)) => self.begin_run(messages).await,
                Some(Later::CompactFor(id, instructions)) => self.compact_for(id, instructions).await,
                Some(Later::Idle(id)) => self.answer_later(id, Ok(serde_json::Value::Null)),
            }
        }
    }
}
