//! The model's tool.

use pinion_agent::limits::TODO_PHASES;
use pinion_agent::todo::{Op, TOOL, tool_spec};
use serde_json::{Value, json};

use crate::{empty, lines, with, write};

fn plan() -> Value {
    json!([{"op": "replace", "phases": [
        {"name": "Look", "tasks": [{"content": "read", "details": "src/a.rs\nsrc/b.rs"}, {"content": "think"}]},
        {"name": "Do", "tasks": [{"content": "write"}]},
    ]}])
}

#[test]
fn new_plan_starts_its_first_item() {
    let mut todos = empty();
    let text = write(&mut todos, &plan());
    assert_eq!(
        lines(&todos),
        [
            "task-1 in_progress read",
            "task-2 pending think",
            "task-3 pending write"
        ]
    );
    let expected = "Remaining items (3):\n\
                    - task-1 [in_progress] read (Look)\n    src/a.rs\n    src/b.rs\n\
                    - task-2 [pending] think (Look)\n\
                    - task-3 [pending] write (Do)\n\
                    Phase 1/2 \"Look\" — 0/2 tasks complete\n\
                    Look (phase-1)\n  → task-1 read\n  ○ task-2 think\n\
                    Do (phase-2)\n  ○ task-3 write";
    assert_eq!(text, expected);
}

#[test]
fn completing_items_starts_the_next() {
    let mut todos = empty();
    write(&mut todos, &plan());
    let ops = json!([
        {"op": "update", "id": "task-1", "status": "completed", "notes": "long"},
        {"op": "update", "id": "task-2", "status": "abandoned", "content": "think less"},
    ]);
    let text = write(&mut todos, &ops);
    assert_eq!(
        lines(&todos),
        [
            "task-1 completed read",
            "task-2 abandoned think less",
            "task-3 in_progress write"
        ]
    );
    let expected = "Remaining items (1):\n- task-3 [in_progress] write (Do)\n\
                    Phase 2/2 \"Do\" — 0/1 tasks complete\n\
                    Look (phase-1)\n  ✓ task-1 read\n  ✗ task-2 think less\n\
                    Do (phase-2)\n  → task-3 write";
    assert_eq!(text, expected);
    let item = &todos.phases()[0].tasks[0];
    assert_eq!(
        (item.notes.as_deref(), item.details.as_deref()),
        (Some("long"), Some("src/a.rs\nsrc/b.rs"))
    );
    let text = write(
        &mut todos,
        &json!([{"op": "update", "id": "task-3", "status": "completed"}]),
    );
    assert!(
        text.starts_with("Remaining items: none\nPhase 2/2 \"Do\" — 1/1 tasks complete"),
        "{text}"
    );
}

#[test]
fn only_first_item_stays_in_progress() {
    let mut todos = with(&json!([{"name": "A", "tasks": [
        {"content": "a"}, {"content": "b", "status": "in_progress"}, {"content": "c", "status": "in_progress"},
    ]}]));
    write(
        &mut todos,
        &json!([{"op": "update", "id": "task-1", "notes": "x"}]),
    );
    assert_eq!(
        lines(&todos),
        ["task-1 pending a", "task-2 in_progress b", "task-3 pending c"]
    );
}

#[test]
fn todo_ids_increase_and_restart_with_new_list() {
    let mut todos = empty();
    write(&mut todos, &plan());
    let ops = json!([
        {"op": "remove_task", "id": "task-1"},
        {"op": "add_task", "phase": "phase-2", "content": "check"},
        {"op": "add_phase", "name": "Ship", "tasks": [{"content": "tag"}]},
        {"op": "add_phase", "name": "Rest"},
    ]);
    let text = write(&mut todos, &ops);
    assert_eq!(
        lines(&todos),
        [
            "task-2 in_progress think",
            "task-3 pending write",
            "task-4 pending check",
            "task-5 pending tag"
        ]
    );
    assert!(text.ends_with("Rest (phase-4)"), "{text}");
    write(&mut todos, &plan());
    assert_eq!(lines(&todos)[0], "task-1 in_progress read");
    assert_eq!(todos.phases()[0].id, "phase-1");
}

