//! Fallback models: after retries, exhausted quota, a rejected key.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::kit::{Pi, World, answers, bash, kinds, of_type};

const OTHER: &str = "mock-openai/gpt-mock";

/// The models of the answers, as `provider/id`.
fn models(lines: &[Value]) -> Vec<String> {
    let name = |answer: &&Value| {
        format!(
            "{}/{}",
            answer["provider"].as_str().unwrap(),
            answer["model"].as_str().unwrap()
        )
    };
    answers(lines).iter().map(name).collect()
}

fn set(pi: &Pi, names: &[&str]) {
    let reply = pi.data(json!({"type": "set_fallback_models", "models": names}));
    assert_eq!(reply["models"], json!(names));
}

#[test]
fn overloaded_model_is_replaced_after_retries() {
    let overloaded = || Reply::error(ErrorKind::Overloaded);
    let world = World::new([
        overloaded(),
        overloaded(),
        Reply::text(["from the other"]),
        Reply::text(["again"]),
    ]);
    world.settings(json!({"retry": {"baseDelayMs": 10, "maxRetries": 1, "provider": {"maxRetries": 0}}, "fallbackModels": [OTHER]}));
    let pi = world.start();
    assert_eq!(pi.get("get_fallback_models")["models"], json!([OTHER]));
    let lines = pi.say("Hi");
    let fallback = of_type(&lines, "model_fallback");
    assert_eq!(fallback.len(), 1);
    assert_eq!(
        (&fallback[0]["from"], &fallback[0]["to"]),
        (&json!("mock-anthropic/claude-mock"), &json!(OTHER))
    );
    assert!(
        fallback[0]["reason"].as_str().unwrap().contains("529"),
        "{}",
        fallback[0]
    );
    let kinds = kinds(&lines);
    let at = |kind: &str| kinds.iter().position(|other| *other == kind).unwrap();
    assert!(at("auto_retry_end") < at("model_fallback"));
    assert_eq!(kinds.iter().filter(|kind| **kind == "agent_settled").count(), 1);
    let ends: Vec<&Value> = of_type(&lines, "agent_end")
        .iter()
        .map(|end| &end["willRetry"])
        .collect();
    assert_eq!(ends, [true, true, false]);
    assert_eq!(models(&lines).last().unwrap(), OTHER);
    assert_eq!(pi.roles(), ["user", "assistant"]);
    // The session keeps its model: the next prompt asks it again.
    assert_eq!(pi.state()["model"]["id"], "claude-mock");
    assert_eq!(models(&pi.say("Hi")), ["mock-anthropic/claude-mock"]);
    pi.finish();
}

