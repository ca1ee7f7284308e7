//! The component without a process. The black-box tests run it with real extension processes.

use std::time::Duration;

use extensions::ProcessError;
use extensions::line::{Command, Provider, Registered};
use serde_json::{Value, json};
use wire::Reply;
use wire::reply::CommandStage;

use agent::HookPoint;

use super::super::asker::Asker;
use super::custom_message::custom;
use super::{
    ClientRequest, Continuation, ExtensionEvent, ExtensionLinks, ExtensionProviders, Extensions, LoadAction,
};
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

fn none() -> Extensions {
    Extensions::new(
        Vec::new(),
        crate::hooks::Hooks::new(config::hooks::Finding::default()),
    )
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
async fn extensions_absent_leave_session_free() {
    let mut extensions = none();
    assert!(
        extensions
            .loading
            .begin(&mut extensions.links, true)
            .iter()
            .all(|action| *action == LoadAction::UseProviders)
    );
    let event = tokio::time::timeout(Duration::from_millis(5), extensions.next()).await;
    assert!(event.is_err());
    assert!(
        !extensions.has_listener("tool_call")
            && !extensions.holds_requests()
            && !extensions.has_open_answers()
    );
    assert!(!extensions.is_opening() && extensions.is_at_rest());
}

#[tokio::test]
async fn commands_wait_for_session_changes_only() {
    let mut extensions = none();
    let request = ClientRequest::Command(responder(), "x".to_owned(), CommandStage::Whole);
    extensions.client_requests.wait(request, std::future::pending());
    assert!(extensions.has_open_answers() && !extensions.holds_requests());
    let params = wire::command::NavigateParams::default();
    let continuation = Continuation::Move(Asker::Client(responder()), params);
    extensions.questions.ask(continuation, std::future::pending());
    assert!(extensions.holds_requests());
    extensions.questions.give_up(|_| true);
    extensions.client_requests.refuse_all().await;
    assert!(!extensions.has_open_answers() && !extensions.holds_requests());
}

/// Hooks that the machine waits for.
fn hooks(ticket: u64) -> Continuation {
    Continuation::Hooks(ticket, Box::new(HookPoint::Settle { aborted: false }))
}

#[tokio::test]
async fn hook_answer_reaches_its_question() {
    let mut extensions = none();
    extensions.questions.ask(hooks(1), std::future::pending());
    let failed = async { Err(ProcessError::Gone("x".to_owned())) };
    let number = extensions.questions.ask(hooks(2), failed);
    match extensions.next().await {
        ExtensionEvent::Hook(answered) => {
            assert_eq!(answered.number, number);
            assert!(matches!(answered.answer, Err(ProcessError::Gone(_))));
        }
        _ => panic!("another event"),
    }
    assert!(matches!(
        extensions.questions.take(number),
        Some(Continuation::Hooks(2, _))
    ));
}

#[test]
fn slash_commands_of_same_name_are_numbered() {
    let links = ExtensionLinks {
        registered: vec![
            commands("a.ts", &["one", "three:2"]),
            commands("b.ts", &["one", "two"]),
            commands("c.ts", &["three", "three:1"]),
            commands("d.ts", &["three"]),
        ],
        ..ExtensionLinks::default()
    };
    let found = |text: &str| {
        let command = links.command(text)?;
        Some(format!(
            "{} {} [{}]",
            command.extension, command.name, command.args
        ))
    };
    for (text, expected) in [
        ("/one:1 a b", "a.ts one [a b]"),
        ("/one:2", "b.ts one []"),
        ("/two", "b.ts two []"),
        ("/three:2", "a.ts three:2 []"),
        ("/three:1", "c.ts three []"),
        ("/three:1:2", "c.ts three:1 []"),
        ("/three:3", "d.ts three []"),
    ] {
        assert_eq!(found(text).as_deref(), Some(expected), "{text}");
    }
    for none in ["one", "/one", "/four", "/on", " /one:1", "/"] {
        assert_eq!(found(none), None, "{none}");
    }
}

#[test]
fn provider_part_left_alone_is_reported_once() {
    let extension = |path: &str, config: Value| Registered {
        path: path.to_owned(),
        providers: vec![Provider {
            name: "corp".to_owned(),
            config,
        }],
        ..Registered::default()
    };
    let models =
        |id: &str| json!([{"id": id, "cost": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}}]);
    let whole =
        json!({"baseUrl": "http://x", "apiKey": "k", "api": "openai-completions", "models": models("a")});
    let whole = extension("whole.ts", whole);
    let part = extension("part.ts", json!({"models": models("b")}));
    let mut providers = ExtensionProviders::default();
    let mut failed = |registered: Vec<Registered>| {
        let links = ExtensionLinks {
            registered,
            ..ExtensionLinks::default()
        };
        let change = providers.update(&links, None).unwrap();
        let failures = change.failures.into_iter().map(|failure| failure.path);
        failures.collect::<Vec<_>>()
    };
    assert!(failed(vec![whole.clone(), part.clone()]).is_empty());
    assert_eq!(failed(vec![part.clone()]), ["part.ts"]);
    assert!(failed(vec![part.clone()]).is_empty(), "it was reported");
    assert!(failed(vec![whole, part.clone()]).is_empty());
    assert_eq!(failed(vec![part]), ["part.ts"]);
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