#[test]
fn failed_todo_operations_are_reported_remaining_ones_apply() {
    let mut todos = empty();
    let missing = json!([{"op": "update", "id": "task-1", "status": "completed"}]);
    assert_eq!(
        write(&mut todos, &missing),
        "Errors: Task \"task-1\" not found (todo list is empty — was it replaced or not yet created?)\n\
         Todo list cleared."
    );
    let ops = json!([
        {"op": "add_task", "phase": "phase-9", "content": "x"},
        {"op": "add_phase", "name": "A"},
        {"op": "remove_task", "id": "task-1"},
        {"op": "add_task", "phase": "phase-1", "content": "y"},
        {"op": "remove_task", "id": "task-9"},
    ]);
    let text = write(&mut todos, &ops);
    assert_eq!(
        text.lines().next().unwrap(),
        "Errors: Phase \"phase-9\" not found; Task \"task-1\" not found (todo list is empty); Task \"task-9\" not found"
    );
    assert_eq!(lines(&todos), ["task-1 in_progress y"]);
    let nothing = json!([{"op": "replace", "phases": []}]);
    assert_eq!(write(&mut todos, &nothing), "Todo list cleared.");
}

#[test]
fn too_large_list_keeps_the_old_one() {
    let mut todos = empty();
    write(&mut todos, &plan());
    let before = lines(&todos);
    let phases = vec![json!({"name": "A"}); TODO_PHASES + 1];
    let text = write(&mut todos, &json!([{"op": "replace", "phases": phases}]));
    assert!(
        text.starts_with("Errors: There can be 200 phases at most"),
        "{text}"
    );
    assert_eq!(lines(&todos), before);
}

#[test]
fn todo_result_carries_the_list() {
    let ops = json!({"ops": plan().to_string()});
    let ops = Op::parse(ops.as_object().unwrap()).unwrap();
    for (stored, storage) in [(true, "session"), (false, "memory")] {
        let mut todos = empty();
        let (phases, result) = todos.written(ops.clone(), stored);
        todos.replace(phases, 0);
        let details = result.details.unwrap();
        assert_eq!(details["storage"], storage);
        assert_eq!(details["phases"], json!(todos.phases()));
    }
}

#[test]
fn invalid_todo_arguments_are_refused_whole() {
    let table = [
        (json!({}), "ops must be a list"),
        (json!({"ops": "x"}), "ops must be a list"),
        (json!({"ops": [1]}), "ops[0] must be an object"),
        (json!({"ops": [{}]}), "ops[0].op is missing"),
        (
            json!({"ops": [{"op": "finish"}]}),
            "ops[0].op must be one of replace, add_phase, add_task, update, remove_task",
        ),
        (
            json!({"ops": [{"op": "replace"}]}),
            "ops[0].phases must be a list",
        ),
        (
            json!({"ops": [{"op": "replace", "phases": [{"name": "A", "tasks": [{}]}]}]}),
            "ops[0].phases[0].tasks[0].content is missing",
        ),
        (
            json!({"ops": [{"op": "remove_task", "id": "a"}, {"op": "update", "id": "a", "status": "done"}]}),
            "ops[1].status must be one of pending, in_progress, completed, abandoned",
        ),
        (
            json!({"ops": [{"op": "add_task", "content": "x"}]}),
            "ops[0].phase is missing",
        ),
    ];
    for (arguments, error) in table {
        let parsed = Op::parse(arguments.as_object().unwrap());
        assert_eq!(parsed.unwrap_err(), error, "{arguments}");
    }
}

#[test]
fn todo_tool_spec_lists_operations() {
    let spec = tool_spec();
    assert_eq!(spec.name, TOOL);
    let ops = &spec.parameters["properties"]["ops"]["items"]["properties"]["op"]["enum"];
    assert_eq!(
        *ops,
        json!(["replace", "add_phase", "add_task", "update", "remove_task"])
    );
}
