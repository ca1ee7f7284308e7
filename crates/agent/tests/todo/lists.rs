//! `set_todos`: defaults and refusals.

use pinion_agent::limits;
use pinion_agent::todo::normalise;
use serde_json::{Value, json};

#[test]
fn todo_list_from_seed_round_trips() {
    let list = json!([{"id": "phase-1", "name": "Evaluation", "tasks": [
        {"id": "task-1", "content": "Map the read tool surface", "status": "in_progress"},
        {"id": "task-2", "content": "Exercise edit operations", "status": "pending"},
    ]}]);
    assert_eq!(json!(normalise(&list).unwrap()), list);
}

#[test]
fn missing_todo_members_get_defaults() {
    let list = json!([
        {"name": " A ", "junk": 1, "tasks": [
            {"content": " one "},
            {"id": "task-7", "content": "two", "status": "completed", "details": "d", "notes": " ", "junk": 1},
            {"id": null, "content": "three", "status": null},
        ]},
        {"id": "phase-3", "name": "B"},
        {"id": "", "name": "C", "tasks": null},
    ]);
    let expected = json!([
        {"id": "phase-4", "name": "A", "tasks": [
            {"id": "task-8", "content": "one", "status": "pending"},
            {"id": "task-7", "content": "two", "status": "completed", "details": "d"},
            {"id": "task-9", "content": "three", "status": "pending"},
        ]},
        {"id": "phase-3", "name": "B", "tasks": []},
        {"id": "phase-5", "name": "C", "tasks": []},
    ]);
    assert_eq!(json!(normalise(&list).unwrap()), expected);
    assert_eq!(normalise(&json!([])).unwrap(), []);
}

#[test]
fn normalise_keeps_client_statuses() {
    let item = |status: &str| json!({"content": "x", "status": status});
    let list = json!([{"name": "A", "tasks": [item("in_progress"), item("in_progress"), item("abandoned")]}]);
    let phases = json!(normalise(&list).unwrap());
    let statuses: Vec<&Value> = phases[0]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["status"])
        .collect();
    assert_eq!(statuses, ["in_progress", "in_progress", "abandoned"]);
}

#[test]
fn blocker_of_oh_my_pi_item_becomes_note() {
    let list = json!([{"name": "A", "tasks": [{"content": "x", "status": "blocked", "blocker": "no key"}]}]);
    let item = &json!(normalise(&list).unwrap())[0]["tasks"][0];
    assert_eq!(
        (&item["status"], &item["notes"]),
        (&json!("pending"), &json!("Blocked: no key"))
    );
}

#[test]
fn todo_errors_name_the_member() {
    let tasks = |tasks: Value| json!([{"name": "A"}, {"name": "B", "tasks": tasks}]);
    let long = "x".repeat(limits::TODO_TEXT_BYTES + 1);
    let table = [
        (json!(null), "phases must be a list"),
        (json!({}), "phases must be a list"),
        (json!([1]), "phases[0] must be an object"),
        (json!([{}]), "phases[0].name is missing"),
        (json!([{"name": " "}]), "phases[0].name must not be empty"),
        (json!([{"name": 3}]), "phases[0].name must be a text"),
        (json!([{"name": "A", "id": 3}]), "phases[0].id must be a text"),
        (
            json!([{"name": "A", "tasks": {}}]),
            "phases[0].tasks must be a list",
        ),
        (tasks(json!(["x"])), "phases[1].tasks[0] must be an object"),
        (tasks(json!([{}])), "phases[1].tasks[0].content is missing"),
        (
            tasks(json!([{"content": "x"}, {"content": "y", "status": "weird"}])),
            "phases[1].tasks[1].status must be one of pending, in_progress, completed, abandoned",
        ),
        (
            tasks(json!([{"content": "x", "notes": []}])),
            "phases[1].tasks[0].notes must be a text",
        ),
        (
            tasks(json!([{"content": long}])),
            "phases[1].tasks[0].content must not be longer than 65536 bytes",
        ),
        (
            json!([{"name": "A", "id": "p"}, {"name": "B", "id": "p"}]),
            "phase id \"p\" is used twice",
        ),
        (
            tasks(json!([{"content": "x", "id": "t"}, {"content": "y", "id": "t"}])),
            "task id \"t\" is used twice",
        ),
    ];
    for (list, error) in table {
        assert_eq!(normalise(&list).unwrap_err(), error, "{list}");
    }
}

#[test]
fn todo_list_size_is_limited() {
    let phases = vec![json!({"name": "A"}); limits::TODO_PHASES + 1];
    assert_eq!(
        normalise(&json!(phases)).unwrap_err(),
        "phases must not be more than 200"
    );
    let tasks = vec![json!({"content": "x"}); limits::TODO_ITEMS + 1];
    assert_eq!(
        normalise(&json!([{"name": "A", "tasks": tasks}])).unwrap_err(),
        "tasks must not be more than 2000"
    );
}
