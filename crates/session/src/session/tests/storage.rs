//! Entries on their way to the session file.

use std::sync::Arc;

use serde_json::json;
use wire::state::Durability;
use wire::{EntryBody, Message};

use super::super::extensions::custom;
use super::super::storage::{Batch, Storage, same_file};
use super::{kinds, log, user};
use crate::limits;
use crate::outbox::outbox;

fn level(level: &str) -> EntryBody {
    let body = json!({"thinkingLevel": level});
    EntryBody::ThinkingLevelChange(serde_json::from_value(body).unwrap())
}

#[tokio::test]
async fn file_begins_with_first_words() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let mut storage = Storage::new(log(Some(&path)), Durability::default());
    storage.record(level("low"), &outbox).await;
    let note = custom(&json!({"customType": "note", "content": "x"})).unwrap();
    storage.persist(Arc::new(note), &outbox).await;
    assert!(!path.exists(), "nothing was said yet");
    storage.persist(user("hello"), &outbox).await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 4, "header, level, note and prompt");
    assert_eq!(
        kinds(&storage),
        ["thinking_level_change", "custom_message", "message"]
    );
}

#[tokio::test]
async fn prompt_is_known_by_identity_once() {
    let mut storage = Storage::new(log(None), Durability::default());
    let (first, same) = (user("again"), user("again"));
    storage.note_prompt(Arc::clone(&first));
    assert!(!storage.has_prompt(&same), "the same text is another prompt");
    assert!(storage.has_prompt(&first));
    assert!(!storage.has_prompt(&first));
}

#[tokio::test]
async fn complete_log_is_not_kept_after_replacement() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old.jsonl"), dir.path().join("new.jsonl"));
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let mut storage = Storage::new(log(Some(&old)), Durability::default());
    storage.persist(user("hello"), &outbox).await;
    storage.replace(log(Some(&new)));
    assert!(!storage.has_left() && storage.has_room());
    assert!(storage.take_left(&old).await.is_none());
    assert_eq!(storage.path(), Some(new.as_path()));
    assert_eq!(storage.state(), None, "no entry waits");
}

#[tokio::test]
async fn batch_is_one_chain_of_entries() {
    let (outbox, _sent) = outbox(limits::OUTBOX);
    let mut storage = Storage::new(log(None), Durability::default());
    let mut batch = Batch::of(user("one"));
    batch.push(level("high"));
    batch.push_message(Arc::new(Message::user("two", 1)));
    assert!(storage.keep(batch, &outbox).await);
    let entries = storage.entries();
    assert_eq!(entries.len(), 3);
    for pair in entries.windows(2) {
        assert_eq!(pair[1].parent_id.as_ref(), Some(&pair[0].id));
    }
}

#[test]
fn same_file_is_known_through_links() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a");
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
    assert!(same_file(&file, &dir.path().join("link")));
    assert!(!same_file(&file, dir.path()));
    let gone = dir.path().join("gone");
    assert!(same_file(&gone, &gone) && !same_file(&gone, &file));
}
