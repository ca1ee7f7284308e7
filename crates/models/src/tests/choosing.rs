//! `--model`, `--models` and the order at start-up, as tables.

use wire::ThinkingLevel::{High, Low};

use crate::choose::{Scoped, StartRequest};
use crate::tests::{MOCKS, Vars, shop};
use crate::{RegistryError, resolve, scope, start};

const KEYS: [(&str, &str); 2] = [("ANTHROPIC_API_KEY", "k"), ("OPENROUTER_API_KEY", "k")];

#[test]
fn model_patterns_select_model_and_level() {
    let shop = shop(MOCKS, "", &KEYS);
    let table = [
        (None, "claude-opus-4-7", "anthropic/claude-opus-4-7", None),
        (None, "CLAUDE-Opus-4-7", "anthropic/claude-opus-4-7", None),
        (
            None,
            "anthropic/claude-opus-4-7:high",
            "anthropic/claude-opus-4-7",
            Some(High),
        ),
        (
            None,
            "anthropic/claude-opus-4.7",
            "openrouter/anthropic/claude-opus-4.7",
            None,
        ),
        (
            None,
            "openrouter/anthropic/claude-opus-4.7",
            "openrouter/anthropic/claude-opus-4.7",
            None,
        ),
        (None, "Anthropic/sonnet", "anthropic/claude-sonnet-5-5", None),
        (
            None,
            "anthropic/haiku-4-5:low",
            "anthropic/claude-haiku-4-5",
            Some(Low),
        ),
        (
            None,
            "anthropic/claude-opus-4-5-2025",
            "anthropic/claude-opus-4-5-20251101",
            None,
        ),
        (Some("anthropic"), "sonnet", "anthropic/claude-sonnet-5-5", None),
        (
            Some("anthropic"),
            "anthropic/claude-opus-4-7",
            "anthropic/claude-opus-4-7",
            None,
        ),
        (Some("MOCK-openai"), "gpt", "mock-openai/gpt-mock", None),
        (None, "Claude Plain", "mock-anthropic/claude-plain", None),
        // No provider with credentials has these: all models are searched, in the order of defaults.
        (None, "gpt-5.4", "openai/gpt-5.4", None),
        (
            None,
            "mistral-medium-latest",
            "mistral/mistral-medium-latest",
            None,
        ),
        (None, "offline/script", "offline/script", None),
    ];
    for (provider, pattern, wanted, level) in table {
        let found = resolve(&shop.registry, provider, pattern).unwrap();
        assert_eq!(
            format!("{}/{}", found.model.provider, found.model.id),
            wanted,
            "{pattern}"
        );
        assert_eq!((found.level, found.warnings.len()), (level, 0), "{pattern}");
    }
}

/// For an id at several providers, a provider with credentials wins, then the order of defaults.
#[test]
fn ambiguous_model_ids_prefer_credentials() {
    let table: [(Vars<'_>, &str); 3] = [
        (&[], "openai"),
        (&[("COPILOT_GITHUB_TOKEN", "k")], "github-copilot"),
        (
            &[
                ("COPILOT_GITHUB_TOKEN", "k"),
                ("OPENAI_API_KEY", "k"),
                ("AZURE_OPENAI_API_KEY", "k"),
            ],
            "openai",
        ),
    ];
    for (env, wanted) in table {
        let shop = shop("", "", env);
        assert_eq!(
            resolve(&shop.registry, None, "gpt-6-sol").unwrap().model.provider,
            wanted
        );
    }
}

#[test]
fn available_model_id_leaves_catalogue_unread() {
    let shop = shop(MOCKS, "", &[]);
    assert_eq!(
        resolve(&shop.registry, None, "claude-mock:low").unwrap().level,
        Some(Low)
    );
    assert_eq!(
        resolve(&shop.registry, Some("mock-openai"), "gpt-mock")
            .unwrap()
            .model
            .id,
        "gpt-mock"
    );
    assert_eq!(shop.registry.catalogue().read_count(), 0);
}

#[test]
fn unknown_ids_of_known_providers_become_custom_models() {
    let shop = shop(MOCKS, "", &[]);
    let found = resolve(&shop.registry, Some("mock-anthropic"), "x").unwrap();
    let warning = "Model \"x\" not found for provider \"mock-anthropic\". Using custom model id.";
    assert_eq!(found.warnings, [warning]);
    assert_eq!(
        (
            found.model.id.as_str(),
            found.model.name.as_str(),
            found.model.max_tokens
        ),
        ("x", "x", 32_000)
    );
    let found = resolve(&shop.registry, None, "anthropic/claude-zzz:high").unwrap();
    let default = shop.registry.find("anthropic", "claude-opus-5-5").unwrap();
    assert_eq!((found.model.id.as_str(), found.level), ("claude-zzz", Some(High)));
    assert_eq!(found.model.thinking_level_map, default.thinking_level_map);
}

#[test]
fn unmatched_model_pattern_is_an_error() {
    let shop = shop(MOCKS, "", &[]);
    let error = resolve(&shop.registry, None, "no-such-model").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Model \"no-such-model\" not found. Use --list-models to see available models."
    );
    for pattern in ["claude-mock:bogus", "", "  ", "nobody/x"] {
        let error = resolve(&shop.registry, None, pattern).unwrap_err();
        assert!(
            matches!(&error, RegistryError::ModelNotFound { model, .. } if model == pattern),
            "{pattern}: {error}"
        );
    }
    for (pattern, advice) in [
        ("claude-mokc", ". Nearest models: mock-anthropic/claude-mock"),
        (
            "mock-antropic/claude-mock",
            ". Nearest models: mock-anthropic/claude-mock",
        ),
    ] {
        let error = resolve(&shop.registry, None, pattern).unwrap_err().to_string();
        assert!(error.contains(advice), "{error}");
    }
}

