//! What is kept of extensions and of questions to them, without a process. The whole way is tested with the real host, from
//! outside the program.

use std::time::Duration;

use door::line::{Command, Registered};
use door::{Answer, DoorError};
use serde_json::{Value, json};
use wire::{Event, Reply};

use super::super::compacting::Asker;
use super::saying::custom;
use super::{Extended, News, Outcome, Then};
use crate::outbox::{ClientId, Origin, Responder, outbox};

/// A responder whose reply is dropped.
fn responder<R: Into<Reply>>() -> Responder<R> {
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "prompt",
    };
    let (outbox, _unread) = outbox(1);
    Responder::new(origin, &outbox)
}

fn none() -> Extended {
    Extended::new(
        Vec::new(),
        crate::hooks::Hooks::new(config::hooks::Finding::default()),
    )
}

fn answer(value: Value) -> Outcome {
    let errors = Vec::new();
    Outcome::Answer(Ok(Answer { value, errors }))
}

/// The next answer, by the number of its question.
async fn told(extended: &mut Extended) -> (u64, Value) {
    match extended.next().await {
        News::Told(told) => match told.outcome {
            Outcome::Answer(answer) => (told.ticket, answer.unwrap().value),
            Outcome::Door(_) => panic!("a door"),
        },
        _ => panic!("something else"),
    }
}

fn commands(path: &str, names: &[&str]) -> Registered {
    let command = |name: &&str| Command {
        name: (*name).to_owned(),
        ..Command::default()
    };
    Registered {
        path: path.to_owned(),
        commands: names.iter().map(command).collect(),
        ..Registered::default()
    }
}

#[tokio::test]
async fn sessions_without_extensions_wait_for_none() {
    let mut extended = none();
    let nothing = tokio::time::timeout(Duration::from_millis(5), extended.next()).await;
    assert!(nothing.is_err());
    assert!(!extended.hear("tool_call") && !extended.holds_mail() && !extended.owes());
    assert!(!extended.is_opening() && !extended.is_telling());
}

#[tokio::test]
async fn answers_carry_their_request_number() {
    let mut extended = none();
    extended.wait(Then::Check(0), std::future::pending());
    extended.wait(Then::Check(1), async { answer(json!("second")) });
    assert_eq!(told(&mut extended).await, (2, json!("second")));
    assert_eq!(extended.waits.len(), 2);
}

#[tokio::test]
async fn abandoned_requests_return_continuations_in_order() {
    let mut extended = none();
    for slot in 0..5 {
        extended.wait(Then::Check(slot), std::future::pending());
    }
    extended.wait(Then::Tell(Event::AgentStart), async { answer(Value::Null) });
    let given = extended.give_up(|then| matches!(then, Then::Check(slot) if *slot != 2));
    let slots: Vec<usize> = given
        .iter()
        .map(|then| match then {
            Then::Check(slot) => *slot,
            _ => panic!("another question"),
        })
        .collect();
    assert_eq!(slots, [0, 1, 3, 4]);
    assert!(extended.is_telling());
    // What was given up answers no more; the other one does.
    assert_eq!(told(&mut extended).await.0, 6);
}

#[tokio::test]
async fn commands_wait_for_session_changes_only() {
    let mut extended = none();
    extended.wait(Then::Command(responder(), "x".to_owned()), std::future::pending());
    assert!(extended.owes() && !extended.holds_mail());
    let params = wire::command::NavigateParams::default();
    extended.wait(
        Then::Move(Asker::Client(responder()), params),
        std::future::pending(),
    );
    assert!(extended.holds_mail());
    extended.give_up(|_| true);
    assert!(!extended.owes() && !extended.holds_mail());
}

#[tokio::test]
async fn failed_request_counts_as_answer() {
    let mut extended = none();
    extended.wait_for(Then::Check(0), Err(DoorError::Gone("x".to_owned())));
    match extended.next().await {
        News::Told(told) => assert!(matches!(told.outcome, Outcome::Answer(Err(DoorError::Gone(_))))),
        _ => panic!("something else"),
    }
}

#[test]
fn slash_command_belongs_to_first_registering_extension() {
    let mut extended = none();
    extended.registered = vec![commands("a.ts", &["one"]), commands("b.ts", &["one", "two"])];
    let found = |text: &str| {
        extended
            .command(text)
            .map(|(path, name, args)| format!("{path} {name} [{args}]"))
    };
    assert_eq!(found("/one a b").unwrap(), "a.ts one [a b]");
    assert_eq!(found("/two").unwrap(), "b.ts two []");
    for none in ["one", "/three", "/on", " /one", "/"] {
        assert_eq!(found(none), None, "{none}");
    }
}

#[test]
fn extension_messages_accept_text_or_blocks() {
    let message =
        custom(&json!({"customType": "kit", "content": "x", "display": true, "details": null})).unwrap();
    let shown = serde_json::to_value(&message).unwrap();
    assert_eq!(
        (&shown["role"], &shown["content"], &shown["display"]),
        (&json!("custom"), &json!("x"), &json!(true))
    );
    assert!(shown.get("details").is_none());
    assert!(custom(&json!({"content": [{"type": "text", "text": "x"}]})).is_ok());
    assert!(custom(&json!({})).is_ok());
    assert!(custom(&json!({"content": 5})).is_err());
}
