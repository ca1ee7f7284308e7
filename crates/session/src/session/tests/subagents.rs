//! Calls of `task`, with a session of the sub-agent that the test plays.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agent::{Prepared, TASK_TOOL, ToolInput};
use serde_json::json;
use tokio::sync::mpsc;
use wire::state::PermissionMode;
use wire::{RunLimits, SessionCommand, ToolCall};

use super::super::dialogs::Dialogs;
use super::super::tool_calls::{CallUpdate, OpenSubagent, OpenedSubagent, TaskOwner, ToolCalls};
use super::stage::CoreStage;
use crate::limits;
use crate::requests::SessionRequest;

/// What a session lends to a call.
fn owner(stage: &CoreStage, dialogs: &Dialogs, open: mpsc::Sender<OpenSubagent>) -> TaskOwner {
    let core = &stage.core;
    TaskOwner {
        agent: Arc::clone(&core.agent),
        tools: Vec::new(),
        mode: PermissionMode::Ask,
        model: core.conversation.choice.model.clone(),
        thinking: core.conversation.choice.thinking,
        ui: dialogs.ui(),
        outbox: core.outbox.clone(),
        limits: RunLimits::default(),
        one_by_one: false,
        account: None,
        file: None,
        open,
    }
}

fn task() -> ToolCall {
    let arguments = json!({"description": "look", "prompt": "Look at it."});
    ToolCall {
        id: "c1".to_owned(),
        name: TASK_TOOL.to_owned(),
        arguments: arguments.as_object().unwrap().clone(),
        ..ToolCall::default()
    }
}

/// Starts a call of `task`, and returns what it wants to open.
fn start(stage: &mut CoreStage) -> (ToolCalls, mpsc::Receiver<OpenSubagent>) {
    let dialogs = Dialogs::new(None);
    let (open, wanted) = mpsc::channel(1);
    let owner = owner(stage, &dialogs, open);
    let core = &mut stage.core;
    let mut environment = core.environment();
    environment.task_owner = Some(Box::new(owner));
    let mut calls = ToolCalls::new();
    assert!(matches!(calls.prepare(&core.tools, 0, &task()), Prepared::Run));
    calls.run(0, environment);
    (calls, wanted)
}

#[tokio::test]
async fn mode_change_reaches_pending_subagent() {
    let mut stage = CoreStage::new();
    let (_calls, mut wanted) = start(&mut stage);
    // The task of the call has not run yet.
    stage.core.tools.subagents().set_mode(PermissionMode::ReadOnly);
    let mut wanted = wanted.recv().await.unwrap();
    let opened = OpenedSubagent {
        file: None,
        model: "offline/script".to_owned(),
    };
    assert!(wanted.reply.send(Ok(opened)).is_ok());
    // Before the prompt.
    match wanted.requests.next(false).await {
        Some(SessionRequest::Command(_, SessionCommand::SetPermissionMode(params))) => {
            assert_eq!(params.mode, PermissionMode::ReadOnly);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn subagent_with_full_queue_loses_its_requests() {
    let mut stage = CoreStage::new();
    let (mut calls, mut wanted) = start(&mut stage);
    let core = &stage.core;
    let OpenSubagent {
        mut requests,
        outbox,
        reply,
        ..
    } = wanted.recv().await.unwrap();
    let opened = OpenedSubagent {
        file: None,
        model: "offline/script".to_owned(),
    };
    assert!(reply.send(Ok(opened)).is_ok());
    let prompt = requests.next(false).await;
    assert!(matches!(
        prompt,
        Some(SessionRequest::Command(_, SessionCommand::Prompt(_)))
    ));
    // The session takes no more requests, and one mode is too many for its queue.
    for _ in 0..=limits::MAILBOX {
        core.tools.subagents().set_mode(PermissionMode::ReadOnly);
    }
    for _ in 0..limits::MAILBOX {
        assert!(requests.next(false).await.is_some());
    }
    // With a turn of the runtime in between, which lets the channel answer at once.
    tokio::task::yield_now().await;
    let mut context = Context::from_waker(Waker::noop());
    let mut end = std::pin::pin!(requests.next(false));
    assert!(matches!(end.as_mut().poll(&mut context), Poll::Ready(None)));
    // So the session ends, and with it the call.
    drop(outbox);
    loop {
        let report = calls.next().await;
        if let Some((_, CallUpdate::Input(ToolInput::Done { is_error, .. }))) = calls.accept(report) {
            assert!(is_error);
            break;
        }
    }
}
