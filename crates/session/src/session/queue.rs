//! Queued messages, one by one: listed, edited, taken out. How they get into the queues is in `prompt_delivery`, when
//! they leave them is decided in `agent`.

use agent::{Machine, QueueKind, Queued};
use wire::message::UserContent;
use wire::reply::{QueueItem, QueueItems, QueuedKind, Queues};
use wire::{CustomMessage, ImageContent, Message, UserBlock, UserMessage};

use crate::{limits, strings};

use super::attachments::is_attached;

/// What clients call a queued message.
pub(super) fn queued_id(number: u64) -> String {
    format!("q{number}")
}

/// The reply of `get_queue`.
pub(super) fn listing(machine: &Machine) -> QueueItems {
    let items = machine.queues().items().map(|(number, kind, item)| QueueItem {
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

/// The texts that wait, as `queue_update` shows them; none when there are none.
pub(super) fn texts(machine: &Machine) -> Option<Queues> {
    let (steering, follow_up) = machine.queues().texts();
    let queues = Queues { steering, follow_up };
    (queues != Queues::default()).then_some(queues)
}

/// A message that waits, with its number.
pub(super) fn queued(machine: &Machine, id: &str) -> Result<(u64, Queued), String> {
    let mut items = machine.queues().items();
    let found = items.find(|(number, _, _)| queued_id(*number) == id);
    found
        .map(|(number, _, item)| (number, item.clone()))
        .ok_or_else(|| strings::not_queued(id))
}

/// The message with another text; what came with it stays.
pub(super) fn reworded(message: &Message, text: &str) -> Message {
    let reworded = |content: &UserContent| {
        let attached = content.to_blocks().into_iter().filter(is_attached);
        UserContent::Blocks(std::iter::once(UserBlock::text(text)).chain(attached).collect())
    };
    match message {
        Message::User(user) => Message::User(UserMessage {
            content: reworded(&user.content),
            ..user.clone()
        }),
        Message::Custom(custom) => Message::Custom(CustomMessage {
            content: reworded(&custom.content),
            ..custom.clone()
        }),
        // Nothing else is queued.
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

/// Checks that there is room for one more of what waits.
pub(super) fn room_for(waiting: usize) -> Result<(), String> {
    if waiting >= limits::QUEUED {
        return Err(strings::queue_full(limits::QUEUED));
    }
    Ok(())
}
