//! Which models there are and how much they think: the list and its renewal, levels from off to max, prices by size.

use serde_json::{Value, json};
use testkit::llm::{DeadPort, Reply};

use crate::kit::{World, answers};
use crate::local_server::Front;

/// A list in the form of models.dev: Anthropic's default model and a new one.
fn list() -> Value {
    let model = |id: &str| {
        json!({"id": id, "name": id, "tool_call": true, "cost": {"input": 1, "output": 2},
            "limit": {"context": 500_000, "output": 9000}})
    };
    json!({"anthropic": {"models": {"a": model("claude-opus-4-7"), "b": model("claude-from-the-list")}}})
}

fn knows_the_new_one(world: &World) -> bool {
    let done = world.run(
        &[
            "--mode",
            "json",
            "--model",
            "anthropic/claude-from-the-list",
            "-p",
            "Hi",
        ],
        "",
    );
    !done.err.contains("not found for provider")
}

#[test]
fn models_update_renews_model_list() {
    let world = World::new([]);
    let file = world.dir.agent_dir().join("models-catalogue.jsonl");
    let done = world.run(&["models", "status"], "");
    assert_eq!(done.code, Some(0));
    assert!(
        done.out.starts_with("In use: the built-in list of "),
        "{}",
        done.out
    );
    assert!(!knows_the_new_one(&world));
    // Another server, named by the user.
    let front = Front::start(&[("/api.json", list())], "");
    let url = format!("{}/api.json?key=hidden", front.url());
    let done = world.run(&["models", "update", "--from", &url], "");
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{}", done.out);
    assert!(
        done.out.contains("1 of the providers from http://127.0.0.1:"),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("As built in: ") && !done.out.contains("hidden"),
        "{}",
        done.out
    );
    let done = world.run(&["models", "status", "--json"], "");
    let status: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(
        (&status["inUse"], &status["providers"]),
        (&json!("file"), &json!(43))
    );
    assert!(
        status["source"].as_str().unwrap().ends_with("/api.json"),
        "{status}"
    );
    assert!(knows_the_new_one(&world));
    // Only the file itself is left behind.
    let left = crate::kit::files_below(&world.dir.agent_dir());
    assert!(
        !left.iter().any(|path| path.to_string_lossy().ends_with(".tmp")),
        "{left:?}"
    );
    std::fs::write(&file, "damaged").unwrap();
    let done = world.run(&["--list-models"], "");
    assert_eq!(done.code, Some(0));
    assert!(
        done.err.contains("models-catalogue.jsonl is damaged"),
        "{}",
        done.err
    );
    assert!(!knows_the_new_one(&world));
}

