//! Prompts on their way to a run: refused, queued or begun, with the responses of the client.

use serde_json::{Value, json};
use wire::command::{EditQueuedParams, PromptParams, RemoveQueuedParams};
use wire::table::Respond as _;

use super::super::asker::{Asked, Asker};
use super::super::deferred::DeferredAction;
use super::super::{compaction, model_switch, prompts, shell_commands};
use super::stage::DriverStage;
use super::user;
use crate::outbox::{ClientId, Origin, Outgoing, Responder};
use crate::strings;

fn text(text: &str) -> Value {
    json!({"stream": [{"text": text}]})
}

fn responder<R: Into<wire::Reply>>(stage: &DriverStage, command: &'static str) -> Responder<R> {
    let origin = Origin {
        client: ClientId::default(),
        id: None,
        command,
    };
    Responder::new(origin, &stage.driver.core.outbox)
}

/// The outcomes of the responses that were sent.
fn outcomes(stage: &mut DriverStage) -> Vec<Result<Value, String>> {
    let mut outcomes = Vec::new();
    while let Ok(outgoing) = stage.sent.try_recv() {
        if let Outgoing::Response(_, response) = outgoing {
            outcomes.push(
                response
                    .outcome
                    .map(|reply| serde_json::to_value(&reply).unwrap_or_default()),
            );
        }
    }
    outcomes
}

fn params(value: Value) -> PromptParams {
    serde_json::from_value(value).unwrap()
}

async fn prompt(stage: &mut DriverStage, value: Value) {
    let responder = responder(stage, "prompt");
    prompts::prompt(&mut stage.driver, responder, params(value)).await;
}

#[tokio::test]
async fn idle_prompt_is_stored_then_acknowledged() {
    let mut stage = DriverStage::new(&[text("hello")]);
    prompt(&mut stage, json!({"message": "hi"})).await;
    assert_eq!(outcomes(&mut stage), [Ok(json!({"disposition": "started"}))]);
    assert_eq!(stage.stored(), ["session", "user"]);
    stage.settle().await;
    assert_eq!(stage.stored(), ["session", "user", "assistant"]);
}

#[tokio::test]
async fn prompt_during_run_needs_a_behavior() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    prompt(&mut stage, json!({"message": "again"})).await;
    assert_eq!(outcomes(&mut stage), [Err(strings::BUSY.to_owned())]);
    assert!(stage.driver.core.machine.queues().is_empty());
}

#[tokio::test]
async fn prompt_during_run_is_queued_as_it_says() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    prompt(
        &mut stage,
        json!({"message": "later", "streamingBehavior": "followUp"}),
    )
    .await;
    prompt(
        &mut stage,
        json!({"message": "now", "streamingBehavior": "steer"}),
    )
    .await;
    let queued = Ok(json!({"disposition": "queued"}));
    let outcomes = outcomes(&mut stage);
    let without_id = |outcome: &Result<Value, String>| {
        outcome
            .clone()
            .map(|reply| json!({"disposition": reply["disposition"]}))
    };
    assert_eq!(
        outcomes.iter().map(without_id).collect::<Vec<_>>(),
        [queued.clone(), queued]
    );
    let (steering, follow_up) = stage.driver.core.machine.queues().texts();
    assert_eq!(
        (steering, follow_up),
        (vec!["now".to_owned()], vec!["later".to_owned()])
    );
}

#[tokio::test]
async fn queued_prompt_with_limits_is_refused() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    let value = json!({"message": "x", "streamingBehavior": "steer", "limits": {"maxTurns": 1}});
    prompt(&mut stage, value).await;
    assert_eq!(outcomes(&mut stage), [Err(strings::LIMITS_OF_QUEUED.to_owned())]);
}

#[tokio::test]
async fn unknown_fallback_model_refuses_the_prompt() {
    let mut stage = DriverStage::new(&[text("hello")]);
    prompt(&mut stage, json!({"message": "x", "fallbackModels": ["no/such"]})).await;
    let outcomes = outcomes(&mut stage);
    assert!(
        outcomes[0].as_ref().unwrap_err().contains("no/such"),
        "{outcomes:?}"
    );
    assert!(stage.driver.core.machine.is_idle());
    assert!(stage.stored().is_empty());
}

#[tokio::test]
async fn cleared_queue_returns_its_texts() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    prompt(
        &mut stage,
        json!({"message": "later", "streamingBehavior": "followUp"}),
    )
    .await;
    let queues = prompts::clear_queue(&mut stage.driver).await;
    assert_eq!(queues.follow_up, ["later"]);
    assert!(stage.driver.core.machine.queues().is_empty());
}

