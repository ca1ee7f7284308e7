//! The commands that look and set, with the events they cause.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::check;
use crate::kit::{World, of_type};

#[test]
fn new_session_has_initial_state() {
    let world = World::new([]);
    let pi = world.start();
    let state = pi.state();
    assert_eq!(state["model"]["provider"], "mock-anthropic");
    assert_eq!(state["model"]["id"], "claude-mock");
    assert_eq!(state["model"]["contextWindow"], 200_000);
    for flag in ["isStreaming", "isCompacting", "isRetrying"] {
        assert_eq!(state[flag], false, "{flag}");
    }
    for mode in ["steeringMode", "followUpMode", "queueMode"] {
        assert_eq!(state[mode], "one-at-a-time", "{mode}");
    }
    for count in ["messageCount", "pendingMessageCount", "queuedMessageCount"] {
        assert_eq!(state[count], 0, "{count}");
    }
    assert_eq!(state["interruptMode"], "wait");
    assert_eq!(state["autoCompactionEnabled"], true);
    assert!(state["sessionId"].is_string() && state["sessionFile"].is_string());
    assert!(state.get("sessionName").is_none());
    assert_eq!(pi.messages(), [] as [Value; 0]);
    assert_eq!(pi.get("get_session_stats")["totalMessages"], 0);
    assert!(
        world.session_files().is_empty(),
        "nothing is written before anything was said"
    );
    assert!(world.server.requests().is_empty());
    pi.finish();
}

#[test]
fn models_are_listed_set_and_cycled() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    let models = pi.get("get_available_models");
    let mut ids: Vec<&str> = models["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].as_str().unwrap())
        .collect();
    ids.retain(|id| id.ends_with("mock") || *id == "claude-plain");
    ids.sort_unstable();
    assert_eq!(
        ids,
        [
            "claude-mock",
            "claude-plain",
            "gemini-mock",
            "gpt-mock",
            "resp-mock"
        ]
    );
    let set = pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    assert_eq!(set["id"], "gpt-mock");
    assert_eq!(pi.state()["model"]["id"], "gpt-mock");
    let missing = pi.error(json!({"type": "set_model", "provider": "mock-openai", "modelId": "nope"}));
    assert_eq!(missing, "Model not found: mock-openai/nope");
    let missing = pi.error(json!({"type": "set_model"}));
    assert_eq!(missing, "Model not found: undefined/undefined");
    pi.say("Hi");
    assert_eq!(world.server.requests()[0].model, "gpt-mock");
    let entries = check::entries(&pi.file());
    let change = entries
        .iter()
        .rfind(|entry| entry["type"] == "model_change")
        .unwrap();
    assert_eq!(change["modelId"], "gpt-mock");
    pi.finish();
}

#[test]
fn model_cycling_stays_in_scope() {
    let world = World::new([]);
    let pi = world.start_with(&[
        "--models",
        "mock-anthropic/claude-plain,mock-openai/gpt-mock:high",
    ]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let next = pi.get("cycle_model");
        assert_eq!(next["isScoped"], true);
        seen.push(next["model"]["id"].as_str().unwrap().to_owned());
        if next["model"]["id"] == "gpt-mock" {
            assert_eq!(next["thinkingLevel"], "high");
        } else {
            assert_eq!(next["thinkingLevel"], "off");
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 3, "{seen:?}");
    pi.finish();
}

#[test]
fn single_model_cannot_be_cycled() {
    let world = World::new([]);
    let pi = world.start_with(&["--models", "mock-anthropic/claude-mock"]);
    assert_eq!(pi.ask(json!({"type": "cycle_model"}))["data"], Value::Null);
    pi.finish();
}

#[test]
fn thinking_level_is_set_and_cycled() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start_with(&["--thinking", "low"]);
    assert_eq!(pi.state()["thinkingLevel"], "low");
    let levels = pi.get("get_available_thinking_levels")["levels"].clone();
    assert!(levels.as_array().unwrap().contains(&json!("high")), "{levels}");
    pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    assert_eq!(pi.wait("thinking_level_changed")["level"], "high");
    let cycled = pi.get("cycle_thinking_level")["level"].clone();
    assert_eq!(pi.state()["thinkingLevel"], cycled);
    pi.data(json!({"type": "set_thinking_level", "level": "medium"}));
    pi.say("Hi");
    let body = &world.server.requests()[0].body;
    assert!(body["thinking"]["budget_tokens"].as_u64().unwrap() > 0, "{body}");
    pi.data(json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "claude-plain"}));
    assert_eq!(pi.state()["thinkingLevel"], "off");
    assert_eq!(
        pi.ask(json!({"type": "cycle_thinking_level"}))["data"],
        Value::Null
    );
    pi.error(json!({"type": "set_thinking_level", "level": "enormous"}));
    pi.finish();
}

