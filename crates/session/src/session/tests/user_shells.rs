//! Shell commands of the user, run by a real shell.

use std::sync::Arc;

use process::Reaper;
use serde_json::Value;
use tokio::sync::mpsc;
use tools::{Toolbox, ToolsConfig};
use wire::command::BashParams;
use wire::state::BashResult;

use super::super::user_shells::UserShells;
use super::{conversation, events, kinds};
use crate::limits;
use crate::outbox::{ClientId, Origin, Outbox, Outgoing, Responder, outbox};

struct Stage {
    shells: UserShells,
    conversation: super::Conversation,
    outbox: Outbox,
    sent: mpsc::Receiver<Outgoing>,
}

impl Stage {
    fn new() -> Self {
        let (outbox, sent) = outbox(limits::OUTBOX);
        Self {
            shells: UserShells::new(),
            conversation: conversation(None),
            outbox,
            sent,
        }
    }

    async fn run(&mut self, command: &str) {
        let origin = Origin {
            client: ClientId::default(),
            id: Some(serde_json::value::RawValue::from_string("\"c1\"".to_owned()).unwrap()),
            command: "bash",
        };
        let responder: Responder<BashResult> = Responder::new(origin, &self.outbox);
        let params: BashParams = serde_json::from_value(serde_json::json!({"command": command})).unwrap();
        let toolbox = Toolbox::new(ToolsConfig::default(), Reaper::direct());
        self.shells
            .run(responder, params, (toolbox, "/".into()), &self.outbox)
            .await;
    }

    /// Deals with reports until the commands have ended.
    async fn finish(&mut self, is_idle: bool) {
        while self.shells.are_running() {
            let report = self.shells.next().await;
            self.shells
                .accept(report, is_idle, &mut self.conversation, &self.outbox)
                .await;
        }
    }

    /// The outcome of the one response that was sent, and the types of the events before it.
    fn outcome(&mut self) -> (Result<Value, String>, Vec<String>) {
        let mut types = Vec::new();
        while let Ok(outgoing) = self.sent.try_recv() {
            match outgoing {
                Outgoing::Event(event) => {
                    let event = serde_json::to_value(&*event).unwrap();
                    types.push(event["type"].as_str().unwrap().to_owned());
                }
                Outgoing::Response(_, response) => {
                    let outcome = response
                        .outcome
                        .map(|reply| serde_json::to_value(&reply).unwrap());
                    return (outcome, types);
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("no response: {types:?}");
    }
}

#[tokio::test]
async fn idle_command_is_stored_and_heard() {
    let mut stage = Stage::new();
    stage.run("echo one; exit 3").await;
    stage.finish(true).await;
    let (outcome, types) = stage.outcome();
    let result = outcome.unwrap();
    assert_eq!(
        (&result["output"], &result["exitCode"]),
        (&"one\n".into(), &3.into())
    );
    assert_eq!(types.first().unwrap(), "bash_execution_start");
    assert_eq!(types.last().unwrap(), "bash_execution_end");
    assert_eq!(kinds(&stage.conversation.log), ["message"]);
    assert_eq!(stage.conversation.take_unsent_shells().len(), 1);
    assert_eq!(
        stage.conversation.take_unsent_shells().len(),
        0,
        "the model gets it once"
    );
}

#[tokio::test]
async fn command_during_run_is_stored_later() {
    let mut stage = Stage::new();
    stage.run("echo one").await;
    stage.finish(false).await;
    assert!(
        stage.outcome().0.is_ok(),
        "the response does not wait for the run"
    );
    assert!(kinds(&stage.conversation.log).is_empty() && stage.shells.are_busy());
    assert_eq!(
        stage.conversation.take_unsent_shells(),
        Vec::<Arc<wire::Message>>::new()
    );
    assert!(stage.shells.store(&mut stage.conversation, &stage.outbox).await);
    assert_eq!(kinds(&stage.conversation.log), ["message"]);
    assert!(!stage.shells.are_busy());
}

#[tokio::test]
async fn cancelled_commands_end_and_answer() {
    let mut stage = Stage::new();
    stage.run("sleep 60").await;
    stage.shells.cancel();
    stage.finish(true).await;
    let result = stage.outcome().0.unwrap();
    assert_eq!(result["cancelled"], true);
    stage.run("echo after").await;
    stage.finish(true).await;
    let result = stage.outcome().0.unwrap();
    assert_eq!(
        (&result["cancelled"], &result["output"]),
        (&false.into(), &"after\n".into())
    );
}

#[tokio::test]
async fn command_over_limit_is_refused() {
    let mut stage = Stage::new();
    for _ in 0..limits::BASH_RUNNING {
        stage.run("sleep 60").await;
    }
    assert_eq!(events(&mut stage.sent).len(), limits::BASH_RUNNING);
    stage.run("echo too many").await;
    assert!(
        stage
            .outcome()
            .0
            .unwrap_err()
            .contains(&limits::BASH_RUNNING.to_string())
    );
    stage.shells.cancel();
    stage.finish(true).await;
}

#[tokio::test]
async fn numbers_continue_after_eviction() {
    let mut stage = Stage::new();
    stage.shells.continue_from(7);
    stage.run("true").await;
    assert_eq!(events(&mut stage.sent)[0]["bashId"], "b8");
    assert_eq!(stage.shells.made(), 8);
    stage.finish(true).await;
}
