//! The built-in catalogue: complete, readable, lazy.

use std::path::Path;

use serde_json::json;
use wire::ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};

use crate::snapshot::adaptive_list;
use crate::tests::shop;
use crate::{Catalogue, Header};

/// The file against its own text: no line may be dropped silently.
#[test]
fn built_in_catalogue_parses_every_line() {
    let text = include_str!("../../data/catalogue.jsonl");
    let heads = text
        .lines()
        .filter(|line| line.starts_with("{\"provider\":"))
        .count();
    let catalogue = Catalogue::built_in();
    assert_eq!(catalogue.providers().len(), heads);
    assert_eq!(heads, Header::built_in().providers);
    assert_eq!(heads, 43);
    let models: usize = catalogue
        .providers()
        .iter()
        .map(|provider| provider.models().len())
        .sum();
    let shared = text
        .lines()
        .filter(|line| line.starts_with("{\"shared\":"))
        .count();
    assert_eq!(models, text.lines().count() - heads - shared - 1);
    assert_eq!(models, Header::built_in().models);
    assert!(models > 1600);
}

#[test]
fn built_in_catalogue_names_package_version_and_date() {
    let header = Header::built_in();
    let version = header.source.strip_prefix("npm package @earendil-works/pi-ai ");
    let version: Vec<&str> = version.unwrap().split('.').collect();
    assert!(version.len() == 3 && version.iter().all(|part| part.parse::<u32>().is_ok()));
    assert!(
        header.day() >= "2026-11-10" && header.day().len() == 10,
        "{}",
        header.day()
    );
}

#[test]
fn catalogue_age_is_counted_in_days() {
    let made = |fetched: &str| Header {
        fetched: fetched.to_owned(),
        ..Header::built_in().clone()
    };
    // 2026-11-22 00:00 UTC.
    let now = 1_795_305_600_000;
    for (fetched, days) in [
        ("2026-11-22T23:59:59Z", Some(0)),
        ("2026-11-23T00:00:00Z", Some(0)),
        ("2026-11-10T12:05:37.628Z", Some(12)),
        ("2026-02-28T00:00:00Z", Some(267)),
        ("2024-02-29T00:00:00Z", Some(997)),
        ("1970-01-01T00:00:00Z", Some(20_779)),
        ("yesterday", None),
        ("2026-13-01", None),
    ] {
        assert_eq!(made(fetched).age_days(now), days, "{fetched}");
    }
}

/// Only TypeSafe has no chat models; its line keeps its key away from tools.
#[test]
fn every_default_model_exists_and_models_work() {
    let catalogue = Catalogue::built_in();
    for provider in catalogue.providers() {
        let has_default = catalogue
            .lookup(provider.id(), provider.default_model())
            .is_some();
        assert_eq!(has_default, provider.id() != "typesafe", "{}", provider.id());
        assert_eq!(has_default, !provider.models().is_empty(), "{}", provider.id());
        for listed in provider.models() {
            let model = &listed.model;
            assert!(!model.id.is_empty() && !model.name.is_empty() && !model.api.is_empty());
            assert!(
                model.context_window > 0 && model.max_tokens > 0,
                "{}/{}",
                model.provider,
                model.id
            );
            assert!(model.cost.input >= 0.0 && model.cost.output >= 0.0);
            assert!(model.base_url.is_empty() == (provider.id() == "azure-openai-responses"));
        }
    }
    let first: Vec<&str> = {
        let mut ranked: Vec<_> = catalogue.providers().iter().collect();
        ranked.sort_by_key(|provider| provider.rank());
        ranked.iter().take(7).map(|provider| provider.id()).collect()
    };
    let order = [
        "amazon-bedrock",
        "ant-ling",
        "anthropic",
        "openai",
        "azure-openai-responses",
        "openai-codex",
        "radius",
    ];
    assert_eq!(first, order);
}

