//! Storing names, labels and switches, and measuring the context.

use config::settings::CompactionSettings;
use serde_json::json;
use wire::ThinkingLevel;

use super::super::model_choice::LevelSettings;
use super::{conversation, events, kinds, model, user};
use crate::limits;
use crate::outbox::outbox;

#[tokio::test]
async fn stored_switch_announces_changed_level_only() {
    let (outbox, mut sent) = outbox(limits::OUTBOX);
    let mut conversation = conversation(None);
    let settings = LevelSettings {
        own: None,
        restored: Some(ThinkingLevel::Medium),
    };
    let same = conversation.choice.select(model("b", true), None, settings);
    conversation.store_switch(&same, &outbox).await;
    assert_eq!(events(&mut sent), Vec::<serde_json::Value>::new());
    let lost = conversation.choice.select(model("plain", false), None, settings);
    conversation.store_switch(&lost, &outbox).await;
    assert_eq!(
        events(&mut sent),
        [json!({"type": "thinking_level_changed", "level": "off"})]
    );
    assert_eq!(
        kinds(&conversation.log),
        ["model_change", "model_change", "thinking_level_change"]
    );
}

#[tokio::test]
async fn session_name_is_trimmed_and_required() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let mut conversation = conversation(None);
    assert!(conversation.store_name("  ", &outbox).await.is_err());
    assert_eq!(conversation.log.session_name(), None);
    let name = conversation.store_name("  mine ", &outbox).await.unwrap();
    assert_eq!(
        (name.as_str(), conversation.log.session_name()),
        ("mine", Some("mine"))
    );
}

#[tokio::test]
async fn first_message_creates_session_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let mut conversation = conversation(Some(&path));
    conversation.store_start(false, &outbox).await;
    assert!(!path.exists(), "settings alone need no file");
    assert!(conversation.log.persist(user("hello"), &outbox).await);
    let lines = std::fs::read_to_string(&path).unwrap().lines().count();
    assert_eq!(lines, 4, "the header, model, level and message");
    assert_eq!(conversation.read_leaf().len(), 1);
}

#[tokio::test]
async fn unwritable_entries_wait_and_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("missing").join("session.jsonl");
    std::fs::write(dir.path().join("missing"), "a file where the directory should be").unwrap();
    let (outbox, mut sent) = outbox(limits::OUTBOX);
    let mut conversation = conversation(Some(&path));
    assert!(!conversation.log.persist(user("hello"), &outbox).await);
    assert!(!conversation.log.persist(user("again"), &outbox).await);
    let told = events(&mut sent);
    let types: Vec<_> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["notice", "storage_status"],
        "the second failure is no news"
    );
    assert_eq!(told[1]["pending"], 1);
    let state = conversation.log.state().unwrap();
    assert!(state.pending == 2 && state.error.is_some(), "{state:?}");

    std::fs::remove_file(dir.path().join("missing")).unwrap();
    assert!(conversation.log.flush(&outbox).await);
    let told = events(&mut sent);
    assert_eq!(told.len(), 1);
    assert_eq!(
        (&told[0]["type"], &told[0]["pending"]),
        (&json!("storage_status"), &json!(0))
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("hello") && text.contains("again"));
}

#[test]
fn full_context_needs_automatic_compaction() {
    let mut conversation = conversation(None);
    let settings = CompactionSettings {
        enabled: true,
        reserve_tokens: Some(100),
        keep_recent_tokens: 100,
        model_overrides: Default::default(),
    };
    let long = [user(&"word ".repeat(4_000))];
    assert!(conversation.is_full(&long, &settings));
    assert!(!conversation.is_full(&[user("short")], &settings));
    conversation.auto_compaction = false;
    assert!(!conversation.is_full(&long, &settings));
}
