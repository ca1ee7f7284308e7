//! When done items leave the list.

use pinion_agent::todo::{TodoSettings, Todos, normalise};
use serde_json::{Value, json};

use crate::{lines, with};

fn set(todos: &mut Todos, list: &Value, now: i64) {
    todos.replace(normalise(list).unwrap(), now);
}

fn two(first: &str, second: &str) -> Value {
    json!([
        {"name": "A", "tasks": [{"content": "a", "status": first}]},
        {"name": "B", "tasks": [{"content": "b", "status": second}, {"content": "c"}]},
    ])
}

#[test]
fn completed_item_is_cleared_after_minute() {
    let mut todos = with(&two("completed", "pending"));
    assert_eq!(todos.next_due(), Some(60_000));
    set(&mut todos, &two("completed", "abandoned"), 10_000);
    assert_eq!(todos.next_due(), Some(60_000), "the first clock runs on");
    assert_eq!(todos.clear_due(59_999), 0);
    assert_eq!(todos.clear_due(60_000), 1);
    assert_eq!(lines(&todos), ["task-2 abandoned b", "task-3 pending c"]);
    assert_eq!(todos.phases().len(), 1, "an empty phase goes, too");
    assert_eq!(todos.next_due(), Some(70_000));
    assert_eq!(todos.clear_due(80_000), 1);
    assert_eq!(todos.next_due(), None);
}

#[test]
fn reopened_item_stops_its_clear_clock() {
    let mut todos = with(&two("completed", "pending"));
    set(&mut todos, &two("pending", "pending"), 30_000);
    assert_eq!((todos.next_due(), todos.clear_due(90_000)), (None, 0));
    set(&mut todos, &two("completed", "pending"), 40_000);
    assert_eq!(todos.next_due(), Some(100_000));
}

#[test]
fn different_item_with_same_id_gets_own_clock() {
    let mut todos = with(&json!([{"name": "A", "tasks": [{"content": "a", "status": "completed"}]}]));
    let other = json!([{"name": "A", "tasks": [{"content": "other", "status": "completed"}]}]);
    set(&mut todos, &other, 30_000);
    assert_eq!(todos.next_due(), Some(90_000));
}

#[test]
fn clear_delay_may_be_zero_or_disabled() {
    for (delay, due) in [(Some(0), Some(5)), (None, None)] {
        let settings = TodoSettings {
            clear_delay_ms: delay,
            ..TodoSettings::default()
        };
        let mut todos = Todos::new(settings, Vec::new());
        set(&mut todos, &two("completed", "abandoned"), 5);
        assert_eq!(todos.next_due(), due);
        assert_eq!(todos.clear_due(5), if due.is_some() { 2 } else { 0 });
    }
}

#[test]
fn empty_client_phases_stay_until_items_are_cleared() {
    let list = json!([{"name": "Empty"}, {"name": "A", "tasks": [{"content": "a", "status": "completed"}]}]);
    let mut todos = with(&list);
    todos.clear_due(1);
    assert_eq!(todos.phases().len(), 2);
    todos.clear_due(60_000);
    assert_eq!(todos.phases().len(), 0);
}