#[test]
fn modes_set_by_command_are_kept() {
    let world = World::new([]);
    let pi = world.start();
    pi.data(json!({"type": "set_steering_mode", "mode": "all"}));
    pi.data(json!({"type": "set_follow_up_mode", "mode": "all"}));
    pi.data(json!({"type": "set_interrupt_mode", "mode": "immediate"}));
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
    let state = pi.state();
    assert_eq!(state["steeringMode"], "all");
    assert_eq!(state["followUpMode"], "all");
    assert_eq!(state["interruptMode"], "immediate");
    assert_eq!(state["autoCompactionEnabled"], false);
    pi.error(json!({"type": "set_steering_mode", "mode": "sometimes"}));
    pi.error(json!({"type": "set_interrupt_mode"}));
    assert_eq!(pi.state()["steeringMode"], "all");
    let settings = std::fs::read_to_string(world.dir.agent_dir().join("settings.json")).unwrap();
    assert!(
        !settings.contains("immediate"),
        "the user's settings file is not touched: {settings}"
    );
    pi.finish();
}

#[test]
fn session_name_can_be_set() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start_with(&["--name", "From the start"]);
    assert_eq!(pi.state()["sessionName"], "From the start");
    pi.data(json!({"type": "set_session_name", "name": "  Weather  "}));
    assert_eq!(pi.wait("session_info_changed")["name"], "Weather");
    assert_eq!(pi.state()["sessionName"], "Weather");
    assert_eq!(
        pi.error(json!({"type": "set_session_name", "name": "  "})),
        "Session name cannot be empty"
    );
    pi.say("Hi");
    let file = pi.file();
    pi.finish();
    let names: Vec<Value> = check::entries(&file)
        .iter()
        .filter_map(|entry| entry.get("name").cloned())
        .collect();
    assert_eq!(names, ["From the start", "Weather"]);
}

#[test]
fn get_entries_since_returns_newer_entries() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    let pi = world.start();
    pi.say("First");
    let all = pi.get("get_entries");
    let leaf = all["leafId"].as_str().unwrap().to_owned();
    assert_eq!(
        all["entries"].as_array().unwrap().last().unwrap()["id"],
        leaf.as_str()
    );
    assert_eq!(all["entries"], json!(check::entries(&pi.file())));
    pi.say("Second");
    let news = pi.data(json!({"type": "get_entries", "since": leaf}));
    let roles: Vec<&Value> = news["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["message"]["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant"]);
    assert_eq!(news["entries"][0]["parentId"], leaf.as_str());
    assert!(
        pi.error(json!({"type": "get_entries", "since": "nope"}))
            .contains("nope")
    );
    pi.finish();
}

#[test]
fn responses_without_data_omit_it() {
    let world = World::new([]);
    let pi = world.start();
    for kind in ["abort", "abort_bash", "abort_retry"] {
        let response = pi.ask(json!({ "type": kind }));
        assert_eq!(response["success"], true, "{response}");
        assert!(response.get("data").is_none(), "{response}");
        assert_eq!(response["command"], kind);
    }
    assert!(
        of_type(&pi.lines(), "agent_settled").is_empty(),
        "an abort of nothing causes nothing"
    );
    let cleared = pi.get("clear_queue");
    assert_eq!(cleared, json!({"steering": [], "followUp": []}));
    // As in pi 1.5.2, also for a queue that was empty.
    assert_eq!(of_type(&pi.lines(), "queue_update").len(), 1);
    pi.finish();
}