#[test]
fn scope_patterns_select_models() {
    let shop = shop(MOCKS, "", &KEYS[1..]);
    let table: [(&str, &[&str], usize); 9] = [
        (
            "mock-*/*",
            &[
                "claude-mock",
                "claude-plain",
                "gpt-mock",
                "resp-mock",
                "gemini-mock",
            ],
            0,
        ),
        (
            "*-MOCK",
            &["claude-mock", "gpt-mock", "resp-mock", "gemini-mock"],
            0,
        ),
        ("{gpt,resp}-m[a-p]ck", &["gpt-mock", "resp-mock"], 0),
        ("g??-mock", &["gpt-mock"], 0),
        ("mock-anthropic/claude-[!m]*", &["claude-plain"], 0),
        ("gemini-mock:bogus", &["gemini-mock"], 1),
        ("zzz*", &[], 1),
        (
            "openrouter/**/claude-opus-4.[67]",
            &["anthropic/claude-opus-4.6", "anthropic/claude-opus-4.7"],
            0,
        ),
        ("openrouter/claude-opus*", &[], 1),
    ];
    for (pattern, wanted, warnings) in table {
        let (found, said) = scope(&shop.registry, &[pattern.to_owned()], false);
        let ids: Vec<&str> = found.iter().map(|scoped| scoped.model.id.as_str()).collect();
        assert_eq!(
            (ids.as_slice(), said.len()),
            (wanted, warnings),
            "{pattern} {said:?}"
        );
    }
    let patterns = ["resp-mock:high", "mock-*/*:low", "zzz"].map(str::to_owned);
    let (found, said) = scope(&shop.registry, &patterns, false);
    assert_eq!(
        (found.len(), found[0].level, found[1].level),
        (5, Some(High), Some(Low))
    );
    assert_eq!(said, ["No models match pattern \"zzz\""]);
    let (invalid, said) = scope(&shop.registry, &["gpt-mock:bogus".to_owned()], false);
    assert_eq!(invalid[0].level, None);
    assert_eq!(
        said,
        ["Invalid thinking level \"bogus\" in pattern \"gpt-mock:bogus\". Using default instead."]
    );
}

/// A pattern made to be slow must not be: matching is linear in the text.
#[test]
fn hostile_model_patterns_match_nothing() {
    let shop = shop(MOCKS, "", &KEYS[1..]);
    let stars = "*a".repeat(200);
    let braces = "{a,b}".repeat(40);
    let (found, _) = scope(
        &shop.registry,
        &[stars, braces, "[".to_owned(), "{".to_owned()],
        false,
    );
    assert!(found.is_empty());
}

fn started(env: Vars<'_>, models: &str, request: &StartRequest) -> (String, Vec<String>) {
    let shop = shop(models, "", env);
    let start = start(&shop.registry, request).unwrap();
    (
        format!("{}/{}", start.model.provider, start.model.id),
        start.warnings,
    )
}

