//! `models.json`: accepted and refused content, and how it overrides the catalogue.

use std::fs;

use serde_json::json;
use wire::ThinkingLevel::{High, Low, Max};

use crate::merge::merge_levels;
use crate::tests::{names, shop};
use crate::{ModelsFile, Registry, Sources};

fn error(text: &str) -> String {
    let file = ModelsFile::parse(text, &|id| id == "anthropic");
    assert!(file.providers().is_empty());
    file.error()
        .unwrap_or_else(|| panic!("accepted: {text}"))
        .to_owned()
}

#[test]
fn models_json_errors_name_location() {
    let table = [
        ("{", "Failed to parse models.json: EOF"),
        ("[]", "Failed to parse models.json: invalid type"),
        ("{}", "`providers` is missing"),
        (
            r#"{"providers": []}"#,
            "Invalid models.json: providers: invalid type",
        ),
        (r#"{"providers": {"c": {}}}"#, "provider c: it needs \"baseUrl\""),
        (
            r#"{"providers": {"c": {"models": [{"id": "m"}]}}}"#,
            "provider c: \"baseUrl\" is required",
        ),
        (
            r#"{"providers": {"c": {"baseUrl": "u", "models": [{"id": "m"}]}}}"#,
            "provider c: model m: \"api\" is required",
        ),
        (
            r#"{"providers": {"c": {"baseUrl": "u", "apiKey": "k", "models": [{"id": "m"}]}}}"#,
            "provider c: model m: \"api\" is required",
        ),
        (
            r#"{"providers": {"anthropic": {"models": [{}]}}}"#,
            "providers.anthropic.models[0]: missing field `id`",
        ),
        (
            r#"{"providers": {"anthropic": {"models": [{"id": "m", "cost": {"input": 1}}]}}}"#,
            "providers.anthropic.models[0]: missing field `output`",
        ),
        (
            r#"{"providers": {"anthropic": {"models": [{"id": "m", "contextWindow": 0}]}}}"#,
            "positive",
        ),
        (
            r#"{"providers": {"anthropic": {"headers": {"x": 1}}}}"#,
            "header x must be a string",
        ),
        (
            r#"{"providers": {"anthropic": {"modelOverrides": {"m": {"thinkingLevelMap": {"low": 1}}}}}}"#,
            "providers.anthropic.modelOverrides.m: thinking level low must be a string or null",
        ),
    ];
    for (text, wanted) in table {
        let error = error(text);
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn models_json_error_does_not_quote_key() {
    let error = error(r#"{"providers": {"anthropic": {"authHeader": "Bearer sk-secret"}}}"#);
    assert!(
        error.contains("invalid type: string, expected a boolean") && !error.contains("sk-secret"),
        "{error}"
    );
}

#[test]
fn models_json_error_leaves_built_in_models() {
    let shop = shop(
        r#"{"providers": {"ok": {"baseUrl": "u"}, "bad": {}}}"#,
        "",
        &[("XAI_API_KEY", "k")],
    );
    let error = shop.registry.models_file().error().unwrap();
    assert!(
        error.contains("provider bad") && error.ends_with("models.json"),
        "{error}"
    );
    let providers = shop.registry.models_file().providers();
    assert_eq!(providers.len(), 1, "the other provider stays");
    assert!(shop.registry.models().iter().all(|model| model.provider == "xai"));
    fs::write(shop.folder.path().join("models.json"), super::MOCKS).unwrap();
    let again = shop.registry.reload();
    assert_eq!(again.models_file().error(), None);
    assert!(again.find("mock-google", "gemini-mock").is_some());
}

/// Golden builtin-anthropic-override and pi-core.md 8.2.
#[test]
fn provider_entry_changes_built_in_models() {
    let text = r#"{"providers": {"anthropic": {
      "baseUrl": "http://proxy", "headers": {"X-Team": "a", "x-b": "1"}, "compat": {"one": 1},
      "modelOverrides": {"claude-opus-4-7": {"name": "Big", "cost": {"output": 1}, "contextWindow": 1000,
        "thinkingLevelMap": {"off": null}, "inputLimits": {"images": {"maxPerRequest": 2}}, "promptCache": {"short": 60}, "compat": {"two": 2}, "headers": {"x-team": "b"}}},
      "models": [{"id": "claude-next"}, {"id": "claude-sonnet-4-5", "name": "Mine"}]}}}"#;
    let shop = shop(text, "", &[("ANTHROPIC_API_KEY", "k")]);
    let registry = &shop.registry;
    let big = registry.find("anthropic", "claude-opus-4-7").unwrap();
    assert_eq!(
        (big.name.as_str(), big.cost.input, big.cost.output),
        ("Big", 5.0, 1.0)
    );
    assert_eq!(big.context_window, 1000);
    let images = big.input_limits.as_ref().unwrap().images.as_ref().unwrap();
    assert_eq!(images.max_per_request, Some(2));
    assert_eq!(
        serde_json::to_value(big.prompt_cache).unwrap(),
        json!({"short": 60, "long": 3600})
    );
    assert_eq!(
        serde_json::to_value(&big.thinking_level_map).unwrap(),
        json!({"xhigh": "xhigh", "max": "max", "off": null})
    );
    assert_eq!(
        serde_json::to_value(&big.compat).unwrap(),
        json!({"forceAdaptiveThinking": true, "supportsTemperature": false, "supportsStrictTools": true, "one": 1, "two": 2})
    );
    let headers = registry.headers(big, None).unwrap();
    assert_eq!(
        headers,
        [
            ("x-team".to_owned(), "b".to_owned()),
            ("x-b".to_owned(), "1".to_owned())
        ]
    );
    assert!(
        registry
            .models_of("anthropic")
            .iter()
            .all(|model| model.base_url == "http://proxy")
    );
    let next = registry.find("anthropic", "claude-next").unwrap();
    assert_eq!(
        (next.api.as_str(), next.context_window),
        ("anthropic-messages", 128_000)
    );
    let order = names(&registry.models());
    assert_eq!(order.last().unwrap(), "anthropic/claude-next");
    assert_eq!(
        order
            .iter()
            .filter(|name| *name == "anthropic/claude-sonnet-4-5")
            .count(),
        1
    );
    assert_eq!(
        registry.find("anthropic", "claude-sonnet-4-5").unwrap().name,
        "Mine"
    );
}

#[test]
fn routing_objects_merge_one_level() {
    let text = r#"{"providers": {"c": {"baseUrl": "u", "apiKey": "k", "api": "openai-completions",
      "compat": {"openRouterRouting": {"order": ["a"], "only": ["b"]}, "chatTemplateKwargs": {"a": 1}, "x": {"p": 1}},
      "models": [{"id": "m", "compat": {"openRouterRouting": {"only": ["c"]}, "chatTemplateKwargs": {"b": 2}, "x": {"q": 1}}}]}}}"#;
    let shop = shop(text, "", &[]);
    let compat = serde_json::to_value(&shop.registry.find("c", "m").unwrap().compat).unwrap();
    assert_eq!(
        compat,
        json!({"openRouterRouting": {"order": ["a"], "only": ["c"]}, "chatTemplateKwargs": {"a": 1, "b": 2}, "x": {"q": 1}})
    );
}

