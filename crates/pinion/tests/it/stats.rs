//! What a session has used: `get_session_stats` and `get_context_usage`.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply, Usage};

use crate::kit::{Pi, World, bash};

fn used(reply: Reply, input: u64, output: u64, cache_read: u64, cache_write: u64) -> Reply {
    reply.usage(Usage {
        input,
        output,
        cache_read,
        cache_write,
        thinking: 0,
    })
}

fn stats(pi: &Pi) -> Value {
    pi.get("get_session_stats")
}

#[track_caller]
fn near(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
}

#[test]
fn stats_of_new_session_are_zero() {
    let world = World::new([]);
    let pi = world.start();
    let (state, stats) = (pi.state(), stats(&pi));
    assert_eq!(
        (&stats["sessionId"], &stats["sessionFile"]),
        (&state["sessionId"], &state["sessionFile"])
    );
    for key in [
        "userMessages",
        "assistantMessages",
        "toolCalls",
        "toolResults",
        "totalMessages",
        "cost",
    ] {
        assert_eq!(stats[key], 0, "{key}");
    }
    assert_eq!(
        stats["tokens"],
        json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0})
    );
    assert_eq!(stats["contextUsage"]["contextWindow"], 200_000);
    pi.finish();
}

#[test]
fn stats_sum_several_answers() {
    let calls = bash("c1", "echo x").then_tool("c2", "ls", json!({}));
    let world = World::new([
        used(calls, 1_000, 100, 500, 200),
        used(Reply::text(["done"]), 2_000, 50, 1_500, 0),
        used(Reply::text(["more"]), 3_000, 10, 0, 400),
    ]);
    let pi = world.start();
    pi.say("Go");
    pi.say("More");
    let stats = stats(&pi);
    for (key, count) in [
        ("userMessages", 2),
        ("assistantMessages", 3),
        ("toolCalls", 2),
        ("toolResults", 2),
        ("totalMessages", 7),
    ] {
        assert_eq!(stats[key], count, "{key}");
    }
    assert_eq!(
        stats["tokens"],
        json!({"input": 6_000, "output": 160, "cacheRead": 2_000, "cacheWrite": 600, "total": 8_760})
    );
    // Dollars for a million tokens: 3, 15, 0.3, 3.75.
    near(
        &stats["cost"],
        (6_000.0 * 3.0 + 160.0 * 15.0 + 2_000.0 * 0.3 + 600.0 * 3.75) / 1e6,
    );
    let usage = &stats["contextUsage"];
    assert_eq!(
        (&usage["tokens"], &usage["contextWindow"]),
        (&json!(3_410), &json!(200_000))
    );
    near(&usage["percent"], 1.705);
    assert_eq!(*usage, pi.get("get_context_usage")["usage"]);
    assert_eq!(*usage, pi.state()["contextUsage"]);
    pi.finish();
}

#[test]
fn stats_after_model_change_use_new_window() {
    let world = World::new([
        used(Reply::text(["one"]), 10_000, 100, 0, 0),
        used(Reply::text(["two"]), 20_000, 200, 0, 0),
    ]);
    let pi = world.start();
    pi.say("One");
    pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    let usage = stats(&pi)["contextUsage"].clone();
    assert_eq!(
        (&usage["tokens"], &usage["contextWindow"]),
        (&json!(10_100), &json!(128_000))
    );
    pi.say("Two");
    let after = stats(&pi);
    near(
        &after["cost"],
        (10_000.0 * 3.0 + 100.0 * 15.0 + 20_000.0 * 2.0 + 200.0 * 8.0) / 1e6,
    );
    assert_eq!(after["contextUsage"]["tokens"], 20_200);
    let (file, before) = (pi.file(), after);
    pi.finish();
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(stats(&again)["tokens"], before["tokens"]);
    near(&stats(&again)["cost"], before["cost"].as_f64().unwrap());
    again.finish();
}

#[test]
fn context_usage_estimates_content_after_last_answer() {
    let world = World::new([used(Reply::text(["one"]), 10_000, 100, 0, 0)]);
    let pi = world.start();
    pi.say("One");
    pi.data(json!({"type": "bash", "command": "echo 12345678901"}));
    // 16 characters of the command and 12 of its output.
    assert_eq!(stats(&pi)["contextUsage"]["tokens"], 10_100 + 7);
    pi.finish();
}

#[test]
fn stats_keep_size_after_aborted_answer() {
    let world = World::new([
        used(Reply::text(["one"]), 10_000, 100, 0, 0),
        Reply::text(["half"]).gate("never"),
    ]);
    let pi = world.start();
    pi.say("One");
    pi.agent.skip();
    pi.prompt("Two");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "abort"}));
    let tokens = stats(&pi)["contextUsage"]["tokens"].as_u64().unwrap();
    assert!((10_100..10_200).contains(&tokens), "{tokens}");
    pi.finish();
}

#[test]
fn stats_count_failed_answers() {
    let world = World::new([
        Reply::error(ErrorKind::Invalid),
        used(Reply::text(["ok"]), 1_000, 10, 0, 0),
    ]);
    let pi = world.start();
    pi.say("One");
    pi.say("Two");
    let stats = stats(&pi);
    assert_eq!(
        (&stats["assistantMessages"], &stats["tokens"]["total"]),
        (&json!(2), &json!(1_010))
    );
    pi.finish();
}

#[test]
fn stats_restart_with_session_change() {
    let world = World::new([used(Reply::text(["one"]), 10_000, 100, 0, 0)]);
    let pi = world.start();
    pi.say("One");
    let (file, before) = (pi.file(), stats(&pi));
    pi.data(json!({"type": "new_session"}));
    assert_eq!(
        (&stats(&pi)["cost"], &stats(&pi)["tokens"]["total"]),
        (&json!(0), &json!(0))
    );
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(stats(&pi), before);
    pi.finish();
}
