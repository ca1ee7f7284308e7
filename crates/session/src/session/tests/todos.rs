//! The todo list in the session file.

use agent::todo::TodoSettings;
use agent::{Change, Machine};
use serde_json::json;
use wire::command::TodosParams;

use super::super::todos;
use super::log;

fn params(phases: serde_json::Value) -> TodosParams {
    serde_json::from_value(json!({ "phases": phases })).unwrap()
}

#[test]
fn stored_list_is_read_again() {
    let mut log = log(None);
    let list = json!([{"name": "Work", "tasks": [{"content": "build"}]}]);
    let (phases, entry) = todos::edit(&params(list)).unwrap();
    assert_eq!(phases[0].tasks[0].content, "build");
    log.append(entry).unwrap();
    let mut machine = Machine::default();
    let change = todos::at_leaf(&log, TodoSettings::default(), true);
    machine.step(change.into(), 0, &mut Vec::new());
    assert_eq!(machine.todos().phases(), phases);
}

#[test]
fn invalid_list_is_refused() {
    assert!(todos::edit(&params(json!("text"))).is_err());
    assert!(todos::edit(&serde_json::from_value(json!({})).unwrap()).is_err());
}

#[test]
fn reminders_need_the_todo_tool() {
    let settings = TodoSettings {
        reminders: true,
        ..TodoSettings::default()
    };
    for has_tool in [true, false] {
        let Change::Branch { todos, .. } = todos::at_leaf(&log(None), settings, has_tool) else {
            panic!("another change");
        };
        assert_eq!(todos.reminders, has_tool);
    }
}