#[test]
fn input_limits_of_overrides_are_merged() {
    let text = r#"{"providers": {"c": {"baseUrl": "u", "apiKey": "k", "api": "openai-completions",
      "models": [{"id": "m", "inputLimits": {"maxRequestBytes": 5, "images": {"maxPerMessage": 3, "resize": {"maxWidth": 9, "maxBytes": 8}}}}],
      "modelOverrides": {"m": {"inputLimits": {"images": {"maxPerRequest": 2, "resize": {"maxWidth": 7}}}}}}}}"#;
    let shop = shop(text, "", &[]);
    let limits = serde_json::to_value(&shop.registry.find("c", "m").unwrap().input_limits).unwrap();
    assert_eq!(
        limits,
        json!({"maxRequestBytes": 5, "images": {"maxPerMessage": 3, "maxPerRequest": 2, "resize": {"maxWidth": 7, "maxBytes": 8}}})
    );
}

#[test]
fn prices_can_depend_on_input_size() {
    let text = r#"{"providers": {
      "c": {"baseUrl": "u", "apiKey": "k", "api": "openai-completions", "models": [{"id": "m", "cost": {"input": 1, "output": 2,
        "cacheRead": 0.1, "cacheWrite": 0.5, "tiers": [{"inputTokensAbove": 1000, "input": 10}]}}]},
      "anthropic": {"modelOverrides": {"claude-sonnet-4-5": {"cost": {"input": 7,
        "tiers": [{"inputTokensAbove": 2e5, "output": 70}]}}}},
      "google": {"modelOverrides": {"gemini-2.5-pro": {"cost": {"output": 0}}}}}}"#;
    let shop = shop(text, "", &[]);
    assert_eq!(shop.registry.models_file().error(), None);
    let prices = |provider: &str, id: &str| shop.registry.find(provider, id).unwrap().cost.clone();
    let own = prices("c", "m");
    assert_eq!(
        (own.at(1000).input, own.at(1001).input, own.at(1001).output),
        (1.0, 10.0, 2.0)
    );
    let changed = prices("anthropic", "claude-sonnet-4-5");
    assert_eq!(
        (changed.at(200_001).input, changed.at(200_001).output),
        (7.0, 70.0)
    );
    // Who changes a price means it for every size.
    let built_in = crate::Catalogue::built_in();
    assert!(
        !built_in
            .lookup("google", "gemini-2.5-pro")
            .unwrap()
            .cost
            .tiers
            .is_empty()
    );
    assert_eq!(prices("google", "gemini-2.5-pro").at(1_000_000).output, 0.0);
    let json = serde_json::to_value(&own).unwrap();
    assert_eq!(json["tiers"][0]["inputTokensAbove"], 1000);
    assert!(
        serde_json::to_value(prices("google", "gemini-2.5-pro"))
            .unwrap()
            .get("tiers")
            .is_none()
    );
}

