//! Actions that wait for the session to be idle.

use agent::{Condition, Order, Readiness};
use serde_json::json;
use wire::SessionCommand;
use wire::command::{NewSessionParams, NoParams, PromptParams};

use super::super::change_request::{Change, ChangeAsker};
use super::super::deferred::{DeferredAction, DeferredActions, defer};
use super::super::user_shells::UserShells;
use crate::limits;
use crate::outbox::{ClientId, Origin, Responder, outbox};

fn ready() -> Readiness {
    Readiness {
        is_idle: true,
        is_loading: false,
        runs_shells: false,
        is_answering: false,
    }
}

fn change() -> DeferredAction {
    DeferredAction::Change(
        ChangeAsker::Extension(None),
        Change::New(NewSessionParams::default(), Vec::new()),
    )
}

#[tokio::test]
async fn nothing_is_deferred_without_action() {
    let (mut waiting, mut shells) = (DeferredActions::default(), UserShells::new());
    defer(&mut waiting, &mut shells, None);
    assert!(waiting.is_empty() && !waiting.holds());
}

#[tokio::test]
async fn session_change_waits_for_shells_to_end() {
    assert_eq!(change().rules(), (Condition::ShellsEnded, Order::Holds));
    let reload = DeferredAction::Change(ChangeAsker::Extension(None), Change::Reload);
    assert_eq!(
        reload.rules(),
        (Condition::Idle, Order::Holds),
        "it keeps the commands"
    );
    let (mut waiting, mut shells) = (DeferredActions::default(), UserShells::new());
    defer(&mut waiting, &mut shells, change());
    assert!(waiting.holds());
    let running = Readiness {
        runs_shells: true,
        ..ready()
    };
    assert!(waiting.next(running).is_none());
    assert!(waiting.next(ready()).is_some());
}

#[tokio::test]
async fn reload_answer_comes_before_held_commands() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "reload_resources",
    };
    let (mut waiting, mut shells) = (DeferredActions::default(), UserShells::new());
    let held = SessionCommand::GetState(NoParams::default());
    defer(
        &mut waiting,
        &mut shells,
        DeferredAction::Held(origin.clone(), Box::new(held)),
    );
    let reloaded = DeferredAction::Reloaded(Responder::new(origin, &outbox));
    defer(&mut waiting, &mut shells, reloaded);
    assert!(matches!(waiting.next(ready()), Some(DeferredAction::Reloaded(_))));
    assert!(matches!(waiting.next(ready()), Some(DeferredAction::Held(..))));
}

#[tokio::test]
async fn waiting_extension_holds_no_command() {
    let (mut waiting, mut shells) = (DeferredActions::default(), UserShells::new());
    defer(&mut waiting, &mut shells, DeferredAction::Idle(Some(1)));
    assert!(!waiting.holds() && waiting.len() == 1);
    let busy = Readiness {
        is_idle: false,
        ..ready()
    };
    assert!(waiting.next(busy).is_none());
}

#[tokio::test]
async fn waiting_extension_does_not_keep_session_open() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "abort",
    };
    assert!(!DeferredAction::Idle(Some(1)).is_owed());
    assert!(DeferredAction::Respond(Responder::new(origin, &outbox)).is_owed());
    assert!(change().is_owed());
}

#[tokio::test]
async fn held_command_does_not_wait_for_run() {
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "get_state",
    };
    let state = SessionCommand::GetState(NoParams::default());
    let (mut waiting, mut shells) = (DeferredActions::default(), UserShells::new());
    for action in [
        DeferredAction::Idle(Some(1)),
        DeferredAction::Held(origin, Box::new(state)),
    ] {
        defer(&mut waiting, &mut shells, action);
    }
    let running = Readiness {
        is_idle: false,
        ..ready()
    };
    let loading = Readiness {
        is_loading: true,
        ..running
    };
    assert!(waiting.next(loading).is_none());
    assert!(matches!(waiting.next(running), Some(DeferredAction::Held(..))));
    assert!(waiting.next(running).is_none(), "the extension waits for the run");
}

#[tokio::test]
async fn prompt_of_extension_waits_for_command_answer() {
    let run = DeferredAction::Run(Vec::new());
    assert_eq!(run.rules(), (Condition::CommandAnswered, Order::Passes));
    let (mut waiting, mut shells) = (DeferredActions::default(), UserShells::new());
    defer(&mut waiting, &mut shells, run);
    let answering = Readiness {
        is_answering: true,
        ..ready()
    };
    assert!(waiting.next(answering).is_none());
    assert!(matches!(waiting.next(ready()), Some(DeferredAction::Run(_))));
}

fn prompt() -> PromptParams {
    serde_json::from_value(json!({"message": "hi"})).unwrap()
}

#[tokio::test]
async fn prompt_after_abort_waits_until_extensions_are_loaded() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "abort_and_prompt",
    };
    let prompt = DeferredAction::Prompt(Responder::new(origin, &outbox), prompt());
    assert_eq!(prompt.rules(), (Condition::Loaded, Order::Holds));
}

#[tokio::test]
async fn abort_stops_waiting_work_and_nothing_else() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let origin = |command: &'static str| Origin {
        client: ClientId::default(),
        id: None,
        command,
    };
    let held = |command: SessionCommand| DeferredAction::Held(origin(command.name()), Box::new(command));
    let (mut waiting, mut shells) = (DeferredActions::default(), UserShells::new());
    for action in [
        held(SessionCommand::GetCommands(NoParams::default())),
        held(SessionCommand::Prompt(prompt())),
        DeferredAction::Respond(Responder::new(origin("abort"), &outbox)),
        held(SessionCommand::Continue(NoParams::default())),
        DeferredAction::Run(Vec::new()),
        DeferredAction::Prompt(Responder::new(origin("abort_and_prompt"), &outbox), prompt()),
        change(),
    ] {
        defer(&mut waiting, &mut shells, action);
    }
    assert_eq!(waiting.take(DeferredAction::ends_with_abort).len(), 4);
    assert!(matches!(
        waiting.next(ready()),
        Some(DeferredAction::Held(
            Origin {
                command: "get_commands",
                ..
            },
            _
        ))
    ));
    assert!(matches!(waiting.next(ready()), Some(DeferredAction::Respond(_))));
    assert!(matches!(waiting.next(ready()), Some(DeferredAction::Change(..))));
}

#[tokio::test]
async fn held_command_waits_until_extensions_are_loaded() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command: "get_state",
    };
    let state = SessionCommand::GetState(NoParams::default());
    let reloaded = DeferredAction::Reloaded(Responder::new(origin.clone(), &outbox));
    assert_eq!(reloaded.rules(), (Condition::Loaded, Order::Holds));
    let (mut waiting, mut shells) = (DeferredActions::default(), UserShells::new());
    defer(
        &mut waiting,
        &mut shells,
        DeferredAction::Held(origin, Box::new(state)),
    );
    let loading = Readiness {
        is_loading: true,
        ..ready()
    };
    assert!(waiting.next(loading).is_none());
    assert!(matches!(waiting.next(ready()), Some(DeferredAction::Held(..))));
}