#[test]
fn failed_models_update_keeps_current_list() {
    let world = World::new([]);
    let file = world.dir.agent_dir().join("models-catalogue.jsonl");
    let front = Front::start(&[("/page", json!("no list")), ("/empty", json!({}))], "");
    let gone = DeadPort::new().unwrap();
    world.dir.write("list.json", list().to_string()).unwrap();
    world.dir.write("cut.json", &list().to_string()[..50]).unwrap();
    let at = |path: &str| format!("{}{path}", front.url());
    for (from, reason) in [
        (gone.url(), "connection refused"),
        (at("/page"), "no model of a known provider"),
        (at("/empty"), "no model of a known provider"),
        (at("/nothing"), "404 Not Found"),
        ("cut.json".to_owned(), "it is not JSON"),
        ("absent.json".to_owned(), "No such file"),
        ("http://lists.invalid/api.json".to_owned(), "only https:"),
    ] {
        let done = world.run(&["models", "update", "--from", &from], "");
        assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{from}");
        assert!(done.err.contains(reason), "{from}: {}", done.err);
        assert!(done.err.contains("the built-in list of "), "{from}: {}", done.err);
        assert!(!file.exists(), "{from}");
    }
    let done = world.run(&["models", "update", "--offline"], "");
    assert!(done.err.contains("--offline"), "{}", done.err);
    let done = world.run(&["models", "update", "--from", "list.json"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let before = std::fs::read(&file).unwrap();
    let done = world.run(&["models", "update", "--from", &at("/empty")], "");
    assert!(done.err.contains("stays in use"), "{}", done.err);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    for words in [&["models", "sideways"][..], &["models", "update", "now"]] {
        let done = world.run(words, "");
        assert_eq!(done.code, Some(2), "{}", done.out);
        assert!(done.err.contains(words.last().unwrap()), "{}", done.err);
    }
}

/// A world whose only model is this one, of chat completions.
fn with_model(world: &World, mut model: Value) {
    model["id"] = json!("m");
    let own = json!({"baseUrl": format!("{}/openai/v1", world.server.url()), "api": "openai-completions", "apiKey": "k",
        "models": [model]});
    world
        .dir
        .write_models(&json!({"providers": {"own": own}}))
        .unwrap();
}

#[test]
fn thinking_levels_are_clamped_and_mapped_to_model() {
    let replies = (0..7).map(|_| Reply::text(["ok"]));
    let world = World::new(replies);
    let map = json!({"minimal": null, "low": null, "high": "strong", "max": "everything", "off": "none"});
    with_model(&world, json!({"reasoning": true, "thinkingLevelMap": map}));
    let pi = world.start_with(&["--provider", "own", "--model", "m:xhigh"]);
    assert_eq!(pi.state()["thinkingLevel"], "max");
    assert_eq!(
        pi.get("get_available_thinking_levels")["levels"],
        json!(["off", "medium", "high", "max"])
    );
    for (number, (wanted, level, word)) in [
        ("off", "off", "none"),
        ("minimal", "medium", "medium"),
        ("low", "medium", "medium"),
        ("medium", "medium", "medium"),
        ("high", "high", "strong"),
        ("xhigh", "max", "everything"),
        ("max", "max", "everything"),
    ]
    .into_iter()
    .enumerate()
    {
        pi.data(json!({"type": "set_thinking_level", "level": wanted}));
        assert_eq!(pi.state()["thinkingLevel"], level, "{wanted}");
        pi.say("Hi");
        assert_eq!(
            world.server.requests()[number].body["reasoning_effort"],
            word,
            "{wanted}"
        );
    }
    let error = pi.error(json!({"type": "set_thinking_level", "level": "much"}));
    assert_eq!(error, "Invalid thinking level: much");
    let mut cycled = Vec::new();
    for _ in 0..4 {
        cycled.push(pi.get("cycle_thinking_level")["level"].clone());
    }
    assert_eq!(cycled, ["off", "medium", "high", "max"]);
    pi.finish();
}

#[test]
fn thinking_budgets_follow_settings() {
    let world = World::new([Reply::text(["ok"]), Reply::text(["ok"])]);
    world.settings(json!({"thinkingBudgets": {"low": 3000}}));
    let pi = world.start_with(&["--thinking", "low"]);
    pi.say("Hi");
    pi.data(json!({"type": "set_thinking_level", "level": "medium"}));
    pi.say("Hi");
    pi.finish();
    let budgets: Vec<Value> = world
        .server
        .requests()
        .iter()
        .map(|request| request.body["thinking"]["budget_tokens"].clone())
        .collect();
    assert_eq!(budgets, [3000, 8192]);
}

#[test]
fn model_patterns_with_levels_make_scope() {
    let world = World::new([]);
    let pi = world.start_with(&[
        "--models",
        "mock-*/*-mock:low,claude-plain,mock-google/[fg]*:high",
    ]);
    let mut seen = Vec::new();
    for _ in 0..5 {
        let next = pi.get("cycle_model");
        let id = next["model"]["id"].as_str().unwrap().to_owned();
        seen.push(format!("{id} {}", next["thinkingLevel"].as_str().unwrap()));
    }
    assert_eq!(
        seen,
        [
            "gpt-mock low",
            "resp-mock low",
            "gemini-mock low",
            "claude-plain off",
            "claude-mock low"
        ]
    );
    pi.finish();
    let pi = world.start_with(&["--models", "nothing-*,claude-plain:much"]);
    pi.warns("No models match pattern \"nothing-*\"");
    pi.warns("Invalid thinking level \"much\"");
    pi.finish();
}

#[test]
fn tiered_prices_apply_above_input_threshold() {
    let cost = json!({"input": 1, "output": 2, "cacheRead": 0.5, "cacheWrite": -3, "tiers": [
        {"inputTokensAbove": 1000, "input": 10, "output": 20, "cacheRead": 5, "cacheWrite": 0}]});
    let mut totals = Vec::new();
    for input in [1000, 1001] {
        let world = World::new([Reply::text(["ok"]).usage(testkit::llm::Usage {
            input,
            output: 500,
            ..testkit::llm::Usage::default()
        })]);
        with_model(&world, json!({"cost": cost}));
        let pi = world.start_with(&["--provider", "own", "--model", "m"]);
        let lines = pi.say("Hi");
        let usage = &answers(&lines)[0]["usage"];
        totals.push((usage["input"].clone(), usage["cost"]["total"].as_f64().unwrap()));
        assert_eq!(pi.state()["model"]["cost"]["tiers"][0]["inputTokensAbove"], 1000);
        pi.finish();
    }
    let close = |total: f64, wanted: f64| (total - wanted).abs() < 1e-12;
    assert!(
        close(totals[0].1, 0.002) && close(totals[1].1, 0.02001),
        "{totals:?}"
    );
}

/// A model of Anthropic's that the list does not have, at a server of the test, and what the server answers.
fn refused(message: &str) -> String {
    let error = json!({"error": {"kind": "invalid", "status": 404, "message": message}});
    let world = World::new([serde_json::from_value::<Reply>(error).unwrap()]);
    let own = json!({"baseUrl": format!("{}/anthropic", world.server.url()), "apiKey": "k"});
    world
        .dir
        .write_models(&json!({"providers": {"anthropic": own}}))
        .unwrap();
    let pi = world.start_with(&["--provider", "anthropic", "--model", "claude-opus-5-4"]);
    let lines = pi.say("Hi");
    let error = answers(&lines)[0]["errorMessage"].as_str().unwrap().to_owned();
    pi.finish();
    error
}

#[test]
fn unknown_model_error_names_nearest_models() {
    let error = refused("model: claude-opus-5-4 was not found");
    let (first, advice) = error.split_once('\n').unwrap();
    assert!(
        first.starts_with("404 ") && first.contains("claude-opus-5-4 was not found"),
        "{error}"
    );
    assert_eq!(
        advice,
        "anthropic does not offer the model \"claude-opus-5-4\" for this key. Nearest models of anthropic: claude-opus-5-5, \
         claude-opus-4-5, claude-opus-4-6. List all: pinion --list-models anthropic"
    );
    assert!(!refused("max_tokens is too large").contains("Nearest models"));
}

#[test]
fn thinking_level_changes_inside_the_conversation() {
    let world = World::new((0..2).map(|_| Reply::text(["ok"])));
    let own = json!({"baseUrl": format!("{}/anthropic", world.server.url()), "apiKey": "k"});
    world
        .dir
        .write_models(&json!({"providers": {"anthropic": own}}))
        .unwrap();
    let pi = world.start_with(&[
        "--provider",
        "anthropic",
        "--model",
        "claude-opus-5-5",
        "--thinking",
        "low",
    ]);
    pi.say("Hi");
    pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    pi.say("Again");
    pi.finish();
    let requests = world.server.requests();
    let efforts: Vec<Vec<&str>> = requests
        .iter()
        .map(|request| {
            let messages = request.body["messages"].as_array().unwrap().iter();
            messages
                .filter_map(|message| message["output_config"]["effort"].as_str())
                .collect()
        })
        .collect();
    assert_eq!(efforts, [vec!["low"], vec!["low", "high"]]);
    for part in ["system", "tools", "thinking", "output_config"] {
        assert_eq!(requests[0].body[part], requests[1].body[part], "{part}");
    }
    assert_eq!(requests[0].body["output_config"]["effort"], "low");
    let read = requests[0].body["tools"].as_array().unwrap().iter();
    let mut read = read.filter(|tool| tool["name"] == "read");
    assert_eq!(read.next().unwrap()["strict"], true);
}
