//! The driver with a model that plays replies: the order of file, events and machine.

use std::sync::Arc;

use agent::{Activity, Input, QueueKind, Queued};
use serde_json::{Value, json};
use wire::Message;
use wire::command::SessionNameParams;
use wire::event::CompactionResult;

use super::super::asker::EndedCompaction;
use super::super::compaction;
use super::super::tool_calls::ChosenBy;
use super::stage::DriverStage;
use super::{events, user};

fn text(text: &str) -> Value {
    json!({"stream": [{"text": text}]})
}

fn call(name: &str, args: &Value) -> Value {
    json!({"stream": [{"tool": {"name": name, "args": args}}]})
}

fn failure(status: u16, message: &str) -> Value {
    json!({"error": {"status": status, "message": message}})
}

/// The text of the newest message.
fn newest(stage: &DriverStage) -> String {
    match stage.driver.core.machine.messages().last().unwrap().as_ref() {
        Message::Assistant(message) => serde_json::to_value(message).unwrap()["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn prompt_is_stored_before_its_events() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    assert_eq!(
        stage.driver.core.conversation.log.entries().len(),
        1,
        "the model has not answered yet"
    );
    assert_eq!(
        stage.types(),
        ["agent_start", "turn_start", "message_start", "message_end"]
    );
    assert!(stage.driver.turn.request.is_some() && stage.driver.core.machine.activity().is_running());
}

#[tokio::test]
async fn answer_is_stored_and_ends_the_run() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    stage.settle().await;
    assert_eq!(newest(&stage), "hello");
    assert_eq!(stage.stored(), ["session", "user", "assistant"]);
    let types = stage.types();
    let at = |kind: &str| types.iter().rposition(|seen| seen == kind).unwrap();
    assert!(at("message_end") < at("turn_end") && at("turn_end") < at("agent_end"));
    assert_eq!(types.iter().filter(|kind| *kind == "agent_end").count(), 1);
    assert!(stage.driver.turn.request.is_none());
}

#[tokio::test]
async fn tool_call_runs_and_its_result_is_stored() {
    let mut stage = DriverStage::new(&[call("read", &json!({"path": "a.txt"})), text("done")]);
    std::fs::write(stage.driver.core.workspace.cwd.join("a.txt"), "contents of a").unwrap();
    stage.prompt("read it").await;
    stage.settle().await;
    assert_eq!(
        stage.stored(),
        ["session", "user", "assistant", "toolResult", "assistant"]
    );
    let result = serde_json::to_string(&stage.driver.core.machine.messages()[2]).unwrap();
    assert!(result.contains("contents of a"), "{result}");
    let types = stage.types();
    let at = |kind: &str| types.iter().position(|seen| seen == kind).unwrap();
    assert!(at("tool_execution_start") < at("tool_execution_end"));
}

#[tokio::test]
async fn unknown_tool_is_refused_without_running() {
    let mut stage = DriverStage::new(&[call("nonsense", &json!({})), text("done")]);
    stage.prompt("go").await;
    stage.settle().await;
    let result = serde_json::to_value(&stage.driver.core.machine.messages()[2]).unwrap();
    assert_eq!(result["isError"], true);
    assert!(result.to_string().contains("nonsense"), "{result}");
}

#[tokio::test]
async fn inactive_tool_is_refused() {
    let mut stage = DriverStage::new(&[call("write", &json!({"path": "x", "content": "y"})), text("done")]);
    stage
        .driver
        .choose_tools(["read".to_owned()].into_iter(), ChosenBy::Client);
    stage.prompt("go").await;
    stage.settle().await;
    assert!(!stage.driver.core.workspace.cwd.join("x").exists());
    let result = serde_json::to_value(&stage.driver.core.machine.messages()[2]).unwrap();
    assert_eq!(result["isError"], true);
}

#[tokio::test]
async fn read_only_mode_denies_a_write() {
    let mut stage = DriverStage::new(&[call("write", &json!({"path": "x", "content": "y"})), text("done")]);
    stage
        .driver
        .core
        .choose_permission_mode(wire::state::PermissionMode::ReadOnly);
    stage.prompt("go").await;
    stage.settle().await;
    assert!(!stage.driver.core.workspace.cwd.join("x").exists());
    assert_eq!(newest(&stage), "done");
}