/// pi-core.md 8.6 wants an answer in milliseconds: looking at one provider leaves the others unread.
#[test]
fn start_parses_one_provider_of_catalogue() {
    let shop = shop(super::MOCKS, "", &[("ANTHROPIC_API_KEY", "k")]);
    assert_eq!(shop.registry.catalogue().read_count(), 0);
    assert!(shop.registry.find("mock-anthropic", "claude-mock").is_some());
    assert_eq!(shop.registry.catalogue().read_count(), 0);
    assert!(shop.registry.find("anthropic", "claude-opus-4-7").is_some());
    assert_eq!(
        shop.registry.models().len(),
        5 + shop.registry.models_of("anthropic").len()
    );
    assert_eq!(shop.registry.catalogue().read_count(), 1);
    let again = shop.registry.reload();
    assert_eq!(again.catalogue().read_count(), 1);
    assert!(again.all().len() > 1600);
    assert_eq!(again.catalogue().read_count(), 43);
}

#[test]
fn thinking_levels_follow_the_rules() {
    let catalogue = Catalogue::built_in();
    let table = [
        (
            "anthropic",
            "claude-opus-4-6",
            vec![Off, Minimal, Low, Medium, High, Max],
        ),
        (
            "anthropic",
            "claude-opus-5-5",
            vec![Low, Medium, High, Xhigh, Max],
        ),
        (
            "anthropic",
            "claude-sonnet-4-5",
            vec![Off, Minimal, Low, Medium, High],
        ),
        ("openai", "gpt-5", vec![Minimal, Low, Medium, High]),
        ("openai", "gpt-5.4", vec![Off, Low, Medium, High, Xhigh]),
        ("deepseek", "deepseek-v4-pro", vec![Off, High, Max]),
        ("google", "gemini-3.1-pro-preview", vec![Low, Medium, High]),
        ("google", "gemma-4-31b-it", vec![Minimal, High]),
    ];
    for (provider, id, levels) in table {
        assert_eq!(
            catalogue.lookup(provider, id).unwrap().thinking_levels(),
            levels,
            "{provider}/{id}"
        );
    }
    let model = |provider, id| catalogue.lookup(provider, id).unwrap();
    assert_eq!(
        model("anthropic", "claude-opus-4-6").mapped_thinking(Max),
        Some("max")
    );
    assert_eq!(model("openai", "gpt-5.4").mapped_thinking(Off), Some("none"));
}

/// The list, not the name of the family, says which models decide for themselves how long to think.
#[test]
fn adaptive_thinking_comes_from_catalogue() {
    let catalogue = Catalogue::built_in();
    for (provider, id, adaptive) in [
        ("anthropic", "claude-opus-4-6", true),
        ("anthropic", "claude-fable-5", true),
        ("anthropic", "claude-sonnet-4-5", false),
        ("github-copilot", "claude-opus-5.5", true),
        ("openrouter", "anthropic/claude-opus-5.5", true),
    ] {
        let model = catalogue.lookup(provider, id).unwrap();
        assert_eq!(
            llm::compat::flag(model, "forceAdaptiveThinking", false),
            adaptive,
            "{provider}/{id}"
        );
    }
}

#[test]
fn image_limits_come_from_catalogue() {
    let catalogue = Catalogue::built_in();
    let limits = |provider, id| {
        catalogue
            .lookup(provider, id)
            .unwrap()
            .input_limits
            .clone()
            .unwrap()
    };
    let claude = limits("anthropic", "claude-opus-5-5");
    assert_eq!(claude.max_request_bytes, Some(33_554_432));
    let images = claude.images.unwrap();
    assert_eq!(
        (images.max_per_request, images.resize.unwrap().max_width),
        (Some(600), Some(2000))
    );
    let bedrock = limits("amazon-bedrock", "us.anthropic.claude-opus-5-5");
    assert_eq!(bedrock.images.unwrap().max_per_message, Some(20));
}

