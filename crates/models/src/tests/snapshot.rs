//! Lists of models from other sources: their conversion, refused entries, and that no list redirects a key to another host.

use serde_json::{Value, json};
use wire::Usage;

use crate::snapshot::{Built, build};
use crate::tests::shop;
use crate::{CATALOGUE_FILE, Registry};

/// anthropic in the form of models.dev: the default model and one with two price tiers.
fn models_dev() -> Value {
    let model = |id: &str, cost: Value| {
        json!({"id": id, "name": id.to_uppercase(), "tool_call": true, "reasoning": true,
            "modalities": {"input": ["text", "image"]}, "cost": cost, "limit": {"context": 1_000_000, "output": 64_000}})
    };
    json!({"anthropic": {"models": {
        "claude-opus-4-7": model("claude-opus-4-7", json!({"input": 1, "output": -2})),
        "claude-new": model("claude-new", json!({"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75,
            "context_over_200k": {"input": 6}, "tiers": [
                {"input": 12, "tier": {"type": "context", "size": 400_000}},
                {"input": 6, "output": 22.5, "tier": {"type": "context", "size": 200_000}}]})),
        "claude-old-form": model("claude-old-form", json!({"input": 3, "output": 15, "context_over_200k": {"output": 30}})),
        "claude-mute": {"id": "claude-mute", "name": "", "tool_call": false}}},
      "somebody-else": {"models": {}}})
}

fn pi_ai() -> Value {
    let model = |id: &str, url: &str| {
        json!({"id": id, "name": id, "api": "anthropic-messages", "provider": "anthropic", "baseUrl": url, "reasoning": true,
            "input": ["text"], "contextWindow": 1000, "maxTokens": 100, "thinkingLevelMap": {"max": "max"}, "type": "chat",
            "headers": {"x-run": "!touch /tmp/nothing"}, "compat": {"forceAdaptiveThinking": true},
            "cost": {"input": 5, "output": 25, "cacheRead": 0.5, "cacheWrite": 6.25,
                "tiers": [{"inputTokensAbove": 100, "input": 10, "output": 50, "cacheRead": 1, "cacheWrite": 12.5}]}})
    };
    let mut picture = model("claude-picture", "https://api.anthropic.com");
    picture["type"] = json!("image");
    json!({"anthropic-messages": {
        "chat:1": model("claude-opus-4-7", "https://api.anthropic.com"),
        "chat:2": model("claude-elsewhere", "https://keys.example"),
        "chat:3": model("claude-hidden", "https://api.anthropic.com@keys.example"),
        "chat:4": model("claude-plain", "http://api.anthropic.com"),
        "chat:5": model("claude-beta", "https://api.anthropic.com/beta"),
        "image:1": picture}})
}

fn made(lists: &[Value]) -> Built {
    build(lists, "https://lists.example/api.json", "2026-11-21T10:00:00Z").unwrap()
}

/// A registry that finds this file in its agent directory.
fn with_file(text: &str) -> Registry {
    let shop = shop("", "", &[("ANTHROPIC_API_KEY", "k")]);
    std::fs::write(shop.folder.path().join(CATALOGUE_FILE), text).unwrap();
    Registry::new(shop.sources.clone())
}

#[test]
fn models_dev_list_replaces_built_in_models() {
    let built = made(&[models_dev()]);
    assert_eq!(built.renewed, ["anthropic"]);
    assert_eq!(built.kept.len(), 42);
    let registry = with_file(&built.text);
    assert_eq!(registry.catalogue_error(), None);
    let header = registry.catalogue().header().unwrap();
    assert_eq!(
        (header.source.as_str(), header.models),
        ("https://lists.example/api.json", built.models)
    );
    let ids: Vec<&str> = registry
        .models_of("anthropic")
        .iter()
        .map(|model| model.id.as_str())
        .collect();
    assert_eq!(ids, ["claude-new", "claude-old-form", "claude-opus-4-7"]);
    assert!(registry.models_of("openai").len() > 20);
    let known = registry.find("anthropic", "claude-opus-4-7").unwrap();
    assert_eq!(known.cost.output, 0.0);
    // models.dev does not tell how a model thinks: that stays as it is built in.
    assert_eq!(known.mapped_thinking(wire::ThinkingLevel::Max), Some("max"));
    assert_eq!(known.compat.as_ref().unwrap()["forceAdaptiveThinking"], true);
    // Nor how long its prompt cache lives.
    assert!(known.prompt_cache.is_some());
    let prices = &registry.find("anthropic", "claude-new").unwrap().cost;
    let tiers: Vec<(u64, f64, f64, f64)> = prices
        .tiers
        .iter()
        .map(|tier| (tier.input_tokens_above, tier.input, tier.output, tier.cache_read))
        .collect();
    assert_eq!(tiers, [(200_000, 6.0, 22.5, 0.3), (400_000, 12.0, 15.0, 0.3)]);
    let mut usage = Usage {
        input: 250_000,
        cache_read: 50_000,
        output: 1000,
        ..Usage::default()
    };
    usage.price(prices);
    assert!(
        (usage.cost.total - (1.5 + 0.0225 + 0.015)).abs() < 1e-9,
        "{}",
        usage.cost.total
    );
    let old = &registry.find("anthropic", "claude-old-form").unwrap().cost.tiers;
    assert_eq!(
        (old[0].input_tokens_above, old[0].input, old[0].output),
        (200_000, 3.0, 30.0)
    );
}

