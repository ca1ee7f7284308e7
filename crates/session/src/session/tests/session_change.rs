//! Changes of the session: what extensions are asked, and what becomes of the file.

use std::path::PathBuf;

use serde_json::{Value, json};
use wire::command::{NewSessionParams, TodosParams};
use wire::event::ChangeReason;
use wire::{AssistantMessage, EntryBody, Message};

use super::super::change_request::{Change, ChangeAsker, question, word};
use super::super::{session_replacement, todos};
use super::stage::DriverStage;
use super::{log, user};
use crate::limits;
use crate::outbox::{ClientId, Origin, Responder, outbox};

fn fork(entry: &str) -> Change {
    Change::Fork {
        entry: entry.to_owned(),
        before: None,
        text: String::new(),
        keeps_messages: false,
    }
}

fn changes() -> Vec<Change> {
    vec![
        Change::New(NewSessionParams::default(), Vec::new()),
        Change::NewIn(PathBuf::from("/dir")),
        Change::Switch(PathBuf::from("/other.jsonl"), None),
        fork("e1"),
        Change::At("e2".to_owned()),
        Change::Clone("e3".to_owned()),
        Change::Reload,
    ]
}

#[test]
fn extensions_are_asked_before_each_change() {
    let asked: Vec<Option<Value>> = changes()
        .iter()
        .map(|change| question(change).map(|(_, event)| event))
        .collect();
    let switch = "session_before_switch";
    let at = |entry: &str, position: &str| {
        Some(json!({"type": "session_before_fork", "entryId": entry, "position": position}))
    };
    assert_eq!(
        asked,
        [
            Some(json!({"type": switch, "reason": "new"})),
            Some(json!({"type": switch, "reason": "new"})),
            Some(json!({"type": switch, "reason": "resume", "targetSessionFile": "/other.jsonl"})),
            at("e1", "before"),
            at("e2", "at"),
            at("e3", "at"),
            None,
        ]
    );
}

#[test]
fn question_has_the_name_of_its_event() {
    for change in changes() {
        if let Some((name, event)) = question(&change) {
            assert_eq!(event["type"], name);
        }
    }
}

#[test]
fn reload_alone_keeps_file_and_shells() {
    for change in changes() {
        let is_reload = matches!(change, Change::Reload);
        assert_eq!(change.ends_shells(), !is_reload, "{}", word(&change));
        assert_eq!(change.leaves_file(), !is_reload, "{}", word(&change));
        assert_eq!(change.reason().is_none(), is_reload, "{}", word(&change));
    }
}

#[test]
fn clients_and_extensions_know_different_reasons() {
    let known: Vec<(&str, Option<ChangeReason>)> = changes()
        .iter()
        .map(|change| (word(change), change.reason()))
        .collect();
    assert_eq!(
        known,
        [
            ("new", Some(ChangeReason::New)),
            ("new", Some(ChangeReason::New)),
            ("resume", Some(ChangeReason::Switch)),
            ("fork", Some(ChangeReason::Fork)),
            ("fork", Some(ChangeReason::Fork)),
            ("fork", Some(ChangeReason::Fork)),
            ("reload", None),
        ]
    );
}

#[test]
fn only_message_of_user_is_forked_at() {
    let mut log = log(None);
    let said = log.append(EntryBody::message(user("first"))).unwrap();
    let answer = AssistantMessage::begin("api", "test", "a", 1);
    let answer = log
        .append(EntryBody::message(std::sync::Arc::new(Message::Assistant(
            answer,
        ))))
        .unwrap();
    let again = log.append(EntryBody::message(user("second"))).unwrap();
    assert!(Change::fork(&answer).is_none());
    let forked = |entry: &wire::Entry| match Change::fork(entry) {
        Some(Change::Fork {
            entry, before, text, ..
        }) => (entry, before, text),
        _ => panic!("no fork"),
    };
    assert_eq!(forked(&said), (said.id.clone(), None, "first".to_owned()));
    assert_eq!(
        forked(&again),
        (again.id.clone(), Some(answer.id.clone()), "second".to_owned())
    );
}

#[tokio::test]
async fn fork_and_branch_are_told_apart() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "branch",
    };
    let asker = ChangeAsker::Fork(Responder::new(origin, &outbox));
    assert!(asker.asked("branch") && !asker.asked("fork"));
    assert!(!ChangeAsker::Extension(None).asked("branch"));
}

#[tokio::test]
async fn fork_that_keeps_messages_keeps_todos() {
    let reply = |text: &str| json!({"stream": [{"text": text}]});
    let mut stage = DriverStage::new(&[reply("one"), reply("two")]);
    stage.prompt("first").await;
    stage.settle().await;
    let params = TodosParams {
        phases: Some(json!([{"name": "Build", "tasks": [{"content": "compile"}]}])),
    };
    let (_, list) = todos::edit(&params).unwrap();
    let core = &mut stage.driver.core;
    let list = core.conversation.log.append(list, &core.outbox).await.unwrap();
    stage.prompt("second").await;
    stage.settle().await;
    let fork = Change::Fork {
        entry: "e1".to_owned(),
        before: Some(list.id.clone()),
        text: String::new(),
        keeps_messages: true,
    };
    assert!(
        session_replacement::make(&mut stage.driver, fork, None)
            .await
            .is_ok()
    );
    let machine = &stage.driver.core.machine;
    assert_eq!(machine.messages().len(), 4);
    assert_eq!(machine.todos().phases().len(), 1, "the file has the list");
}
