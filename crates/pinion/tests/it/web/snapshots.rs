//! The snapshot for a late client: running tools and commands, pending dialogs, status and widgets.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use super::{Tab, Web};
use crate::extensions::{can_run, extended};
use crate::kit::{World, bash};

fn snapshot(tab: &mut Tab) -> Value {
    tab.data(json!({"type": "replay"}))["snapshot"].clone()
}

#[test]
fn snapshot_shows_running_tools_commands_and_queue() {
    let waits = "echo partial; while [ ! -f go ]; do sleep 0.05; done";
    let world = World::new([bash("c1", waits), Reply::text(["Done."]), Reply::text(["More."])]);
    let web = Web::start(&world, &[]);
    let mut one = web.tab();
    let calm = snapshot(&mut one);
    for member in ["retry", "queue", "tools", "bash", "shown", "dialogs"] {
        assert!(calm.get(member).is_none(), "{calm}");
    }
    one.data(json!({"type": "prompt", "message": "Go"}));
    let update = one.wait(|line| {
        line["type"] == "tool_execution_update" && line["partialResult"].to_string().contains("partial")
    });
    one.data(json!({"type": "steer", "message": "sooner"}));
    one.data(json!({"type": "follow_up", "message": "later"}));
    one.send(json!({"type": "bash", "command": "echo shown; sleep 60", "excludeFromContext": true}));
    one.wait_type("bash_execution_update");
    let mut late = web.tab();
    let snap = snapshot(&mut late);
    let tool = &snap["tools"][0];
    for member in ["toolCallId", "toolName", "args", "partialResult"] {
        assert_eq!(tool[member], update[member], "{member}");
    }
    assert_eq!(
        snap["queue"],
        json!({"steering": ["sooner"], "followUp": ["later"]})
    );
    let command = &snap["bash"][0];
    assert_eq!(
        (&command["command"], &command["output"]),
        (&json!("echo shown; sleep 60"), &json!("shown\n"))
    );
    assert_eq!(command["excludeFromContext"], true);
    assert!(command["bashId"].is_string() && command["id"].is_string());
    late.data(json!({"type": "abort_bash"}));
    // The command is killed while the tool still waits.
    one.wait_type("bash_execution_end");
    fs::write(world.dir.cwd().join("go"), "").unwrap();
    one.wait_type("agent_settled");
    let calm = snapshot(&mut late);
    assert!(calm.get("tools").is_none() && calm.get("bash").is_none() && calm.get("queue").is_none());
    web.finish();
}

#[test]
fn snapshot_contains_waiting_retry() {
    let world = World::new([Reply::error(ErrorKind::Overloaded)]);
    world.settings(
        json!({"retry": {"baseDelayMs": 60_000, "maxAgentDelayMs": 60_000, "provider": {"maxRetries": 0}}}),
    );
    let web = Web::start(&world, &[]);
    let mut one = web.tab();
    one.data(json!({"type": "prompt", "message": "Hi"}));
    let start = one.wait_type("auto_retry_start");
    let mut late = web.tab();
    let retry = snapshot(&mut late)["retry"].clone();
    for member in ["attempt", "maxAttempts", "errorMessage"] {
        assert_eq!(retry[member], start[member], "{member}");
    }
    let (left, all) = (
        retry["delayMs"].as_u64().unwrap(),
        start["delayMs"].as_u64().unwrap(),
    );
    assert!(left > 0 && left <= all, "{left} of {all}");
    late.data(json!({"type": "abort_retry"}));
    one.wait_type("auto_retry_end");
    assert!(snapshot(&mut late).get("retry").is_none());
    web.finish();
}

#[test]
fn snapshot_contains_extension_ui_state() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.on("session_start", (event, ctx) => {
            ctx.ui.setStatus("one", "first");
            ctx.ui.setStatus("one", "second");
            ctx.ui.setStatus("two", "gone");
            ctx.ui.setStatus("two", undefined);
            ctx.ui.setWidget("w", ["a line"]);
            ctx.ui.setTitle("A title");
        });
        "#,
    );
    let web = Web::start(&world, &[]);
    let mut one = web.tab_at("/ws?after=0");
    one.wait(|line| line["method"] == "setTitle");
    let shown = snapshot(&mut one)["shown"].clone();
    let frames: Vec<&Value> = shown.as_array().unwrap().iter().collect();
    let methods: Vec<&Value> = frames.iter().map(|frame| &frame["method"]).collect();
    assert_eq!(methods, ["setStatus", "setWidget", "setTitle"], "{shown}");
    assert_eq!(
        (&frames[0]["statusKey"], &frames[0]["statusText"]),
        (&json!("one"), &json!("second"))
    );
    assert_eq!(frames[1]["widgetLines"], json!(["a line"]));
    assert_eq!(frames[2]["title"], "A title");
    web.finish();
}
