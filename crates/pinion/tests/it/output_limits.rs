//! The output limit of a request: that of the model, lowered to what the context window leaves for the answer.

use serde_json::{Value, json};
use testkit::llm::{Reply, Usage};
use testkit::workspace::default_models;

use crate::kit::{Pi, World, of_type};

/// The limit of the model.
const OWN: u64 = 32_000;

/// A model with a window of 60,000 tokens, whose answers report a context of these sizes.
fn world(contexts: &[u64]) -> World {
    let replies = contexts.iter().map(|input| {
        Reply::text(["x"]).usage(Usage {
            input: *input,
            output: 20,
            ..Usage::default()
        })
    });
    let world = World::new(replies);
    let mut models = default_models(&world.server.url());
    models["providers"]["mock-anthropic"]["models"][0]["contextWindow"] = json!(60_000);
    world.dir.write_models(&models).unwrap();
    world
}

/// Output limit and thinking of each request.
fn asked(world: &World) -> Vec<(u64, Value)> {
    let requests = world.server.requests().into_iter();
    requests
        .map(|request| {
            let body = &request.body;
            (body["max_tokens"].as_u64().unwrap(), body["thinking"].clone())
        })
        .collect()
}

fn without_compaction(pi: &Pi) {
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
}

#[test]
fn output_limit_fits_into_rest_of_window() {
    let world = world(&[40_000, 100]);
    let pi = world.start();
    pi.say("one");
    pi.say("two");
    let asked = asked(&world);
    assert_eq!(asked[0].0, OWN);
    // Of 60,000 tokens, 40,020 were counted, one is estimated, and 4,096 stay free.
    assert_eq!(asked[1].0, 60_000 - 40_021 - 4_096);
    assert_eq!(asked[1].1["budget_tokens"], asked[0].1["budget_tokens"]);
    pi.finish();
}

#[test]
fn full_window_leaves_the_output_limit() {
    let world = world(&[59_500, 100]);
    let pi = world.start();
    without_compaction(&pi);
    pi.say("one");
    pi.say("two");
    assert_eq!(asked(&world)[1].0, OWN);
    pi.finish();
}

#[test]
fn newest_pi_asks_for_what_a_count_leaves() {
    let world = world(&[59_500, 100]);
    let pi = world.start_with(&["--rpc-dialect", "pi-delta", "--thinking", "off"]);
    without_compaction(&pi);
    pi.say("one");
    pi.say("two");
    assert_eq!(asked(&world)[1].0, 1);
    pi.finish();
}

#[test]
fn full_window_by_estimate_leaves_the_output_limit() {
    let world = world(&[100]);
    let pi = world.start_with(&["--rpc-dialect", "pi-delta"]);
    without_compaction(&pi);
    let lines = pi.say(&"word ".repeat(60_000));
    assert_eq!(asked(&world)[0].0, OWN);
    assert_eq!(of_type(&lines, "agent_end").len(), 1);
    pi.finish();
}

#[test]
fn counts_before_a_compaction_lower_no_limit() {
    let world = World::new([
        Reply::text(["long enough answer"]).usage(Usage {
            input: 190_000,
            ..Usage::default()
        }),
        Reply::text(["THE SUMMARY"]),
        Reply::text(["x"]),
    ]);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = world.start();
    let lines = pi.say("A question that is long enough");
    assert_eq!(of_type(&lines, "compaction_end").len(), 1);
    pi.say("Next question");
    assert_eq!(asked(&world)[2].0, OWN);
    pi.finish();
}
