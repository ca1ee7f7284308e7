//! Saying something to the model, now or later, and stopping (pi-core.md 1.7, 1.8, 1.11).

use std::sync::Arc;

use pinion_core::{Input, QueueKind, Queued};
use wire::command::{CompactParams, MessageParams, NavigateParams, PromptParams};
use wire::message::UserContent;
use wire::reply::{Accepted, Disposition, Queues};
use wire::{ImageContent, Message, Reply, UserBlock, UserMessage};

use crate::limits;
use crate::outbox::Origin;
use crate::strings;

use super::Session;
use super::compacting::Asked;
use super::drive::now_ms;
use super::switching::Change;

/// What waits for the session to be idle.
pub(super) enum Later {
    /// The answer to an abort.
    Respond(Origin),
    /// A prompt that ends the run before it.
    Prompt(Origin, PromptParams),
    /// A compaction.
    Compact(Asked),
    /// Another place of the tree.
    Move(Origin, NavigateParams),
    /// Another session.
    Change(Origin, Change),
}

const STARTED: Reply = Reply::Accepted(Accepted {
    disposition: Disposition::Started,
});
const QUEUED: Reply = Reply::Accepted(Accepted {
    disposition: Disposition::Queued,
});

impl Session {
    pub(super) async fn prompt(&mut self, origin: Origin, params: PromptParams) {
        let text = self.expand(&params.message).await;
        if !self.machine.is_idle() {
            let outcome = match params.streaming_behavior.as_deref() {
                None => Err(strings::BUSY.to_owned()),
                Some("followUp" | "follow_up") => self.push(QueueKind::FollowUp, text, params.images).await,
                Some(_) => self.push(QueueKind::Steering, text, params.images).await,
            };
            self.outbox.respond(origin, outcome).await;
            return;
        }
        if let Err(error) = self.agent.check_credentials(&self.model) {
            self.outbox.respond(origin, Err(error)).await;
            return;
        }
        self.outbox.respond(origin, Ok(STARTED)).await;
        self.hear();
        let message = Arc::new(user_message(text, params.images));
        let full = self.context_is_full();
        self.drive(Input::Prompt {
            messages: vec![message],
            full,
        })
        .await;
    }

    pub(super) async fn enqueue(&mut self, kind: QueueKind, params: MessageParams) -> Result<Reply, String> {
        let text = self.expand(&params.message).await;
        self.push(kind, text, params.images).await
    }

    async fn push(
        &mut self,
        kind: QueueKind,
        text: String,
        images: Vec<ImageContent>,
    ) -> Result<Reply, String> {
        if self.machine.queued() >= limits::QUEUED {
            return Err(strings::queue_full(limits::QUEUED));
        }
        let message = Arc::new(user_message(text.clone(), images));
        self.drive(Input::Enqueue(kind, Queued { text, message })).await;
        Ok(QUEUED)
    }

    pub(super) async fn clear_queue(&mut self) -> Reply {
        let (steering, follow_up) = self.machine.queue_texts();
        self.drive(Input::ClearQueue).await;
        Reply::Queues(Queues { steering, follow_up })
    }

    pub(super) async fn abort(&mut self, origin: Origin) {
        self.drive(Input::Abort).await;
        self.later.push_back(Later::Respond(origin));
    }

    pub(super) async fn abort_and_prompt(&mut self, origin: Origin, params: MessageParams) {
        let MessageParams { message, images } = params;
        self.drive(Input::Abort).await;
        self.later.push_back(Later::Prompt(
            origin,
            PromptParams {
                message,
                images,
                streaming_behavior: None,
            },
        ));
    }

    pub(super) async fn compact(&mut self, origin: Origin, params: CompactParams) {
        self.drive(Input::Abort).await;
        self.later.push_back(Later::Compact(Asked {
            origin,
            instructions: params.custom_instructions,
        }));
    }

    /// Carries out skill and template calls in what the user typed.
    async fn expand(&self, text: &str) -> String {
        let expanded = self.resources.expand(text);
        if let Some(problem) = expanded.problem {
            self.notice("warning", problem.to_string()).await;
        }
        expanded.text
    }

    /// Must ordered mail wait? While a session change or a prompt waits for the run before it, what came after it must not
    /// overtake it.
    pub(super) fn holds_mail(&self) -> bool {
        self.later.iter().any(|later| {
            matches!(
                later,
                Later::Prompt(..) | Later::Compact(_) | Later::Move(..) | Later::Change(..)
            )
        })
    }

    /// Does what waited for the session to be idle.
    pub(super) async fn catch_up(&mut self) {
        while self.machine.is_idle() {
            self.unpark().await;
            // Commands of the user belong to the session they were typed in; they are being killed and end in a moment.
            if matches!(self.later.front(), Some(Later::Change(..))) && self.shells.are_running() {
                break;
            }
            match self.later.pop_front() {
                None => break,
                Some(Later::Respond(origin)) => self.outbox.respond(origin, Ok(Reply::Nothing)).await,
                Some(Later::Prompt(origin, params)) => self.prompt(origin, params).await,
                Some(Later::Compact(asked)) => self.compact_now(asked).await,
                Some(Later::Move(origin, params)) => self.move_now(origin, params).await,
                Some(Later::Change(origin, change)) => self.carry_out(origin, change).await,
            }
        }
    }
}

/// A user message: the text first, then the images.
pub(super) fn user_message(text: String, images: Vec<ImageContent>) -> Message {
    let mut blocks = vec![UserBlock::text(text)];
    blocks.extend(images.into_iter().map(UserBlock::Image));
    Message::User(UserMessage {
        content: UserContent::Blocks(blocks),
        timestamp: now_ms(),
        extra: wire::Extra::default(),
    })
}