#[tokio::test]
async fn queued_message_is_edited_and_removed() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    prompt(
        &mut stage,
        json!({"message": "later", "streamingBehavior": "followUp"}),
    )
    .await;
    let listing = super::super::queue::listing(&stage.driver.core.machine);
    let queued_id = listing.items[0].id.clone();
    let edit = EditQueuedParams {
        queued_id: queued_id.clone(),
        message: "sooner".to_owned(),
    };
    prompts::edit_queued(&mut stage.driver, edit).await.unwrap();
    assert_eq!(stage.driver.core.machine.queues().texts().1, ["sooner"]);
    let remove = RemoveQueuedParams { queued_id };
    prompts::remove_queued(&mut stage.driver, remove.clone())
        .await
        .unwrap();
    assert!(
        prompts::remove_queued(&mut stage.driver, remove).await.is_err(),
        "it is gone"
    );
}

#[tokio::test]
async fn abort_answers_once_the_session_is_idle() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    let responder = responder(&stage, "abort");
    let action = prompts::abort(&mut stage.driver, responder).await;
    assert!(outcomes(&mut stage).is_empty());
    match action {
        DeferredAction::Respond(responder) => responder.respond(Ok(())).await,
        _ => panic!("another action"),
    }
    assert!(outcomes(&mut stage)[0].is_ok());
}

#[tokio::test]
async fn continue_without_failed_run_is_refused() {
    let mut stage = DriverStage::new(&[]);
    let responder = responder(&stage, "continue");
    prompts::resume(&mut stage.driver, responder).await;
    assert_eq!(
        outcomes(&mut stage),
        [Err(strings::NOTHING_TO_CONTINUE.to_owned())]
    );
}

#[tokio::test]
async fn continue_during_run_is_refused() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    let responder = responder(&stage, "continue");
    prompts::resume(&mut stage.driver, responder).await;
    assert_eq!(outcomes(&mut stage), [Err(strings::CONTINUE_BUSY.to_owned())]);
}

#[tokio::test]
async fn compaction_of_short_conversation_is_refused() {
    let mut stage = DriverStage::new(&[text("hello")]);
    let asked = Asked {
        asker: Asker::Client(responder(&stage, "compact")),
        instructions: None,
    };
    compaction::compact_now(&mut stage.driver, asked).await;
    stage.settle().await;
    assert!(outcomes(&mut stage)[0].is_err());
    assert!(stage.driver.summaries.compaction.is_none(), "it is answered once");
}

#[tokio::test]
async fn unknown_model_is_refused_and_nothing_stored() {
    let mut stage = DriverStage::new(&[]);
    let asker = Asker::Client(responder(&stage, "set_model"));
    let params = serde_json::from_value(json!({"provider": "no", "modelId": "such"})).unwrap();
    model_switch::set_model(&mut stage.driver, asker, params).await;
    let error = outcomes(&mut stage).remove(0).unwrap_err();
    assert!(error.contains("no/such"), "{error}");
    assert_eq!(stage.driver.core.conversation.log.entries().len(), 0);
}

#[tokio::test]
async fn known_model_is_set_and_stored() {
    let mut stage = DriverStage::new(&[]);
    let asker = Asker::Client(responder(&stage, "set_model"));
    let params = serde_json::from_value(json!({"provider": "offline", "modelId": "echo"})).unwrap();
    model_switch::set_model(&mut stage.driver, asker, params).await;
    assert_eq!(outcomes(&mut stage).remove(0).unwrap()["id"], "echo");
    assert_eq!(stage.driver.core.conversation.choice.model.id, "echo");
    assert_eq!(
        super::kinds(&stage.driver.core.conversation.log),
        ["model_change"]
    );
}

#[tokio::test]
async fn shell_command_joins_idle_conversation() {
    let mut stage = DriverStage::new(&[]);
    let responder = responder(&stage, "bash");
    let params = serde_json::from_value(json!({"command": "echo one"})).unwrap();
    shell_commands::bash(&mut stage.driver, responder, params).await;
    while stage.driver.shells.are_running() {
        let report = stage.driver.shells.next().await;
        shell_commands::on_report(&mut stage.driver, report).await;
    }
    assert_eq!(outcomes(&mut stage).remove(0).unwrap()["output"], "one\n");
    assert_eq!(stage.driver.core.machine.messages().len(), 1);
}

#[tokio::test]
async fn shell_command_waits_for_the_run() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    let responder = responder(&stage, "bash");
    let params = serde_json::from_value(json!({"command": "echo one"})).unwrap();
    shell_commands::bash(&mut stage.driver, responder, params).await;
    while stage.driver.shells.are_running() {
        let report = stage.driver.shells.next().await;
        shell_commands::on_report(&mut stage.driver, report).await;
    }
    assert_eq!(stage.driver.core.machine.messages(), [user("hi")]);
    assert!(stage.driver.shells.are_busy());
}
