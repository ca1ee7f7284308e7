//! The todo list: set by the client, written by the model, kept, cleared, reminded of (dialects.md 8).

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::check;
use crate::kit::{Pi, World, kinds, of_type, text};

/// The list that the description of xcsh shows.
fn seed() -> Value {
    json!([{"id": "phase-1", "name": "Evaluation", "tasks": [
        {"id": "task-1", "content": "Map the read tool surface", "status": "in_progress"},
        {"id": "task-2", "content": "Exercise edit operations", "status": "pending"},
    ]}])
}

fn set(pi: &Pi, phases: &Value) -> Value {
    let data = pi.data(json!({"type": "set_todos", "phases": phases}));
    data["todoPhases"].clone()
}

fn phases(pi: &Pi) -> Value {
    pi.state()["todoPhases"].clone()
}

fn item(status: &str) -> Value {
    json!([{"name": "A", "tasks": [{"content": "a", "status": status}]}])
}

fn todo_call(id: &str, ops: Value) -> Reply {
    Reply::tool(id, "todo_write", json!({ "ops": ops }))
}

fn plan() -> Value {
    json!([{"op": "replace", "phases": [{"name": "Work", "tasks": [{"content": "one"}, {"content": "two"}]}]}])
}

/// Names of the tools of a request.
fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn client_sets_todo_list() {
    let world = World::new([]);
    let pi = world.start();
    assert_eq!(phases(&pi), json!([]));
    assert_eq!(set(&pi, &seed()), seed());
    assert_eq!(phases(&pi), seed());
    let filled = json!([{"id": "phase-1", "name": "B", "tasks": [{"id": "task-1", "content": "b", "status": "pending"}]}]);
    assert_eq!(
        set(&pi, &json!([{"name": " B", "tasks": [{"content": "b "}]}])),
        filled
    );
    for (list, error) in [
        (json!(null), "phases must be a list"),
        (
            item("weird"),
            "phases[0].tasks[0].status must be one of pending, in_progress, completed, abandoned",
        ),
    ] {
        assert_eq!(pi.error(json!({"type": "set_todos", "phases": list})), error);
    }
    assert_eq!(pi.error(json!({"type": "set_todos"})), "phases must be a list");
    assert_eq!(phases(&pi), filled, "a list that is refused changes nothing");
    assert_eq!(set(&pi, &json!([])), json!([]));
    pi.finish();
}

#[test]
fn todo_list_is_stored_with_session() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    set(&pi, &seed());
    pi.say("Hi");
    let file = pi.file();
    let kept = check::entries(&file);
    let entry = kept.iter().find(|entry| entry["type"] == "custom").unwrap();
    assert_eq!(
        (&entry["customType"], &entry["data"]["phases"]),
        (&json!("user_todo_edit"), &seed())
    );
    pi.get("new_session");
    assert_eq!(phases(&pi), json!([]), "another session has its own");
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(phases(&pi), seed());
    pi.finish();
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(phases(&pi), seed());
    pi.get("clone");
    assert_eq!(phases(&pi), seed());
    pi.finish();
}

#[test]
fn todo_list_belongs_to_branch() {
    let world = World::new([Reply::text(["ok"]), Reply::text(["ok"])]);
    let pi = world.start();
    pi.say("One");
    pi.say("Two");
    set(&pi, &seed());
    let entries = check::entries(&pi.file());
    let user = entries
        .iter()
        .filter(|entry| entry["message"]["role"] == "user")
        .nth(1)
        .unwrap();
    let leaf = entries.last().unwrap()["id"].clone();
    pi.data(json!({"type": "navigate_tree", "targetId": user["id"]}));
    assert_eq!(phases(&pi), json!([]));
    pi.data(json!({"type": "navigate_tree", "targetId": leaf}));
    assert_eq!(phases(&pi), seed());
    pi.finish();
}

#[test]
fn completed_todos_are_cleared_with_event() {
    let world = World::new([]);
    world.settings(json!({"tasks": {"todoClearDelay": 0.05}}));
    let pi = world.start();
    let list = json!([
        {"name": "A", "tasks": [{"content": "a", "status": "completed"}, {"content": "b", "status": "abandoned"}]},
        {"name": "B", "tasks": [{"content": "c"}]},
    ]);
    assert_eq!(
        set(&pi, &list).as_array().unwrap().len(),
        2,
        "first they are there"
    );
    pi.wait("todo_auto_clear");
    pi.wait("todo_auto_clear");
    let left = phases(&pi);
    assert_eq!(
        (&left[0]["name"], left.as_array().unwrap().len()),
        (&json!("B"), 1)
    );
    let lines = pi.lines();
    let events = of_type(&lines, "todo_auto_clear");
    assert_eq!(events, [&json!({"type": "todo_auto_clear"}); 2]);
    pi.finish();
}