/// Environment variables of the providers that came with the list of November 2026.
#[test]
fn new_providers_have_keys_and_addresses() {
    let catalogue = Catalogue::built_in();
    for (provider, variable, url) in [
        ("ant-ling", "ANT_LING_API_KEY", "https://api.ant-ling.com/v1"),
        ("baseten", "BASETEN_API_KEY", "https://inference.baseten.co/v1"),
        ("meta", "META_API_KEY", "https://api.meta.ai/v1"),
        ("nvidia", "NVIDIA_API_KEY", "https://integrate.api.nvidia.com/v1"),
        (
            "qwen-token-plan",
            "QWEN_TOKEN_PLAN_API_KEY",
            "https://token-plan.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1",
        ),
        (
            "zai-coding-cn",
            "ZAI_CODING_CN_API_KEY",
            "https://open.bigmodel.cn/api/coding/paas/v4",
        ),
    ] {
        let shop = shop("", "", &[(variable, "k")]);
        let start = crate::start(&shop.registry, &crate::StartRequest::default()).unwrap();
        assert_eq!(
            (start.model.provider.as_str(), start.model.base_url.as_str()),
            (provider, url)
        );
        let default = catalogue.provider(provider).unwrap().default_model();
        assert_eq!(start.model.id, default);
    }
    assert_eq!(
        catalogue.provider("typesafe").unwrap().key_variables(),
        ["TYPESAFE_API_KEY"]
    );
}

#[test]
fn catalogue_routes_give_api_url_and_headers() {
    let catalogue = Catalogue::built_in();
    let table = [
        (
            "opencode",
            "claude-opus-4-7",
            "anthropic-messages",
            "https://opencode.ai/inference/anthropic",
        ),
        (
            "opencode",
            "gpt-5.4",
            "openai-responses",
            "https://opencode.ai/inference/openai/v1",
        ),
        (
            "opencode",
            "kimi-k2.6",
            "openai-completions",
            "https://opencode.ai/inference/openai/v1",
        ),
        (
            "opencode",
            "gemini-3.1-pro",
            "google-generative-ai",
            "https://opencode.ai/inference/google/v1beta",
        ),
        (
            "github-copilot",
            "claude-opus-5.5",
            "anthropic-messages",
            "https://api.individual.githubcopilot.com",
        ),
        (
            "amazon-bedrock",
            "eu.anthropic.claude-opus-4-7",
            "bedrock-converse-stream",
            "https://bedrock-runtime.eu-central-1.amazonaws.com",
        ),
        (
            "zai",
            "glm-5.3",
            "openai-completions",
            "https://api.z.ai/api/coding/paas/v4",
        ),
    ];
    for (provider, id, api, url) in table {
        let model = catalogue.lookup(provider, id).unwrap();
        assert_eq!(
            (model.api.as_str(), model.base_url.as_str()),
            (api, url),
            "{provider}/{id}"
        );
    }
    let compat =
        |provider, id| serde_json::to_value(&catalogue.lookup(provider, id).unwrap().compat).unwrap();
    let zai = json!({"supportsStore": false, "supportsDeveloperRole": false, "supportsReasoningEffort": true,
        "maxTokensField": "max_tokens", "thinkingFormat": "zai", "supportsStrictMode": true, "zaiToolStream": true});
    assert_eq!(compat("zai", "glm-5.3"), zai);
    assert_eq!(compat("google", "gemini-3.1-pro-preview"), json!(null));
    let shop = shop("", "", &[]);
    let model = shop.registry.find("github-copilot", "kimi-k3").unwrap();
    let headers = shop.registry.headers(model, None).unwrap();
    assert!(headers.contains(&("Copilot-Integration-Id".to_owned(), "vscode-chat".to_owned())));
}

/// `llm` has its own copy of the flags of Anthropic's models: it cannot ask this crate.
#[test]
fn adaptive_list_of_llm_matches_the_catalogue() {
    let ours = adaptive_list(&Catalogue::built_in());
    assert!(ours.lines().count() > 5, "{ours}");
    for line in ours.lines() {
        let (id, word) = line.split_once(' ').unwrap();
        assert_eq!(llm::thinks_adaptively(id), word == "adaptive", "{id}");
    }
    // From a published package the file of the other crate cannot be read; here it is the same letter by letter.
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../llm/data/adaptive_thinking.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), ours);
}