#[test]
fn sampling_parameters_are_merged_key_by_key() {
    let models = r#"{"providers": {
        "own": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "k", "compat": {"supportsStore": false},
            "models": [{"id": "m", "samplingParams": {"top_p": 0.9}, "samplingParamsByThinkingLevel": {"high": {"top_p": 0.5}}}]},
        "anthropic": {"modelOverrides": {"claude-opus-4-7": {"samplingParams": {"top_k": 3}}}}}}"#;
    let shop = shop(models, "", &[("ANTHROPIC_API_KEY", "k")]);
    let found = |provider: &str, id: &str| {
        let found = shop
            .registry
            .models()
            .into_iter()
            .find(|model| model.provider == provider && model.id == id);
        serde_json::to_value(found.unwrap()).unwrap()
    };
    let own = found("own", "m");
    assert_eq!(own["compat"], json!({"supportsStore": false}));
    assert_eq!(own["samplingParams"], json!({"top_p": 0.9}));
    assert_eq!(
        own["samplingParamsByThinkingLevel"],
        json!({"high": {"top_p": 0.5}})
    );
    assert_eq!(
        found("anthropic", "claude-opus-4-7")["samplingParams"],
        json!({"top_k": 3})
    );
    let object = |value: serde_json::Value| value.as_object().unwrap().clone();
    let mut levels = object(json!({"high": {"top_p": 0.5, "top_k": 1}, "low": {"top_p": 0.1}}));
    merge_levels(
        &mut levels,
        &object(json!({"high": {"top_k": 2}, "max": {"top_p": 1}})),
    );
    assert_eq!(
        levels,
        object(json!({"high": {"top_p": 0.5, "top_k": 2}, "low": {"top_p": 0.1}, "max": {"top_p": 1}}))
    );
}

#[test]
fn own_models_take_after_models_of_their_api() {
    let models = r#"{"providers": {"opencode": {"apiKey": "k", "models": [
        {"id": "claude-opus-4-7"}, {"id": "new", "api": "anthropic-messages"}, {"id": "plain"}]}}}"#;
    let shop = shop(models, "", &[]);
    let api = |id: &str| {
        let models = shop.registry.models();
        let found = models
            .into_iter()
            .find(|model| model.provider == "opencode" && model.id == id);
        let found = found.unwrap_or_else(|| panic!("no {id}"));
        assert!(!found.base_url.is_empty(), "{id}");
        found.api.clone()
    };
    assert_eq!(api("claude-opus-4-7"), "anthropic-messages");
    assert_eq!(api("new"), "anthropic-messages");
    assert_eq!(api("plain"), "openai-completions");
}

/// pi 1.5.2: the key of a provider may be in auth.json, and a key alone changes a built-in provider.
#[test]
fn provider_key_is_optional_and_enough() {
    let models = r#"{"providers": {
        "own": {"baseUrl": "http://x", "api": "openai-completions", "models": [{"id": "m"}]},
        "keyless": {"baseUrl": "http://y", "api": "openai-completions", "models": [{"id": "m"}]},
        "anthropic": {"apiKey": "file-key"}, "xai": {"authHeader": true}}}"#;
    let auth = r#"{"own": {"type": "api_key", "key": "stored"}}"#;
    let shop = shop(models, auth, &[]);
    let registry = &shop.registry;
    assert_eq!(registry.models_file().error(), None);
    let key = |provider: &str| {
        let key = registry.resolve_key(provider, 0).unwrap();
        key.map(|key| key.expose().to_owned())
    };
    assert_eq!(key("own").as_deref(), Some("stored"));
    assert_eq!(key("keyless"), None);
    assert_eq!(key("anthropic").as_deref(), Some("file-key"));
    let usable = registry.models();
    assert!(usable.iter().any(|model| model.provider == "own"));
    assert!(usable.iter().all(|model| model.provider != "keyless"));
}

