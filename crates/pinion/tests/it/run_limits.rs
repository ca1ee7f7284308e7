//! Limits of runs: command line, settings, commands, `agent_end`.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{World, bash, kinds, of_type};

const MODEL: [&str; 4] = ["--provider", "mock-anthropic", "--model", "claude-mock"];

/// The limit that each run ended with.
fn limits(lines: &[Value]) -> Vec<Value> {
    let ends = of_type(lines, "agent_end");
    ends.iter().map(|end| end["limit"].clone()).collect()
}

#[test]
fn turns_end_run_until_limit_is_raised() {
    let world = World::new([
        bash("b", "true"),
        bash("b", "true"),
        bash("b", "true"),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&["--max-turns", "2"]);
    let lines = pi.say("Go");
    assert_eq!(limits(&lines), [json!({"kind": "turns", "value": 2})]);
    assert_eq!(world.server.requests().len(), 2);
    assert_eq!(of_type(&lines, "tool_execution_end").len(), 2);
    assert_eq!(kinds(&lines).last(), Some(&"agent_settled"));
    let known = pi.get("get_limits");
    assert_eq!(known["limits"], json!({"maxTurns": 2}));
    assert_eq!(
        (&known["used"]["turns"], &known["used"]["toolCalls"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(known["reached"], json!({"kind": "turns", "value": 2}));
    let error = pi.error(json!({"type": "prompt", "message": "More"}));
    assert_eq!(
        error,
        "Limit reached: 2 turns. Set a higher limit with set_limits"
    );
    let error = pi.error(json!({"type": "continue"}));
    assert!(error.starts_with("Limit reached: 2 turns"), "{error}");
    pi.data(json!({"type": "set_limits", "limits": {"maxTurns": 9}}));
    pi.agent.skip();
    pi.data(json!({"type": "continue"}));
    pi.settled();
    assert_eq!(world.server.requests().len(), 4);
    assert_eq!(pi.get("get_last_assistant_text")["text"], "done");
    pi.finish();
}

#[test]
fn limits_of_prompt_bind_its_run_alone() {
    let world = World::new([bash("b", "true"), Reply::text(["again"]), bash("b", "sleep 600")]);
    let pi = world.start();
    let before = pi.lines().len();
    pi.data(json!({"type": "prompt", "message": "Go", "limits": {"maxTurns": 1}}));
    pi.settled();
    let lines = pi.lines().split_off(before);
    assert_eq!(limits(&lines), [json!({"kind": "turns", "value": 1})]);
    assert_eq!(limits(&pi.say("Again")), [Value::Null]);
    pi.prompt("Sleep");
    pi.wait("tool_execution_start");
    let error = pi.error(
        json!({"type": "prompt", "message": "x", "limits": {"maxTurns": 1}, "streamingBehavior": "steer"}),
    );
    assert!(error.contains("set_limits"), "{error}");
    pi.get("abort");
    let error = pi.error(json!({"type": "prompt", "message": "x", "limits": {"maxTurns": 0}}));
    assert_eq!(error, "maxTurns must be at least 1");
    pi.finish();
}

#[test]
fn limits_in_snake_case_apply() {
    let world = World::new([bash("b", "true").repeat()]);
    let pi = world.start();
    let before = pi.lines().len();
    pi.data(json!({"type": "prompt", "message": "Go", "limits": {"max_turns": 1}}));
    pi.settled();
    let lines = pi.lines().split_off(before);
    assert_eq!(limits(&lines), [json!({"kind": "turns", "value": 1})]);
    let set = pi.data(json!({"type": "set_limits", "limits": {"max_tool_calls": 9, "max_cost": 2}}));
    assert_eq!(set["limits"], json!({"maxToolCalls": 9, "maxCost": 2}));
    pi.finish();
}

#[test]
fn time_limit_ends_running_tool() {
    let world = World::new([bash("b", "sleep 600"), Reply::text(["never"])]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    // Not from the start: a second may be over before the tool runs.
    pi.data(json!({"type": "set_limits", "limits": {"maxSeconds": 1}}));
    pi.settled();
    let lines = pi.lines();
    assert_eq!(limits(&lines), [json!({"kind": "seconds", "value": 1})]);
    assert_eq!(of_type(&lines, "tool_execution_end")[0]["isError"], true);
    assert_eq!(world.server.requests().len(), 1);
    pi.finish();
}

#[test]
fn time_limit_of_command_line_ends_answer() {
    let world = World::new([Reply::text(["half"]).gate("never")]);
    let pi = world.start_with(&["--max-time", "1"]);
    let lines = pi.say("Go");
    assert_eq!(limits(&lines), [json!({"kind": "seconds", "value": 1})]);
    pi.finish();
}

#[test]
fn cost_limit_counts_prices_of_model() {
    // 100 tokens in and 20 out cost 0.0006 dollars.
    let world = World::new([bash("b", "true").repeat()]);
    world.settings(json!({"limits": {"maxCost": 0.0015}}));
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(limits(&lines), [json!({"kind": "cost", "value": 0.0015})]);
    assert_eq!(world.server.requests().len(), 3);
    pi.finish();
}

#[test]
fn cost_limit_needs_known_price() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start_with(&["--provider", "offline", "--model", "echo"]);
    let error = pi.error(json!({"type": "set_limits", "limits": {"maxCost": 1}}));
    assert!(
        error.starts_with("The price of offline/echo is unknown"),
        "{error}"
    );
    assert_eq!(pi.get("get_limits")["limits"], json!({}));
    pi.finish();
}

#[test]
fn calls_beyond_limit_do_not_run() {
    let world = World::new([
        Reply::many_tools(3, "bash", json!({"command": "echo x >> count"})),
        Reply::text(["never"]),
    ]);
    let pi = world.start_with(&["--max-tool-calls", "2"]);
    let lines = pi.say("Go");
    assert_eq!(limits(&lines), [json!({"kind": "toolCalls", "value": 2})]);
    let written = std::fs::read_to_string(world.dir.cwd().join("count")).unwrap();
    assert_eq!(written, "x\nx\n");
    let ends = of_type(&lines, "tool_execution_end");
    let refused = ends
        .iter()
        .find(|end| end["isError"] == true)
        .unwrap()
        .to_string();
    assert!(
        refused.contains("The limit of tool calls is reached"),
        "{refused}"
    );
    pi.finish();
}

#[test]
fn repeated_calls_end_run() {
    let world = World::new([bash("b", "echo same").repeat()]);
    let pi = world.start_with(&["--max-repeats", "3"]);
    let lines = pi.say("Go");
    assert_eq!(limits(&lines), [json!({"kind": "repeats", "value": 3})]);
    assert_eq!(world.server.requests().len(), 3);
    pi.finish();
}

#[test]
fn model_is_told_near_limit_if_wanted() {
    let world = World::new([bash("b", "true").repeat()]);
    world.settings(json!({"limits": {"maxTurns": 5, "warn": true}}));
    let pi = world.start();
    pi.say("Go");
    let told: Vec<bool> = world
        .server
        .requests()
        .iter()
        .map(|request| {
            request
                .body
                .to_string()
                .contains("The limit of this work is 5 turns; 4 are used")
        })
        .collect();
    assert_eq!(told, [false, false, false, false, true]);
    pi.finish();
}

#[test]
fn manual_compaction_asks_nothing_beyond_limit() {
    let world = World::new([Reply::text(["x".repeat(2000)]), Reply::text(["summary"])]);
    world.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    let pi = world.start_with(&["--max-turns", "1"]);
    pi.say("Go");
    let error = pi.error(json!({"type": "compact"}));
    assert_eq!(error, "Limit reached: 1 turn");
    assert_eq!(world.server.requests().len(), 1);
    pi.finish();
}

#[test]
fn print_mode_names_limit_and_ends_with_4() {
    let world = World::new([
        Reply::text(["I look."]).then_tool("c", "ls", json!({})),
        Reply::text(["never"]),
    ]);
    let args: Vec<&str> = MODEL
        .iter()
        .chain(&["-p", "--max-turns", "1", "Go"])
        .copied()
        .collect();
    let done = world.run(&args, "");
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(done.err.contains("Limit reached: 1 turn"), "{}", done.err);
}

#[test]
fn wrong_limit_in_settings_fails_closed() {
    let world = World::new([Reply::text(["ok"])]);
    world.settings(json!({"limits": {"maxCost": "five"}}));
    let pi = world.start();
    let error = pi.error(json!({"type": "prompt", "message": "Go"}));
    assert!(error.starts_with("Limit reached: 0 US dollars"), "{error}");
    assert_eq!(world.server.requests().len(), 0);
    pi.data(json!({"type": "set_limits", "limits": {"maxCost": 5}}));
    assert_eq!(limits(&pi.say("Go")), [Value::Null]);
    pi.finish();
    let done = world.run(&["-p", "--max-turns", "many", "Go"], "");
    assert_eq!(done.code, Some(2), "{}", done.err);
}