#[tokio::test]
async fn abort_ends_a_running_request() {
    let mut stage = DriverStage::new(&[text("never read")]);
    stage.prompt("hi").await;
    stage.driver.drive(Input::Abort).await;
    stage.settle().await;
    let last = serde_json::to_value(stage.driver.core.machine.messages().last().unwrap()).unwrap();
    assert_eq!(last["stopReason"], "aborted");
    let ends = stage.types().iter().filter(|kind| *kind == "agent_end").count();
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn abort_while_idle_changes_nothing() {
    let mut stage = DriverStage::new(&[]);
    stage.driver.drive(Input::Abort).await;
    assert_eq!(stage.types(), Vec::<String>::new());
    assert!(stage.driver.core.machine.is_idle());
}

#[tokio::test]
async fn prompt_during_run_is_ignored() {
    let mut stage = DriverStage::new(&[text("one"), text("two")]);
    stage.prompt("first").await;
    stage.prompt("second").await;
    stage.settle().await;
    assert_eq!(stage.stored(), ["session", "user", "assistant"]);
}

#[tokio::test]
async fn follow_up_runs_after_the_answer() {
    let mut stage = DriverStage::new(&[text("one"), text("two")]);
    stage.prompt("first").await;
    let queued = Queued {
        interrupts: false,
        text: "second".to_owned(),
        message: user("second"),
    };
    stage
        .driver
        .drive(Input::Enqueue(QueueKind::FollowUp, queued))
        .await;
    assert_eq!(stage.driver.core.machine.queues().len(), 1);
    stage.settle().await;
    assert_eq!(newest(&stage), "two");
    assert_eq!(
        stage.stored(),
        ["session", "user", "assistant", "user", "assistant"]
    );
    let ends = stage.types().iter().filter(|kind| *kind == "agent_end").count();
    assert_eq!(ends, 1, "both belong to one run");
}

#[tokio::test]
async fn failed_request_is_tried_again() {
    let settings = r#"{"retry": {"baseDelayMs": 1}}"#;
    let mut stage = DriverStage::with(&[failure(529, "overloaded"), text("at last")], settings);
    stage.prompt("hi").await;
    stage.settle().await;
    assert_eq!(newest(&stage), "at last");
    let types = stage.types();
    assert!(types.contains(&"auto_retry_start".to_owned()), "{types:?}");
    assert!(stage.driver.turn.retry_timer.is_none());
}

#[tokio::test]
async fn aborted_retry_delay_ends_the_run() {
    let settings = r#"{"retry": {"baseDelayMs": 60000}}"#;
    let mut stage = DriverStage::with(&[failure(529, "overloaded"), text("never")], settings);
    stage.prompt("hi").await;
    while stage.driver.turn.retry_timer.is_none() {
        let events = stage.next_events().await;
        stage.driver.on_model(events).await;
    }
    assert_eq!(
        stage.driver.core.machine.activity(),
        Activity::WaitingToRetry { joined: false }
    );
    stage.driver.drive(Input::AbortRetry).await;
    assert!(stage.driver.turn.retry_timer.is_none());
    assert!(stage.driver.core.machine.is_idle());
}

#[tokio::test]
async fn final_failure_is_stored_and_ends_the_run() {
    let mut stage = DriverStage::new(&[failure(400, "bad request")]);
    stage.prompt("hi").await;
    stage.settle().await;
    let last = serde_json::to_value(stage.driver.core.machine.messages().last().unwrap()).unwrap();
    assert_eq!(last["stopReason"], "error");
    assert_eq!(stage.stored(), ["session", "user", "assistant"]);
}

#[tokio::test]
async fn added_message_is_announced_around_its_entry() {
    let mut stage = DriverStage::new(&[]);
    stage.driver.add_message(user("noted")).await;
    assert_eq!(stage.types(), ["message_start", "message_end"]);
    assert_eq!(stage.driver.core.machine.messages(), [user("noted")]);
    assert_eq!(stage.driver.core.conversation.log.entries().len(), 1);
}

#[tokio::test]
async fn message_after_summary_stays_in_the_conversation() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    stage.settle().await;
    stage.driver.drive(Input::Compact).await;
    // The summary is stored, and extensions hear of it. Meanwhile a message joins the conversation.
    let ended = EndedCompaction::Stored(CompactionResult {
        summary: "s".to_owned(),
        short_summary: None,
        first_kept_entry_id: "e".to_owned(),
        tokens_before: 1,
        details: json!({}),
        estimated_tokens_after: None,
        usage: None,
    });
    stage.driver.add_message(user("noted")).await;
    compaction::finish(&mut stage.driver, ended).await;
    assert!(stage.driver.core.machine.is_idle());
    let newest = stage.driver.core.machine.messages().last();
    assert_eq!(newest, Some(&user("noted")));
}

