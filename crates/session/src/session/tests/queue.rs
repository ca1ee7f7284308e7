//! Queued messages as clients see and edit them.

use std::sync::Arc;

use agent::{Input, Machine, QueueKind, Queued};
use wire::message::UserContent;
use wire::reply::QueuedKind;
use wire::{ImageContent, Message, UserBlock, UserMessage};

use super::super::attachments::Attachments;
use super::super::queue::{listing, queued, queued_id, reworded, room_for, texts};
use super::user;
use crate::{limits, strings};

fn image() -> UserBlock {
    UserBlock::Image(ImageContent {
        data: "QUJD".to_owned(),
        mime_type: "image/png".to_owned(),
        extra: wire::Extra::default(),
    })
}

fn with_image(text: &str) -> Message {
    Message::User(UserMessage {
        content: UserContent::Blocks(vec![UserBlock::text(text), image()]),
        timestamp: 1,
        extra: wire::Extra::default(),
    })
}

/// A machine with these messages in its queues.
fn machine(messages: &[(QueueKind, Message)]) -> Machine {
    let mut machine = Machine::default();
    for (kind, message) in messages {
        let text = match message {
            Message::User(user) => user.content.text(),
            other => panic!("{other:?}"),
        };
        let item = Queued {
            text,
            message: Arc::new(message.clone()),
            interrupts: false,
        };
        machine.step(Input::Enqueue(*kind, item), 0, &mut Vec::new());
    }
    machine
}

#[test]
fn listed_queue_counts_images() {
    let machine = machine(&[
        (QueueKind::FollowUp, with_image("later")),
        (QueueKind::Steering, Message::user("now", 1)),
    ]);
    let listed: Vec<(QueuedKind, String, usize)> = listing(&machine)
        .items
        .into_iter()
        .map(|item| (item.kind, item.text, item.images))
        .collect();
    assert_eq!(
        listed,
        [
            (QueuedKind::Steer, "now".to_owned(), 0),
            (QueuedKind::FollowUp, "later".to_owned(), 1)
        ]
    );
}

#[test]
fn queued_message_is_found_by_its_listed_id() {
    let machine = machine(&[
        (QueueKind::Steering, Message::user("one", 1)),
        (QueueKind::FollowUp, Message::user("two", 1)),
    ]);
    for item in listing(&machine).items {
        let (number, found) = queued(&machine, &item.id).unwrap();
        assert_eq!((found.text, queued_id(number)), (item.text, item.id));
    }
    for unknown in ["q99", "1", "", "Q1"] {
        assert_eq!(
            queued(&machine, unknown).err(),
            Some(strings::not_queued(unknown))
        );
    }
}

#[test]
fn empty_queues_have_no_texts() {
    assert_eq!(texts(&Machine::default()), None);
    let machine = machine(&[(QueueKind::FollowUp, Message::user("later", 1))]);
    let texts = texts(&machine).unwrap();
    assert_eq!(
        (texts.steering.len(), texts.follow_up),
        (0, vec!["later".to_owned()])
    );
}

#[test]
fn message_of_extension_is_in_no_snapshot() {
    let mut machine = machine(&[(QueueKind::Steering, Message::user("now", 1))]);
    let note = serde_json::json!({"role": "custom", "customType": "note", "content": "hidden"});
    let item = Queued {
        text: String::new(),
        message: Arc::new(Message::from_json(&note.to_string()).unwrap()),
        interrupts: false,
    };
    machine.step(Input::Enqueue(QueueKind::Steering, item), 0, &mut Vec::new());
    assert_eq!(texts(&machine).unwrap().steering, ["now"]);
}

#[test]
fn reworded_message_keeps_its_images() {
    let Message::User(message) = reworded(&with_image("before"), "after") else {
        panic!("no message of the user");
    };
    assert_eq!(message.content.to_blocks(), [UserBlock::text("after"), image()]);
    let Message::User(message) = reworded(&user("before"), "after") else {
        panic!("no message of the user");
    };
    assert_eq!(message.content.text(), "after");
    let custom =
        serde_json::json!({"role": "custom", "customType": "note", "content": "before", "display": true});
    let Message::Custom(message) = reworded(&Message::from_json(&custom.to_string()).unwrap(), "after")
    else {
        panic!("no message of an extension");
    };
    assert_eq!(message.content.text(), "after");
}

#[test]
fn reworded_message_keeps_its_documents() {
    let document = serde_json::json!({"type": "document", "fileName": "n.txt", "extractedText": "Line 7"});
    let image = serde_json::json!({"type": "image", "mimeType": "image/png", "content": "QUJD"});
    let attached = Attachments::new(vec![document, image], Vec::new()).unwrap();
    let Message::User(before) = attached.message("before".to_owned()) else {
        panic!("no message of the user");
    };
    let mut blocks = before.content.to_blocks();
    blocks[0] = UserBlock::text("after");
    let Message::User(after) = reworded(&Message::User(before), "after") else {
        panic!("no message of the user");
    };
    assert_eq!(after.content.to_blocks(), blocks);
}

#[test]
fn full_queue_has_no_room() {
    assert_eq!(room_for(limits::QUEUED - 1), Ok(()));
    assert_eq!(room_for(limits::QUEUED), Err(strings::queue_full(limits::QUEUED)));
}