#[test]
fn completed_todos_stay_without_clear_delay() {
    let world = World::new([]);
    world.settings(json!({"tasks": {"todoClearDelay": -1}}));
    let pi = world.start();
    let before = set(&pi, &item("completed"));
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(phases(&pi), before);
    pi.finish();
}

#[test]
fn todo_tool_is_offered_only_when_enabled() {
    let table: [(Value, &[&str], bool); 8] = [
        (json!({}), &[], false),
        (json!({}), &["--tools", "*"], false),
        (json!({}), &["--tools", "read,todo_write"], true),
        (json!({"defaultTools": ["+todo_write"]}), &[], true),
        (json!({"todo": {"enabled": true}}), &[], true),
        (json!({"todo": {"enabled": true}}), &["--tools", "read"], false),
        (
            json!({"todo": {"enabled": true}}),
            &["--exclude-tools", "todo_write"],
            false,
        ),
        (json!({"todo": {"enabled": true}}), &["--no-tools"], false),
    ];
    for (settings, args, wanted) in table {
        let world = World::new([todo_call("c", plan()), Reply::text(["ok"])]);
        world.settings(settings.clone());
        let pi = world.start_with(args);
        pi.say("Go");
        let request = world.server.requests()[0].body.clone();
        let has = request["tools"].is_array() && offered(&request).contains(&"todo_write");
        assert_eq!(has, wanted, "{settings} {args:?}");
        assert_eq!(request.to_string().contains("Plan work in steps"), wanted);
        let lines = pi.lines();
        let end = of_type(&lines, "tool_execution_end")[0];
        assert_eq!(end["isError"], !wanted, "{end}");
        if !wanted {
            assert_eq!(end["result"]["content"][0]["text"], "Tool todo_write not found");
        }
        pi.finish();
    }
}

#[test]
fn todo_tool_updates_list() {
    let bad = json!([{"op": "finish"}]);
    let done = json!([{"op": "update", "id": "task-1", "status": "completed"}]);
    let world = World::new([
        todo_call("c1", plan()),
        todo_call("c2", bad),
        todo_call("c3", done),
        Reply::text(["ok"]),
    ]);
    let pi = world.start_with(&["--tools", "todo_write"]);
    pi.say("Go");
    let list = json!([{"id": "phase-1", "name": "Work", "tasks": [
        {"id": "task-1", "content": "one", "status": "completed"},
        {"id": "task-2", "content": "two", "status": "in_progress"},
    ]}]);
    assert_eq!(phases(&pi), list);
    let lines = pi.lines();
    let ends = of_type(&lines, "tool_execution_end");
    let errors: Vec<&Value> = ends.iter().map(|end| &end["isError"]).collect();
    assert_eq!(errors, [false, true, false]);
    assert_eq!(
        ends[2]["result"]["details"],
        json!({"phases": list, "storage": "session"})
    );
    let told = text(&ends[2]["result"]);
    assert!(
        told.starts_with("Remaining items (1):\n- task-2 [in_progress] two (Work)\nPhase 1/1"),
        "{told}"
    );
    assert!(text(&ends[1]["result"]).starts_with("ops[0].op must be one of"));
    let file = pi.file();
    pi.finish();
    let pi = world.start_with(&["--session", file.to_str().unwrap(), "--tools", "todo_write"]);
    let tasks = phases(&pi)[0]["tasks"].clone();
    assert_eq!(
        tasks,
        json!([{"id": "task-2", "content": "two", "status": "in_progress"}])
    );
    pi.finish();
}

#[test]
fn todo_list_without_file_is_in_memory() {
    let world = World::new([todo_call("c", plan()), Reply::text(["ok"])]);
    let pi = world.start_with(&["--tools", "todo_write", "--no-session"]);
    let lines = pi.say("Go");
    let details = &of_type(&lines, "tool_execution_end")[0]["result"]["details"];
    assert_eq!(details["storage"], "memory");
    pi.finish();
}

