//! Refreshes of a provider's prompt cache (docs/guides/models-and-providers.md).

use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::{Reply, Request};

use crate::families::start_with_model;
use crate::hooks::hook;
use crate::kit::{Pi, World, bash, of_type, until};

/// A model whose cache keeps a prompt for 11 seconds, so that a refresh is due after one, and whose prices make each refresh pay.
fn start(world: &World, mode: &str) -> Pi {
    world.settings(json!({"cacheWarming": mode}));
    let model = json!({"id": "m", "contextWindow": 200_000, "maxTokens": 8000, "promptCache": {"short": 11},
        "cost": {"input": 1, "output": 1, "cacheRead": 1, "cacheWrite": 1_000_000}});
    start_with_model(world, "anthropic-messages", "anthropic", &model)
}

fn requests(world: &World) -> Vec<Value> {
    world
        .server
        .requests()
        .into_iter()
        .map(|request| request.body.clone())
        .collect()
}

#[test]
fn refresh_sends_the_last_request_again() {
    // The refresh is held back until the tokens before it are known.
    let refresh = Reply::new().gate("refresh").then_text(["."]);
    let world = World::new([Reply::text(["Hello"]), refresh, Reply::text(["."])]);
    let pi = start(&world, "idle");
    pi.say("Hi");
    let roles = pi.roles();
    let before = pi.data(json!({"type": "get_session_stats"}))["tokens"]["total"].clone();
    world.server.release("refresh");
    let appended = pi.wait("entry_appended")["entry"].clone();
    assert_eq!(
        (
            &appended["type"],
            &appended["kind"],
            &appended["provider"],
            &appended["model"]
        ),
        (
            &json!("usage"),
            &json!("cache_warm"),
            &json!("family"),
            &json!("m")
        )
    );
    let mut sent = requests(&world);
    assert_eq!(sent[1]["max_tokens"], 1);
    for request in &mut sent[..2] {
        request.as_object_mut().unwrap().remove("max_tokens");
    }
    assert_eq!(sent[0], sent[1], "all else is the same");
    let after = pi.data(json!({"type": "get_session_stats"}))["tokens"]["total"].clone();
    assert!(after.as_u64() > before.as_u64(), "{before} {after}");
    assert_eq!(pi.roles(), roles);
    pi.finish();
}

#[test]
fn refresh_comes_while_a_call_runs() {
    let wait = "until [ -e go ]; do sleep 0.02; done";
    let world = World::new([]);
    world.server.set_rule(move |request: &Request| match request.n {
        0 => bash("a", wait),
        _ if request.body["max_tokens"] == 1 => Reply::text(["."]),
        _ => Reply::text(["done"]),
    });
    let pi = start(&world, "streaming");
    pi.prompt("Go");
    pi.wait("entry_appended");
    pi.wait("entry_appended");
    std::fs::write(world.dir.cwd().join("go"), "").unwrap();
    pi.settled();
    let lines = pi.lines();
    let is_refresh: Vec<bool> = requests(&world)
        .iter()
        .map(|body| body["max_tokens"] == 1)
        .collect();
    assert_eq!(is_refresh[..3], [false, true, true]);
    assert_eq!(is_refresh.last(), Some(&false), "the run goes on");
    let end = &of_type(&lines, "tool_execution_end")[0];
    assert_eq!(end["isError"], false);
    pi.finish();
}

#[test]
fn hook_decides_whether_a_refresh_is_sent() {
    let world = World::new([Reply::text(["Hello"])]);
    hook(
        &world,
        "cache_warming_decision.sh",
        r#"cat > seen.json; echo '{"action": "stop"}'"#,
    );
    let pi = start(&world, "idle");
    pi.say("Hi");
    let mut seen = Value::Null;
    // The hook may still be writing the file.
    until("the hook is asked", || {
        let text = std::fs::read_to_string(world.dir.cwd().join("seen.json")).unwrap_or_default();
        seen = serde_json::from_str(&text).unwrap_or_default();
        seen.is_object()
    });
    let event = &seen["event"];
    assert_eq!(event["action"], "warm");
    assert!(event["missCost"].as_f64() > event["warmCost"].as_f64());
    // Longer than a further refresh would take.
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(requests(&world).len(), 1);
    pi.finish();
}
