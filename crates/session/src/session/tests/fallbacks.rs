//! The order of fallback models.

use agent::{LoopSettings, Machine, RunBudget};
use models::Registry;
use wire::RunLimits;

use super::super::fallbacks::{Fallbacks, check_names};
use super::super::run_options::RunOptions;
use super::stage::CoreStage;
use super::{events, model};

const MODELS: &str = r#"{"providers": {
    "one": {"baseUrl": "http://localhost:1/v1", "api": "openai-completions", "apiKey": "x", "models": [
        {"id": "a", "cost": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}}, {"id": "b"}]}
}}"#;

/// A registry with `one/a`, whose price is known, and `one/b`.
fn registry(dir: &std::path::Path) -> Registry {
    std::fs::write(dir.join("models.json"), MODELS).unwrap();
    Registry::new(models::Sources {
        agent_dir: dir.to_owned(),
        env: std::sync::Arc::new(|_: &str| None),
        run: std::sync::Arc::new(|_| None),
        local: models::local::LocalSources::default(),
        is_omp: false,
    })
}

fn budget(limits: RunLimits) -> RunBudget {
    let settings = LoopSettings {
        limits,
        ..LoopSettings::default()
    };
    Machine::new(settings, Vec::new()).budget().clone()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The names of the models that take over, one failure after the other.
fn taken(fallbacks: &mut Fallbacks, registry: &Registry, limits: RunLimits) -> (Vec<String>, Vec<String>) {
    let (mut taken, mut skipped) = (Vec::new(), Vec::new());
    let mut failed = model("first", false);
    while let Some(next) = fallbacks.take_next(&failed, registry, &budget(limits), &mut skipped) {
        taken.push(format!("{}/{}", next.provider, next.id));
        failed = next;
    }
    (taken, skipped)
}

#[test]
fn fallbacks_are_taken_once_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let mut fallbacks = Fallbacks::default();
    fallbacks.set(names(&["one/b", "no/such", "nonsense", "one/a"]));
    fallbacks.begin_prompt(None);
    let unlimited = RunLimits::default();
    let (models, skipped) = taken(&mut fallbacks, &registry, unlimited);
    assert_eq!(models, ["one/b", "one/a"]);
    assert_eq!(skipped.len(), 2, "names of no model: {skipped:?}");
    assert!(taken(&mut fallbacks, &registry, unlimited).0.is_empty());
    fallbacks.on_idle();
    assert_eq!(
        taken(&mut fallbacks, &registry, unlimited).0,
        ["one/b", "one/a"],
        "the next run begins with the first one"
    );
}

#[test]
fn failed_model_is_no_fallback_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let mut fallbacks = Fallbacks::default();
    fallbacks.set(names(&["one/a", "one/a"]));
    assert_eq!(
        taken(&mut fallbacks, &registry, RunLimits::default()).0,
        ["one/a"]
    );
}

#[test]
fn fallbacks_of_prompt_replace_those_of_session() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let mut fallbacks = Fallbacks::default();
    fallbacks.set(names(&["one/a"]));
    fallbacks.begin_prompt(Some(names(&["one/b"])));
    assert_eq!(fallbacks.names(), ["one/a"]);
    assert_eq!(
        taken(&mut fallbacks, &registry, RunLimits::default()).0,
        ["one/b"]
    );
    fallbacks.begin_prompt(Some(Vec::new()));
    let (taken_now, _) = taken(&mut fallbacks, &registry, RunLimits::default());
    assert!(taken_now.is_empty(), "an empty list turns them off");
    fallbacks.on_idle();
    let (taken_now, _) = taken(&mut fallbacks, &registry, RunLimits::default());
    assert_eq!(taken_now, ["one/a"], "they hold for one prompt only");
}

#[test]
fn fallback_of_unknown_price_is_skipped_with_reason() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let mut fallbacks = Fallbacks::default();
    fallbacks.set(names(&["one/b", "one/a"]));
    let limits = RunLimits {
        max_cost: Some(1.0),
        ..RunLimits::default()
    };
    let (taken, skipped) = taken(&mut fallbacks, &registry, limits);
    assert_eq!(taken, ["one/a"]);
    assert_eq!(skipped.len(), 1);
    assert!(skipped[0].contains("one/b"), "{skipped:?}");
}

#[tokio::test]
async fn unknown_fallback_of_settings_is_reported_once() {
    let settings = r#"{"fallbackModels": ["offline/echo", "offline/ecko"]}"#;
    let mut stage = CoreStage::with(&[], settings);
    let core = &mut stage.core;
    for _ in 0..2 {
        let fallbacks = &mut core.conversation.choice.fallbacks;
        fallbacks.report_unknown(&core.agent.registry, &core.outbox).await;
    }
    let sent = events(&mut stage.sent);
    assert_eq!(sent.len(), 1, "{sent:?}");
    let message = sent[0]["message"].as_str().unwrap();
    for part in [
        "fallbackModels",
        "\"offline/ecko\" not found",
        "Nearest models: offline/echo",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn first_unknown_fallback_name_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    assert_eq!(check_names(&registry, &names(&["one/a", "one/b"])), Ok(()));
    let refusal = check_names(&registry, &names(&["one/a", "one/x", "two/y"])).unwrap_err();
    assert!(
        refusal.contains("one/x") && !refusal.contains("two/y"),
        "{refusal}"
    );
    assert!(
        check_names(&registry, &names(&["a"])).is_err(),
        "a name has its provider"
    );
}

fn options(value: serde_json::Value) -> RunOptions {
    RunOptions::take(&mut serde_json::from_value(value).unwrap())
}

#[tokio::test]
async fn run_options_are_taken_out_of_prompt() {
    let mut params = serde_json::from_value(serde_json::json!({
        "message": "x", "limits": {"maxTurns": 1}, "fallbackModels": [], "outputSchema": {}
    }))
    .unwrap();
    assert!(!RunOptions::take(&mut params).is_empty());
    assert!(RunOptions::take(&mut params).is_empty(), "they are taken once");
    let empty_list = options(serde_json::json!({"message": "x", "fallbackModels": []}));
    assert!(!empty_list.is_empty(), "an empty list turns the fallbacks off");
}

#[tokio::test]
async fn run_options_are_refused_by_their_own_fault() {
    let stage = CoreStage::new();
    let core = &stage.core;
    let model = &core.conversation.choice.model;
    let check = |value: serde_json::Value| {
        let checked = options(value).check(model, &core.agent.registry, &core.tools);
        checked.map(|checked| checked.is_empty())
    };
    let json = |options: serde_json::Value| {
        let mut prompt = serde_json::json!({"message": "x"});
        prompt
            .as_object_mut()
            .unwrap()
            .extend(options.as_object().unwrap().clone());
        prompt
    };
    assert_eq!(check(json(serde_json::json!({}))), Ok(true));
    assert_eq!(
        check(json(serde_json::json!({"limits": {"maxTurns": 2}}))),
        Ok(false)
    );
    let refusal = check(json(serde_json::json!({"limits": {"maxTurns": 0}}))).unwrap_err();
    assert!(refusal.contains("maxTurns"), "{refusal}");
    let refusal = check(json(serde_json::json!({"fallbackModels": ["no/such"]}))).unwrap_err();
    assert!(refusal.contains("no/such"), "{refusal}");
    assert!(check(json(serde_json::json!({"outputSchema": {"type": 7}}))).is_err());
}
