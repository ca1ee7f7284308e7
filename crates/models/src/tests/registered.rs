//! Providers of extensions over the catalogue and `models.json`.

use serde_json::{Value, json};

use super::shop;
use crate::{KeySource, Registered, Registrations, Registry};

fn with(registry: &Registry, providers: &[(&str, Value)]) -> Registry {
    let parse = |(id, config): &(&str, Value)| Registered::parse(id, config).unwrap();
    registry.with_registered(providers.iter().map(parse).collect())
}

fn model(id: &str) -> Value {
    json!({"id": id, "cost": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}})
}

#[test]
fn registered_models_replace_provider_models_until_removed() {
    let shop = shop("", "", &[]);
    let before = shop.registry.models_of("anthropic").len();
    let config = json!({"baseUrl": "http://x", "apiKey": "k", "api": "anthropic-messages", "models": [model("only"), {"type": "image", "id": "i"}]});
    let changed = with(&shop.registry, &[("anthropic", config)]);
    let ids: Vec<&str> = changed
        .models_of("anthropic")
        .iter()
        .map(|model| model.id.as_str())
        .collect();
    assert_eq!(ids, ["only"]);
    assert_eq!(changed.key_source("anthropic"), Some(KeySource::ModelsFile));
    assert_eq!(changed.reload().models_of("anthropic").len(), 1);
    assert_eq!(
        changed.with_registered(Vec::new()).models_of("anthropic").len(),
        before
    );
}

#[test]
fn registered_base_url_changes_all_models() {
    let shop = shop("", "", &[]);
    let changed = with(
        &shop.registry,
        &[("anthropic", json!({"baseUrl": "http://gateway"}))],
    );
    let models = changed.models_of("anthropic");
    assert!(models.len() > 1 && models.iter().all(|model| model.base_url == "http://gateway"));
}

#[test]
fn models_with_own_api_are_answered_by_extension() {
    let shop = shop("", "", &[]);
    let own = json!({"api": "own", "streams": true, "models": [model("a"), {"id": "b", "api": "openai-completions", "baseUrl": "http://x"}]});
    let changed = with(
        &shop.registry,
        &[
            ("mine", own),
            (
                "whole",
                json!({"native": true, "streams": true, "open": true, "models": [model("w")]}),
            ),
        ],
    );
    let lender = |provider: &str, id: &str| {
        changed
            .lender(changed.find(provider, id).unwrap())
            .map(str::to_owned)
    };
    assert_eq!(lender("mine", "a").as_deref(), Some("mine"));
    assert_eq!(lender("mine", "b"), None);
    assert_eq!(lender("whole", "w").as_deref(), Some("whole"));
    assert!(changed.has_auth("mine") && changed.has_auth("whole"));
    assert!(
        changed
            .models()
            .iter()
            .any(|model| model.provider == "mine" && model.api == "own")
    );
}

#[test]
fn incomplete_registration_is_refused_with_texts_of_pi() {
    let error = |config: Value| Registered::parse("p", &config).unwrap_err();
    assert_eq!(
        error(json!({"streams": true})),
        "Provider p: \"api\" is required when registering streamSimple."
    );
    assert_eq!(
        error(json!({"models": [model("m")]})),
        "Provider p: \"baseUrl\" is required when defining models."
    );
    assert!(error(json!({"models": [{"id": 5}]})).starts_with("Provider p: providers.p.models[0]"));
}

#[test]
fn registered_models_use_stored_key() {
    let config = json!({"models": [model("m")], "baseUrl": "http://x", "api": "openai-completions"});
    for (auth, has_key) in [("", false), (r#"{"p": {"type": "api_key", "key": "k"}}"#, true)] {
        let shop = shop("", auth, &[]);
        let changed = with(&shop.registry, &[("p", config.clone())]);
        assert!(changed.find("p", "m").is_some());
        assert_eq!(changed.has_auth("p"), has_key);
        let resolved = changed.resolve_key("p", 0).unwrap();
        assert_eq!(resolved.is_some(), has_key);
    }
}

#[test]
fn later_registration_keeps_what_it_leaves_out() {
    let shop = shop("", "", &[]);
    let mut all = Registrations::default();
    let first =
        json!({"baseUrl": "http://one", "apiKey": "k", "api": "openai-completions", "models": [model("m")]});
    all.add("p", &first).unwrap();
    all.add("p", &json!({"baseUrl": "http://two"})).unwrap();
    // An invalid one changes nothing.
    all.add("p", &json!({"baseUrl": "http://three", "models": [{"id": 5}]}))
        .unwrap_err();
    let changed = shop.registry.with_registered(all.into_providers());
    assert_eq!(changed.find("p", "m").unwrap().base_url, "http://two");
    // A whole provider has nothing in common with a configuration.
    let mut all = Registrations::default();
    all.add("p", &first).unwrap();
    all.add("p", &json!({"native": true, "streams": true})).unwrap();
    let whole = shop.registry.with_registered(all.into_providers());
    assert!(whole.find("p", "m").is_none());
}
