//! What a run has under way.

use serde_json::json;

use super::super::running_turn::RunningTurn;
use super::super::wakeup;
use super::stage::DriverStage;
use std::time::Duration;

#[tokio::test]
async fn new_turn_has_nothing_under_way() {
    let mut turn = RunningTurn::new();
    assert!(turn.partial_message().is_none() && turn.request.is_none() && turn.retry_timer.is_none());
    let woken = tokio::time::timeout(Duration::from_millis(5), async {
        tokio::select! {
            _ = wakeup::next_events(&mut turn.request) => {}
            _ = turn.calls.next() => {}
            () = wakeup::due(&mut turn.retry_timer) => {}
        }
    });
    assert!(woken.await.is_err(), "nothing wakes the session");
}

#[tokio::test]
async fn retry_timer_is_due_after_its_delay() {
    let mut turn = RunningTurn::new();
    turn.retry_timer = Some(Box::pin(tokio::time::sleep(Duration::from_secs(600))));
    let early = tokio::time::timeout(Duration::from_millis(20), wakeup::due(&mut turn.retry_timer));
    assert!(early.await.is_err());
    let timer = turn.retry_timer.as_mut().expect("the same timer goes on");
    timer
        .as_mut()
        .reset(tokio::time::Instant::now() + Duration::from_millis(20));
    let due = tokio::time::timeout(Duration::from_secs(20), wakeup::due(&mut turn.retry_timer));
    assert!(due.await.is_ok());
    assert!(turn.retry_timer.is_none(), "it must not wake the session again");
}

#[tokio::test]
async fn partial_message_grows_with_the_answer() {
    let mut stage = DriverStage::new(&[json!({"stream": [{"text": ["hel", {"delay": 0.01}, "lo"]}]})]);
    stage.prompt("hi").await;
    assert!(stage.driver.turn.partial_message().is_none(), "it has not begun");
    let mut seen = Vec::new();
    while stage.driver.turn.request.is_some() {
        let events = stage.next_events().await;
        stage.driver.on_model(events).await;
        if let Some(message) = stage.driver.turn.partial_message() {
            let message = serde_json::to_value(message).unwrap();
            seen.extend(message["content"][0]["text"].as_str().map(str::to_owned));
        }
    }
    assert_eq!(seen.last().map(String::as_str), Some("hel"), "{seen:?}");
    assert!(stage.driver.turn.partial_message().is_none(), "it has ended");
}

#[tokio::test]
async fn partial_message_closes_open_arguments() {
    let pieces = json!(["{\"path\": \"Car", {"delay": 0.01}, "go.toml\"}"]);
    let read = json!({"tool": {"id": "c1", "name": "read", "arg_chunks": pieces}});
    let thinking = json!({"thinking": "hm", "signature": "for the provider"});
    let mut stage = DriverStage::new(&[json!({"stream": [thinking, read]})]);
    stage.prompt("hi").await;
    let mut seen = Vec::new();
    while stage.driver.turn.request.is_some() {
        let events = stage.next_events().await;
        stage.driver.on_model(events).await;
        seen.extend(stage.driver.turn.partial_message());
    }
    let last = serde_json::to_value(seen.last()).unwrap();
    assert_eq!(
        last["content"],
        json!([
            {"type": "thinking", "thinking": "hm"},
            {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "Car"}},
        ])
    );
}

#[tokio::test]
async fn events_after_the_last_are_ignored() {
    let mut stage = DriverStage::new(&[json!({"stream": [{"text": "hello"}]})]);
    stage.prompt("hi").await;
    stage.settle().await;
    let before = stage.driver.core.machine.messages().len();
    stage.types();
    stage
        .driver
        .on_model(vec![llm::ModelEvent::Remark("late".to_owned())])
        .await;
    assert_eq!(stage.driver.core.machine.messages().len(), before);
    assert_eq!(stage.types(), Vec::<String>::new());
}
