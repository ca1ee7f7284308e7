//! The entry of the last request in the provider's prompt cache.

use std::sync::Arc;

use llm::CacheRetention;
use serde_json::json;
use wire::model::PromptCache;

use super::super::cache_warming::{WarmingEvent, on_event};
use super::stage::DriverStage;

/// Settings with this mode.
fn mode(mode: &str) -> String {
    json!({"cacheWarming": mode}).to_string()
}

/// A driver whose model keeps a prompt for 300 s and has a price at which each refresh pays.
fn stage(settings: &str) -> DriverStage {
    let replies = [
        json!({"stream": [{"text": "one"}]}),
        json!({"stream": [{"text": "two"}]}),
    ];
    let mut stage = DriverStage::with(&replies, settings);
    let core = &mut stage.driver.core;
    Arc::get_mut(&mut core.agent)
        .unwrap()
        .options
        .prompt_caching
        .retention = CacheRetention::Short;
    let model = &mut core.conversation.choice.model;
    model.prompt_cache = Some(PromptCache {
        short: Some(300),
        long: None,
    });
    (model.cost.cache_read, model.cost.cache_write) = (1.0, 1_000_000.0);
    stage
}

/// Gives the driver the outcome of the request that is out.
async fn finish_refresh(stage: &mut DriverStage) {
    let next = tokio::time::timeout(std::time::Duration::from_secs(10), stage.driver.warming.next());
    let event = next.await.expect("the provider answers");
    assert!(matches!(event, WarmingEvent::Refreshed(_)));
    on_event(&mut stage.driver, event).await;
}

#[tokio::test]
async fn refresh_is_stored_and_told() {
    let mut stage = stage(&mode("idle"));
    stage.prompt("hi").await;
    stage.settle().await;
    let before = stage.stored();
    stage.types();
    on_event(&mut stage.driver, WarmingEvent::Due).await;
    assert_eq!(
        stage.driver.core.machine.messages().len(),
        2,
        "no message of a run"
    );
    finish_refresh(&mut stage).await;
    assert_eq!(stage.types(), ["entry_appended"]);
    assert_eq!(stage.stored()[before.len()..], ["usage"]);
    assert_eq!(stage.driver.core.machine.messages().len(), 2);
    assert!(stage.driver.warming.is_keeping(), "the next refresh waits");
}

#[tokio::test]
async fn nothing_is_kept_without_the_setting() {
    for settings in ["{}".to_owned(), mode("off")] {
        let mut stage = stage(&settings);
        stage.prompt("hi").await;
        assert!(!stage.driver.warming.is_keeping(), "{settings}");
    }
}

#[tokio::test]
async fn streaming_keeps_until_the_run_ends() {
    let mut stage = stage(&mode("streaming"));
    stage.prompt("hi").await;
    assert!(stage.driver.warming.is_keeping());
    stage.settle().await;
    assert!(!stage.driver.warming.is_keeping());
}

#[tokio::test]
async fn refresh_without_savings_ends_keeping() {
    let mut stage = stage(&mode("idle"));
    stage.driver.core.conversation.choice.model.cost.cache_write = 1.0;
    stage.prompt("hi").await;
    stage.settle().await;
    assert!(stage.driver.warming.is_keeping());
    on_event(&mut stage.driver, WarmingEvent::Due).await;
    assert!(!stage.driver.warming.is_keeping());
    assert!(!stage.stored().contains(&"usage".to_owned()));
}

#[tokio::test]
async fn other_model_or_conversation_ends_keeping() {
    for changes_model in [true, false] {
        let mut stage = stage(&mode("idle"));
        stage.prompt("hi").await;
        stage.settle().await;
        assert!(stage.driver.warming.is_keeping());
        match changes_model {
            true => stage.driver.core.conversation.choice.model.id = "other".to_owned(),
            false => stage
                .driver
                .core
                .apply(agent::Change::Conversation(vec![super::user("other")])),
        }
        on_event(&mut stage.driver, WarmingEvent::Due).await;
        assert!(!stage.driver.warming.is_keeping());
    }
}

#[tokio::test]
async fn refresh_is_stored_although_the_model_changes_meanwhile() {
    let mut stage = stage(&mode("idle"));
    stage.prompt("hi").await;
    stage.settle().await;
    on_event(&mut stage.driver, WarmingEvent::Due).await;
    stage.driver.core.conversation.choice.model.id = "other".to_owned();
    let before = stage.stored();
    finish_refresh(&mut stage).await;
    assert_eq!(stage.stored()[before.len()..], ["usage"]);
    assert!(!stage.driver.warming.is_keeping());
}

#[tokio::test]
async fn reached_limit_prevents_a_refresh() {
    let mut stage = stage(r#"{"cacheWarming": "idle", "limits": {"maxTurns": 1}}"#);
    stage.prompt("hi").await;
    stage.settle().await;
    assert!(stage.driver.warming.is_keeping());
    on_event(&mut stage.driver, WarmingEvent::Due).await;
    assert!(!stage.driver.warming.is_keeping());
}