#[test]
fn start_model_sources_have_precedence() {
    let pair = |text: &str| text.split_once('/').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let base = StartRequest {
        models: vec!["mock-google/*".into(), "mock-openai/*".into()],
        session_model: pair("mock-responses/resp-mock"),
        default_provider: Some("anthropic".into()),
        default_model: Some("claude-opus-4-6".into()),
        ..StartRequest::default()
    };
    let flag = StartRequest {
        model: Some("claude-plain".into()),
        ..base.clone()
    };
    let saved_in_scope = StartRequest {
        default_provider: Some("mock-openai".into()),
        default_model: Some("gpt-mock".into()),
        ..base.clone()
    };
    let opened = StartRequest {
        has_messages: true,
        ..base.clone()
    };
    let lost = StartRequest {
        session_model: pair("openai/gpt-5.4"),
        ..opened.clone()
    };
    let no_default = StartRequest {
        session_model: pair("gone/x"),
        default_model: None,
        ..opened.clone()
    };
    let table: [(&str, Vars<'_>, &StartRequest, &str, usize); 8] = [
        ("--model", &KEYS, &flag, "mock-anthropic/claude-plain", 0),
        ("first of scope", &KEYS, &base, "mock-google/gemini-mock", 0),
        (
            "saved default in scope",
            &KEYS,
            &saved_in_scope,
            "mock-openai/gpt-mock",
            0,
        ),
        ("session", &KEYS, &opened, "mock-responses/resp-mock", 0),
        (
            "settings, without a key",
            &[],
            &lost,
            "anthropic/claude-opus-4-6",
            1,
        ),
        (
            "provider default",
            &[("XAI_API_KEY", "k"), ("OPENAI_API_KEY", "k")],
            &no_default,
            "openai/gpt-6.1-sol",
            2,
        ),
        (
            "first available",
            &[],
            &no_default,
            "mock-anthropic/claude-mock",
            2,
        ),
        (
            "settings before keys",
            &KEYS,
            &lost,
            "anthropic/claude-opus-4-6",
            1,
        ),
    ];
    for (name, env, request, wanted, warnings) in table {
        let (model, said) = started(env, MOCKS, request);
        assert_eq!(
            (model.as_str(), said.len()),
            (wanted, warnings),
            "{name}: {said:?}"
        );
    }
    let (model, said) = started(
        &[],
        "",
        &StartRequest {
            session_model: pair("gone/x"),
            ..StartRequest::default()
        },
    );
    assert_eq!(model, "offline/echo");
    assert_eq!(said, ["Could not restore model gone/x. Using offline/echo"]);
}

#[test]
fn default_model_may_repeat_its_provider() {
    let shop = shop(MOCKS, "", &[]);
    let request = StartRequest {
        default_provider: Some("mock-openai".to_owned()),
        default_model: Some("mock-openai/gpt-mock".to_owned()),
        ..StartRequest::default()
    };
    let chosen = start(&shop.registry, &request).unwrap();
    let name = format!("{}/{}", chosen.model.provider, chosen.model.id);
    assert_eq!(name, "mock-openai/gpt-mock");
    assert!(chosen.warnings.is_empty(), "{:?}", chosen.warnings);
}

/// pi 1.5.2: an id may have brackets, and a level in the pattern means a model that reasons.
#[test]
fn bracketed_and_unknown_ids_take_levels() {
    let models = r#"{"providers": {"c": {"baseUrl": "u", "apiKey": "k", "api": "openai-completions",
      "models": [{"id": "big[1m]"}, {"id": "big1"}]}}}"#;
    let shop = shop(models, "", &[]);
    let (found, said) = scope(&shop.registry, &["c/big[1m]:high".to_owned()], false);
    let ids: Vec<_> = found
        .iter()
        .map(|scoped| (scoped.model.id.as_str(), scoped.level))
        .collect();
    assert_eq!(ids, [("big[1m]", Some(High))]);
    assert!(said.is_empty(), "{said:?}");
    let reasons = |pattern: &str| {
        let resolved = resolve(&shop.registry, Some("c"), pattern).unwrap();
        (resolved.model.id, resolved.model.reasoning)
    };
    assert_eq!(reasons("new:high"), ("new".to_owned(), true));
    assert_eq!(reasons("new:off"), ("new".to_owned(), false));
    assert_eq!(reasons("new"), ("new".to_owned(), false));
}

/// pi 1.5.2: an id of several providers means all of them, with a warning, and a part of an id may follow a provider.
#[test]
fn newest_scope_has_every_provider() {
    let models = r#"{"providers": {
      "c": {"baseUrl": "u", "apiKey": "k", "api": "openai-completions", "models": [{"id": "big-1"}, {"id": "big[1m]"}]},
      "b": {"baseUrl": "u", "apiKey": "k", "api": "openai-completions", "models": [{"id": "big-1"}, {"id": "big[1m]"}]}}}"#;
    let shop = shop(models, "", &[]);
    let names = |pattern: &str, newest| {
        let (found, said) = scope(&shop.registry, &[pattern.to_owned()], newest);
        let name = |scoped: &Scoped| (scoped.model.provider.clone(), scoped.level);
        (found.iter().map(name).collect::<Vec<_>>(), said)
    };
    for pattern in ["big-1:high", "ig-1:high", "big[1m]:high"] {
        let (mut found, said) = names(pattern, true);
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let both = ["b", "c"].map(|provider| (provider.to_owned(), Some(High)));
        assert_eq!(found, both, "{pattern}");
        let warning =
            format!("Pattern \"{pattern}\" matches several providers: b, c. Use provider/id to choose one.");
        assert_eq!(said, [warning]);
        let (found, said) = names(pattern, false);
        assert_eq!((found.len(), said.len()), (1, 0), "{pattern}");
    }
    for pattern in ["c/big-1", "c/ig-1"] {
        let (found, said) = names(pattern, true);
        assert_eq!(found, [("c".to_owned(), None)], "{pattern}");
        assert!(said.is_empty(), "{said:?}");
    }
    assert_eq!(names("c/ig-1", false).1, ["No models match pattern \"c/ig-1\""]);
}