#[test]
fn empty_texts_replace_nothing_built_in() {
    let models = r#"{"providers": {"anthropic": {"baseUrl": "", "headers": {"x": "y"},
        "models": [{"id": "own", "baseUrl": "", "api": ""}]}}}"#;
    let shop = shop(models, "", &[("ANTHROPIC_API_KEY", "k")]);
    for model in shop.registry.models_of("anthropic") {
        assert_eq!(model.base_url, "https://api.anthropic.com", "{}", model.id);
        assert_eq!(model.api, "anthropic-messages", "{}", model.id);
    }
}

#[test]
fn models_yml_adds_providers_for_clients_of_omp() {
    let json = r#"{"providers": {"mine": {"baseUrl": "http://json", "api": "openai-completions", "apiKey": "k",
        "models": [{"id": "m"}]}}}"#;
    let yaml = "providers:
  mine: &mine
    baseUrl: http://yaml
    api: openai-completions
    auth: none
    discovery: {type: llama.cpp}
    models: [{id: m}]
  yours: *mine
";
    let shop = shop(json, "", &[]);
    fs::write(shop.folder.path().join("models.yml"), yaml).unwrap();
    let addresses = |is_omp: bool| {
        let registry = Registry::new(Sources {
            is_omp,
            ..shop.sources.clone()
        });
        let address = |id: &str| registry.find(id, "m").map(|model| model.base_url.clone());
        assert_eq!(registry.models_file().error(), None);
        assert_eq!(registry.reload().find("yours", "m").is_some(), is_omp);
        assert_eq!(names(&registry.models()).contains(&"yours/m".to_owned()), is_omp);
        (address("mine"), address("yours"))
    };
    let (json, yaml) = (Some("http://json".to_owned()), Some("http://yaml".to_owned()));
    assert_eq!(addresses(false), (json.clone(), None));
    assert_eq!(addresses(true), (json, yaml));
}

#[test]
fn broken_models_yml_leaves_other_models() {
    let nested = format!("providers: {}{}", "[".repeat(100), "]".repeat(100));
    let bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nproviders: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    let two = "providers: {a: {}, b: {}}";
    let table = ["providers: [", "- 1", "providers: 1", two, nested.as_str(), bomb];
    for text in table {
        let shop = shop("", "", &[]);
        fs::write(shop.folder.path().join("models.yml"), text).unwrap();
        let registry = Registry::new(Sources {
            is_omp: true,
            ..shop.sources.clone()
        });
        let error = registry.models_file().error().unwrap();
        let (lines, _) = error.split_once("\n\nFile: ").unwrap();
        let is_named = |line: &str| line.starts_with("Invalid models.yml: ");
        assert!(lines.lines().all(is_named), "{error}");
        assert!(
            registry.find("anthropic", "claude-sonnet-4-5").is_some(),
            "{text}"
        );
    }
}

#[test]
fn unnamed_levels_are_those_of_omp() {
    let yaml = "providers:
  mine:
    baseUrl: http://yaml
    api: anthropic-messages
    auth: none
    models:
      - {id: named, reasoning: true, thinking: {mode: budget, efforts: [low, high, max], effortMap: {low: least}}}
      - {id: claude-opus-4-6, reasoning: true}
  router:
    baseUrl: https://openrouter.ai/api/v1
    api: openai-completions
    auth: none
    models: [{id: m, reasoning: true}]
";
    let shop = shop(super::MOCKS, "", &[]);
    fs::write(shop.folder.path().join("models.yml"), yaml).unwrap();
    let registry = |is_omp: bool| {
        Registry::new(Sources {
            is_omp,
            ..shop.sources.clone()
        })
    };
    let (omp, pi) = (registry(true), registry(false));
    let levels = |registry: &Registry, provider: &str, id: &str| {
        let levels = registry.find(provider, id).unwrap().thinking_levels();
        levels
            .iter()
            .map(|level| level.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (usual, more) = ("off minimal low medium high", "off minimal low medium high xhigh");
    for (provider, id, of_omp, of_pi) in [
        ("mock-anthropic", "claude-mock", more, usual),
        ("mock-anthropic", "claude-plain", "off", "off"),
        ("mock-openai", "gpt-mock", more, usual),
        ("mock-responses", "resp-mock", more, more),
        ("mock-google", "gemini-mock", usual, usual),
    ] {
        assert_eq!(levels(&omp, provider, id), of_omp, "{provider}/{id}");
        assert_eq!(levels(&pi, provider, id), of_pi, "{provider}/{id}");
    }
    assert_eq!(levels(&omp, "mine", "named"), "off low high max");
    let named = omp.find("mine", "named").unwrap();
    assert_eq!(
        [Low, High, Max].map(|level| named.mapped_thinking(level)),
        [Some("least"), None, Some("max")]
    );
    assert_eq!(
        levels(&omp, "mine", "claude-opus-4-6"),
        usual,
        "its words for levels are in the built-in list"
    );
    assert_eq!(levels(&omp, "router", "m"), usual, "it is not asked as OpenAI is");
}