#[tokio::test]
async fn session_name_is_stored_and_announced() {
    let mut stage = DriverStage::new(&[]);
    let name = |name: &str| SessionNameParams {
        name: name.to_owned(),
    };
    assert!(stage.driver.set_session_name(&name(" ")).await.is_err());
    assert_eq!(stage.types(), Vec::<String>::new());
    stage.driver.set_session_name(&name(" work ")).await.unwrap();
    let sent = events(&mut stage.sent);
    assert_eq!(sent, [json!({"type": "session_info_changed", "name": "work"})]);
    assert_eq!(stage.driver.core.conversation.log.session_name(), Some("work"));
}

#[tokio::test]
async fn custom_entry_is_announced_with_its_id() {
    let mut stage = DriverStage::new(&[]);
    stage
        .driver
        .append_custom("kit".to_owned(), Some(Value::Null))
        .await
        .unwrap();
    let sent = events(&mut stage.sent);
    assert_eq!(sent[0]["type"], "entry_appended");
    let log = &stage.driver.core.conversation.log;
    assert_eq!(sent[0]["entry"]["id"], log.entries()[0].id);
    assert_eq!(sent[0]["entry"].get("data"), None, "null is no data");
}

#[tokio::test]
async fn chosen_tools_change_the_next_prompt() {
    let mut stage = DriverStage::new(&[]);
    let before = stage.driver.core.system_prompt();
    stage
        .driver
        .choose_tools(["read".to_owned()].into_iter(), ChosenBy::Client);
    assert_eq!(stage.driver.core.tools.active_names(), ["read"]);
    assert_ne!(stage.driver.core.system_prompt(), before);
}

#[tokio::test]
async fn forbidden_tool_cannot_be_chosen() {
    let mut stage = DriverStage::new(&[]);
    let agent = Arc::make_mut(&mut stage.driver.core.agent);
    agent.options.tool_filter.only = vec![vec!["read".to_owned()]];
    stage
        .driver
        .core
        .tools
        .activate(vec!["read".to_owned()], ChosenBy::Client);
    let names = ["read", "bash"].map(str::to_owned);
    stage.driver.choose_tools(names.into_iter(), ChosenBy::Client);
    assert_eq!(stage.driver.core.tools.active_names(), ["read"]);
}

#[tokio::test]
async fn snapshot_holds_messages_and_no_answer_when_idle() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    stage.settle().await;
    let snapshot = stage.driver.snapshot();
    assert_eq!(snapshot.messages.len(), 2);
    assert!(snapshot.message.is_none() && snapshot.retry.is_none());
    assert!(!snapshot.state.is_streaming);
}

#[tokio::test]
async fn prompt_appended_before_its_run_is_stored_once() {
    let mut stage = DriverStage::new(&[text("hello")]);
    let message = user("hi");
    let core = &mut stage.driver.core;
    core.conversation
        .log
        .persist(Arc::clone(&message), &core.outbox)
        .await;
    core.conversation.log.note_prompt(Arc::clone(&message));
    let prompt = Input::Prompt {
        messages: vec![message],
        full: false,
        limits: None,
        wants_result: false,
    };
    stage.driver.drive(prompt).await;
    stage.settle().await;
    assert_eq!(stage.stored(), ["session", "user", "assistant"]);
}

#[tokio::test]
async fn session_without_client_keeps_its_run() {
    let mut stage = DriverStage::new(&[text("hello")]);
    stage.prompt("hi").await;
    stage.driver.lose_client().await;
    stage.settle().await;
    assert_eq!(newest(&stage), "hello", "no call waited for the client");
}

#[tokio::test]
async fn placeholder_model_is_never_asked() {
    let mut stage = DriverStage::new(&[text("never")]);
    let unknown = "Model \"x/y\" not found";
    let providers = &mut stage.driver.extensions.providers;
    providers.set_unresolved(Some(unknown.to_owned()));
    // Without the checks of a prompt, as an extension begins a run.
    stage.prompt("hi").await;
    stage.settle().await;
    let last = serde_json::to_value(stage.driver.core.machine.messages().last().unwrap()).unwrap();
    assert_eq!(last["stopReason"], "error");
    assert!(last["errorMessage"].as_str().unwrap().contains(unknown), "{last}");
    stage.driver.drive(Input::Compact).await;
    stage.settle().await;
    let sent = events(&mut stage.sent);
    let end = sent.iter().find(|event| event["type"] == "compaction_end");
    let error = end.unwrap()["errorMessage"].as_str().unwrap();
    assert!(error.contains(unknown), "{error}");
}
