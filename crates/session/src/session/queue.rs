//! Queued messages, one by one: listed, edited, taken out. How they get into the queues is in `prompting`, when they leave
//! them is decided in `agent`.

use std::sync::Arc;

use agent::{Input, QueueKind, Queued};
use wire::command::{EditQueuedParams, RemoveQueuedParams};
use wire::message::UserContent;
use wire::reply::{QueueItem, QueueItems, QueuedKind, Queues};
use wire::{ImageContent, Message, UserBlock, UserMessage};

use crate::strings;

use super::Session;

/// What clients call a queued message.
pub(super) fn queued_id(number: u64) -> String {
    format!("q{number}")
}

impl Session {
    pub(super) fn get_queue(&self) -> QueueItems {
        let items = self
            .machine
            .queues()
            .items()
            .map(|(number, kind, item)| QueueItem {
                id: queued_id(number),
                kind: match kind {
                    QueueKind::Steering => QueuedKind::Steer,
                    QueueKind::FollowUp => QueuedKind::FollowUp,
                },
                text: item.text.clone(),
                images: images(&item.message).count(),
            });
        QueueItems {
            items: items.collect(),
        }
    }

    /// The texts that wait; none when there are none.
    pub(super) fn queued_texts(&self) -> Option<Queues> {
        let mut queues = Queues::default();
        for (_, kind, item) in self.machine.queues().items() {
            match kind {
                QueueKind::Steering => queues.steering.push(item.text.clone()),
                QueueKind::FollowUp => queues.follow_up.push(item.text.clone()),
            }
        }
        (queues != Queues::default()).then_some(queues)
    }

    pub(super) async fn edit_queued(&mut self, params: EditQueuedParams) -> Result<(), String> {
        let text = self.expand(&params.message).await;
        let (number, old) = self.queued(&params.queued_id)?;
        let queued = Queued {
            message: Arc::new(reworded(&old.message, &text)),
            text,
            interrupts: old.interrupts,
        };
        self.drive(Input::EditQueued(number, queued)).await;
        Ok(())
    }

    pub(super) async fn remove_queued(&mut self, params: RemoveQueuedParams) -> Result<(), String> {
        let (number, _) = self.queued(&params.queued_id)?;
        self.drive(Input::RemoveQueued(number)).await;
        Ok(())
    }

    /// A message that waits, with its number.
    fn queued(&self, id: &str) -> Result<(u64, Queued), String> {
        let mut items = self.machine.queues().items();
        let found = items.find(|(number, _, _)| queued_id(*number) == id);
        found
            .map(|(number, _, item)| (number, item.clone()))
            .ok_or_else(|| strings::not_queued(id))
    }
}

/// The message with another text; what came with it stays.
fn reworded(message: &Message, text: &str) -> Message {
    match message {
        Message::User(user) => {
            let mut blocks = user.content.to_blocks();
            // The text comes first.
            if let Some(first) = blocks.first_mut() {
                *first = UserBlock::text(text);
            }
            Message::User(UserMessage {
                content: UserContent::Blocks(blocks),
                ..user.clone()
            })
        }
        other => other.clone(),
    }
}

fn images(message: &Message) -> impl Iterator<Item = &ImageContent> {
    let blocks = match message {
        Message::User(user) => match &user.content {
            UserContent::Blocks(blocks) => blocks.as_slice(),
            UserContent::Text(_) => &[],
        },
        _ => &[],
    };
    blocks.iter().filter_map(|block| match block {
        UserBlock::Image(image) => Some(image),
        UserBlock::Text(_) => None,
    })
}