#[test]
fn pi_ai_lists_never_change_hosts_or_headers() {
    let built = made(&[pi_ai(), json!({"junk": [1, 2]})]);
    let registry = with_file(&built.text);
    let models = registry.models_of("anthropic");
    let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
    assert_eq!(ids, ["claude-beta", "claude-opus-4-7"]);
    assert_eq!(models[0].base_url, "https://api.anthropic.com/beta");
    assert_eq!(models[1].base_url, "https://api.anthropic.com");
    assert_eq!(models[1].mapped_thinking(wire::ThinkingLevel::Max), Some("max"));
    assert_eq!(models[1].compat.as_ref().unwrap()["forceAdaptiveThinking"], true);
    assert_eq!(models[1].cost.tiers[0].output, 50.0);
    // A header of the list could name a command.
    assert!(!built.text.contains("touch"));
    assert_eq!(registry.headers(models[1], None), Ok(Vec::new()));
}

#[test]
fn removed_default_model_falls_back_to_similar_one() {
    let model = |id: &str| json!({"id": id, "name": id, "tool_call": true});
    let models =
        json!({"a": model("claude-opus-5-2"), "b": model("claude-opus-5-7"), "c": model("claude-sonnet-9")});
    let registry = with_file(&made(&[json!({"anthropic": {"models": models}})]).text);
    let anthropic = registry.catalogue().provider("anthropic").unwrap();
    assert_eq!(anthropic.default_model(), "claude-opus-5-7");
    assert_eq!(anthropic.models().len(), 3);
    // An unknown model takes what a list of models.dev does not tell from the model with the most similar id.
    let new = registry.find("anthropic", "claude-opus-5-7").unwrap();
    assert_eq!(new.compat.as_ref().unwrap()["supportsMidConvoEffort"], true);
    assert_eq!(new.thinking_level_map.as_ref().unwrap()["off"], json!(null));
}

#[test]
fn snapshot_without_known_models_is_refused() {
    for nothing in [
        json!({}),
        json!([]),
        json!({"anthropic": {"models": {}}}),
        json!("list"),
    ] {
        let error = build(&[nothing], "x", "2026-11-21T10:00:00Z")
            .unwrap_err()
            .to_string();
        assert!(error.contains("no model of a known provider"), "{error}");
    }
}

#[test]
fn damaged_or_outdated_model_list_is_ignored() {
    let text = made(&[models_dev()]).text;
    let cut = &text[..text.len() / 2];
    let other_form = text.replacen("\"catalogue\":2", "\"catalogue\":3", 1);
    for damaged in [cut, "", "{}", "no JSON\n", other_form.as_str()] {
        let registry = with_file(damaged);
        assert!(registry.catalogue_error().unwrap().contains(CATALOGUE_FILE));
        assert!(registry.catalogue().header().is_none());
        assert!(registry.models_of("anthropic").len() > 10);
    }
    // Written by an older program in an older format.
    let older = with_file(&text.replacen("\"catalogue\":2", "\"catalogue\":1", 1));
    assert!(older.catalogue().header().is_none() && older.catalogue_error().is_none());
    // Made before this program was: its own list is newer.
    let old = with_file(&text.replacen("2026-11-21T", "2024-01-01T", 1));
    assert!(old.catalogue().header().is_none() && old.catalogue_error().is_none());
}
