//! The list that a session file holds.

use std::sync::Arc;

use pinion_agent::todo::rebuild;
use serde_json::{Value, json};
use wire::Entry;

fn entry(body: &Value) -> Arc<Entry> {
    let mut whole = json!({"id": "a", "parentId": null, "timestamp": ""});
    for (key, value) in body.as_object().unwrap() {
        whole[key] = value.clone();
    }
    Arc::new(Entry::from_json(&whole.to_string()).unwrap())
}

fn edit(phases: &Value) -> Arc<Entry> {
    entry(&json!({"type": "custom", "customType": "user_todo_edit", "data": {"phases": phases}}))
}

fn result(tool: &str, is_error: bool, phases: &Value) -> Arc<Entry> {
    entry(
        &json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "c", "toolName": tool,
        "content": [], "isError": is_error, "details": {"phases": phases}}}),
    )
}

fn list(name: &str) -> Value {
    json!([{"id": "phase-1", "name": name, "tasks": [{"id": "task-1", "content": "x", "status": "pending"}]}])
}

#[test]
fn newest_todo_entry_wins_on_rebuild() {
    let other = entry(&json!({"type": "custom", "customType": "else", "data": {"phases": list("no")}}));
    let table: [(&[Arc<Entry>], Value); 6] = [
        (&[], json!([])),
        (
            &[edit(&list("a")), result("todo_write", false, &list("b"))],
            list("b"),
        ),
        (
            &[result("todo_write", false, &list("b")), edit(&list("a")), other],
            list("a"),
        ),
        (
            &[
                edit(&list("a")),
                result("todo_write", true, &list("b")),
                result("read", false, &list("c")),
            ],
            list("a"),
        ),
        // Written by another program, and invalid.
        (&[edit(&list("a")), edit(&json!([{"name": 1}]))], list("a")),
        (&[edit(&list("a")), edit(&json!([]))], json!([])),
    ];
    for (branch, expected) in table {
        assert_eq!(json!(rebuild(branch)), expected);
    }
}

#[test]
fn completed_items_are_dropped_on_rebuild() {
    let phases = json!([
        {"name": "Done", "tasks": [{"content": "a", "status": "completed"}, {"content": "b", "status": "abandoned"}]},
        {"name": "Empty"},
        {"name": "Open", "tasks": [{"content": "c", "status": "completed"}, {"content": "d", "status": "in_progress"}]},
    ]);
    assert_eq!(
        json!(rebuild(&[edit(&phases)])),
        json!([{"id": "phase-3", "name": "Open", "tasks": [{"id": "task-4", "content": "d", "status": "in_progress"}]}])
    );
}

#[test]
fn todo_items_of_oh_my_pi_lack_ids() {
    let phases = json!([{"name": "A", "tasks": [{"content": "a", "status": "blocked", "blocker": "b"}]}]);
    let rebuilt = json!(rebuild(&[result("todo", false, &phases)]));
    assert_eq!(rebuilt[0]["tasks"][0]["id"], "task-1");
}