#[test]
fn run_goes_on_with_fallback_model_after_tools() {
    let world = World::new([
        bash("b", "echo one"),
        Reply::error(ErrorKind::Auth),
        bash("c", "echo two"),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    set(&pi, &[OTHER]);
    let lines = pi.say("Go");
    assert_eq!(of_type(&lines, "tool_execution_end").len(), 2);
    assert_eq!(models(&lines)[2..], [OTHER, OTHER]);
    assert_eq!(pi.get("get_last_assistant_text")["text"], "done");
    pi.finish();
}

#[test]
fn models_of_prompt_take_place_of_session() {
    let world = World::new([
        Reply::error(ErrorKind::Auth),
        Reply::text(["from google"]),
        Reply::error(ErrorKind::Auth),
        Reply::text(["from openai"]),
        Reply::error(ErrorKind::Auth),
    ]);
    let pi = world.start();
    set(&pi, &[OTHER]);
    let before = pi.lines().len();
    pi.data(json!({"type": "prompt", "message": "Hi", "fallbackModels": ["mock-google/gemini-mock"]}));
    pi.settled();
    assert_eq!(
        models(&pi.lines().split_off(before)).last().unwrap(),
        "mock-google/gemini-mock"
    );
    assert_eq!(models(&pi.say("Hi")).last().unwrap(), OTHER);
    let before = pi.lines().len();
    pi.data(json!({"type": "prompt", "message": "Hi", "fallbackModels": []}));
    pi.settled();
    let lines = pi.lines().split_off(before);
    assert_eq!(of_type(&lines, "model_fallback").len(), 0);
    assert_eq!(answers(&lines)[0]["stopReason"], "error");
    pi.finish();
}

#[test]
fn run_fails_after_last_fallback_model() {
    let world = World::new([Reply::error(ErrorKind::Auth).repeat()]);
    let pi = world.start();
    set(&pi, &["nobody/knows", OTHER, "mock-anthropic/claude-mock"][1..]);
    let lines = pi.say("Hi");
    assert_eq!(of_type(&lines, "model_fallback").len(), 2);
    assert_eq!(world.server.requests().len(), 3);
    assert_eq!(answers(&lines).last().unwrap()["stopReason"], "error");
    let error = pi.error(json!({"type": "set_fallback_models", "models": ["nobody/knows"]}));
    assert_eq!(
        error,
        "Model not found: nobody/knows. Fallback models are named provider/id"
    );
    pi.finish();
}

#[test]
fn limits_count_requests_of_all_models() {
    let world = World::new([Reply::error(ErrorKind::Auth).repeat()]);
    let pi = world.start_with(&["--max-turns", "1"]);
    set(&pi, &[OTHER]);
    let lines = pi.say("Hi");
    assert_eq!(of_type(&lines, "model_fallback").len(), 0);
    assert_eq!(world.server.requests().len(), 1);
    pi.finish();
}

#[test]
fn faulty_request_is_not_sent_to_other_models() {
    let world = World::new([Reply::error(ErrorKind::Invalid)]);
    let pi = world.start();
    set(&pi, &[OTHER]);
    let lines = pi.say("Hi");
    assert_eq!(of_type(&lines, "model_fallback").len(), 0);
    pi.finish();
}

/// Gives the model of `mock-openai` no price.
fn without_price(world: &World) {
    let mut models = testkit::workspace::default_models(&world.server.url());
    let model = &mut models["providers"]["mock-openai"]["models"][0];
    assert_eq!(model["id"], "gpt-mock");
    model.as_object_mut().unwrap().remove("cost");
    world.dir.write_models(&models).unwrap();
}

#[test]
fn cost_limit_skips_fallback_of_unknown_price() {
    let world = World::new([
        Reply::error(ErrorKind::Auth),
        bash("b", "true"),
        Reply::text(["done"]),
    ]);
    without_price(&world);
    let pi = world.start_with(&["--max-cost", "0.5"]);
    set(&pi, &[OTHER, "mock-google/gemini-mock"]);
    let lines = pi.say("Go");
    let fallback = of_type(&lines, "model_fallback");
    assert_eq!(fallback.len(), 1);
    assert_eq!(fallback[0]["to"], "mock-google/gemini-mock");
    let reason = "The price of mock-openai/gpt-mock is unknown";
    assert!(
        lines.iter().any(|line| line.to_string().contains(reason)),
        "{lines:?}"
    );
    // Without a limit of the cost it takes over.
    pi.data(json!({"type": "set_limits", "limits": {}}));
    world.server.push(Reply::error(ErrorKind::Auth));
    world.server.push(Reply::text(["free"]));
    let lines = pi.say("Go");
    assert_eq!(of_type(&lines, "model_fallback")[0]["to"], OTHER);
    pi.finish();
}

#[test]
fn cost_limit_of_prompt_skips_unpriced_fallback() {
    let world = World::new([Reply::error(ErrorKind::Auth).repeat()]);
    without_price(&world);
    let pi = world.start();
    pi.data(json!({"type": "prompt", "message": "Go", "limits": {"maxCost": 1}, "fallbackModels": [OTHER]}));
    pi.settled();
    assert_eq!(world.server.requests().len(), 1);
    pi.finish();
}

#[test]
fn cost_limit_needs_price_of_running_model() {
    let world = World::new([
        Reply::error(ErrorKind::Auth),
        bash("b", "sleep 60"),
        Reply::text(["never"]),
    ]);
    without_price(&world);
    let pi = world.start();
    set(&pi, &[OTHER]);
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    let error = pi.error(json!({"type": "set_limits", "limits": {"maxCost": 1}}));
    assert!(
        error.starts_with("The price of mock-openai/gpt-mock is unknown"),
        "{error}"
    );
    pi.data(json!({"type": "abort"}));
    pi.settled();
    pi.data(json!({"type": "set_limits", "limits": {"maxCost": 1}}));
    pi.finish();
}