#[test]
fn todo_reminder_follows_early_stop() {
    let done = json!([
        {"op": "update", "id": "task-1", "status": "completed"},
        {"op": "update", "id": "task-2", "status": "completed"},
    ]);
    let world = World::new([
        todo_call("c1", plan()),
        Reply::text(["That was it."]),
        todo_call("c2", done),
        Reply::text(["Now it is."]),
    ]);
    world.settings(json!({"todo": {"enabled": true, "reminders": true}}));
    let pi = world.start();
    let lines = pi.say("Go");
    let turn = ["turn_start", "message_start", "message_end"];
    let mut expected = vec![
        "response",
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
    ];
    let call = [
        "message_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
    ];
    expected.extend(call);
    expected.extend(["message_start", "message_end", "turn_end"]);
    expected.extend(turn);
    expected.extend([
        "turn_end",
        "agent_end",
        "todo_reminder",
        "agent_start",
        "turn_start",
    ]);
    expected.extend(call);
    expected.extend(["message_start", "message_end", "turn_end"]);
    expected.extend(turn);
    expected.extend(["turn_end", "agent_end", "agent_settled"]);
    assert_eq!(kinds(&lines), expected);
    assert_eq!(
        *of_type(&lines, "todo_reminder")[0],
        json!({"type": "todo_reminder", "attempt": 1, "maxAttempts": 3, "todos": [
            {"id": "task-1", "content": "one", "status": "in_progress"},
            {"id": "task-2", "content": "two", "status": "pending"},
        ]})
    );
    let request = world.server.requests()[2].body.clone();
    let last = request["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(
        last.contains("<system-reminder>") && last.contains("task-2 [pending] two (Work)"),
        "{last}"
    );
    let kept = check::entries(&pi.file());
    let reminder = kept
        .iter()
        .find(|entry| entry["type"] == "custom_message")
        .unwrap();
    assert_eq!(
        (&reminder["customType"], &reminder["display"]),
        (&json!("todo-reminder"), &json!(false))
    );
    pi.finish();
}

#[test]
fn todo_reminder_needs_setting_and_tool() {
    for settings in [
        json!({"todo": {"enabled": true}}),
        // A list of a client is none of the model's business when it has no tool for it.
        json!({"todo": {"reminders": true}}),
        json!({"todo": {"enabled": true, "reminders": {"max": 0}}}),
    ] {
        let world = World::new([Reply::text(["ok"])]);
        world.settings(settings);
        let pi = world.start();
        set(&pi, &seed());
        let lines = pi.say("Hi");
        assert!(of_type(&lines, "todo_reminder").is_empty());
        pi.finish();
    }
}

#[test]
fn todo_reminder_needs_active_tool() {
    let world = World::new([Reply::text(["ok"])]);
    world.settings(json!({"todo": {"enabled": true, "reminders": true}}));
    let pi = world.start();
    set(&pi, &seed());
    pi.data(json!({"type": "set_active_tools", "toolNames": ["read"]}));
    let lines = pi.say("Hi");
    assert!(of_type(&lines, "todo_reminder").is_empty());
    pi.finish();
}

#[test]
fn todo_reminders_are_limited() {
    let world = World::new([Reply::text(["no"]).repeat()]);
    world.settings(json!({"todo": {"enabled": true, "reminders": {"max": 2}}}));
    let pi = world.start();
    set(&pi, &seed());
    for _ in 0..2 {
        let lines = pi.say("Hi");
        let attempts: Vec<&Value> = of_type(&lines, "todo_reminder")
            .iter()
            .map(|line| &line["attempt"])
            .collect();
        assert_eq!(attempts, [1, 2]);
        let ends: Vec<&Value> = of_type(&lines, "agent_end")
            .iter()
            .map(|line| &line["willRetry"])
            .collect();
        assert_eq!(ends, [true, true, false]);
    }
    pi.finish();
}

#[test]
fn todo_list_can_change_during_run() {
    let world = World::new([crate::kit::bash("c", "sleep 0.3"), Reply::text(["ok"])]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    assert_eq!(set(&pi, &seed()), seed());
    pi.settled();
    let file = pi.file();
    pi.finish();
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(phases(&pi), seed());
    assert_eq!(pi.messages().len(), 4);
    pi.finish();
}

#[test]
fn todo_tool_is_always_offered_to_xcsh() {
    for (dialect, has_it) in [("xcsh", true), ("pi", false)] {
        let world = World::new([Reply::text(["ok"])]);
        world.settings(json!({"todo": {"enabled": false}}));
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        pi.say("Hello");
        let asked = world.server.requests()[0].body.to_string();
        assert_eq!(asked.contains("todo_write"), has_it, "{dialect}");
        pi.finish();
    }
}
