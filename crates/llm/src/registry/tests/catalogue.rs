//! The built-in catalogue: complete, readable, lazy.

use serde_json::json;
use wire::ThinkingLevel::{High, Low, Max, Medium, Minimal, Off, Xhigh};

use crate::registry::Catalogue;
use crate::registry::tests::shop;

/// The file against its own text: no line may be dropped silently.
#[test]
fn every_line_is_read() {
    let text = include_str!("../../../data/catalogue.jsonl");
    let heads = text
        .lines()
        .filter(|line| line.starts_with("{\"provider\":"))
        .count();
    let catalogue = Catalogue::built_in();
    assert_eq!(catalogue.providers().len(), heads);
    assert_eq!(heads, 32);
    let models: usize = catalogue
        .providers()
        .iter()
        .map(|provider| provider.models().len())
        .sum();
    assert_eq!(models, text.lines().count() - heads);
    assert!(models > 900);
}

#[test]
fn every_default_exists_and_every_model_is_usable() {
    let catalogue = Catalogue::built_in();
    for provider in catalogue.providers() {
        assert!(
            catalogue
                .lookup(provider.id(), provider.default_model())
                .is_some(),
            "{}",
            provider.id()
        );
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
        "anthropic",
        "openai",
        "azure-openai-responses",
        "openai-codex",
        "deepseek",
        "google",
    ];
    assert_eq!(first, order);
}

/// pi-core.md 8.6 wants an answer in milliseconds: looking at one provider leaves the others unread.
#[test]
fn start_up_reads_one_provider() {
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
    assert!(again.all().len() > 900);
    assert_eq!(again.catalogue().read_count(), 32);
}

#[test]
fn thinking_levels_follow_the_rules() {
    let catalogue = Catalogue::built_in();
    let table = [
        (
            "anthropic",
            "claude-opus-4-6",
            vec![Off, Minimal, Low, Medium, High, Xhigh],
        ),
        (
            "anthropic",
            "claude-sonnet-4-5",
            vec![Off, Minimal, Low, Medium, High],
        ),
        ("anthropic", "claude-3-haiku-20240307", vec![Off]),
        ("openai", "gpt-5", vec![Minimal, Low, Medium, High]),
        ("openai", "gpt-5.4", vec![Off, Minimal, Low, Medium, High, Xhigh]),
        (
            "github-copilot",
            "gpt-5.4",
            vec![Minimal, Low, Medium, High, Xhigh],
        ),
        ("deepseek", "deepseek-v4-pro", vec![Off, High, Xhigh]),
        ("google", "gemini-3.1-pro-preview", vec![Low, High]),
        ("google", "gemma-4-31b-it", vec![Minimal, High]),
    ];
    for (provider, id, levels) in table {
        assert_eq!(
            catalogue.lookup(provider, id).unwrap().thinking_levels(),
            levels,
            "{provider}/{id}"
        );
        assert!(!levels.contains(&Max));
    }
    let model = |provider, id| catalogue.lookup(provider, id).unwrap();
    assert_eq!(
        model("anthropic", "claude-opus-4-6").mapped_thinking(Xhigh),
        Some("max")
    );
    assert_eq!(model("openai", "gpt-5.4").mapped_thinking(Off), Some("none"));
    assert_eq!(
        model("groq", "qwen/qwen3-32b").mapped_thinking(High),
        Some("default")
    );
}

#[test]
fn routes_give_api_url_compat_and_headers() {
    let catalogue = Catalogue::built_in();
    let table = [
        (
            "opencode",
            "claude-opus-4-7",
            "anthropic-messages",
            "https://opencode.ai/zen",
        ),
        (
            "opencode",
            "gpt-5.4",
            "openai-responses",
            "https://opencode.ai/zen/v1",
        ),
        (
            "opencode",
            "kimi-k2.6",
            "openai-completions",
            "https://opencode.ai/zen/v1",
        ),
        (
            "opencode",
            "gemini-3.1-pro",
            "google-generative-ai",
            "https://opencode.ai/zen/v1",
        ),
        (
            "github-copilot",
            "claude-opus-4.7",
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
            "glm-5.1",
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
    let zai = json!({"supportsDeveloperRole": false, "thinkingFormat": "zai", "zaiToolStream": true});
    assert_eq!(compat("zai", "glm-5.1"), zai);
    assert_eq!(compat("anthropic", "claude-opus-4-7"), json!(null));
    let shop = shop("", "", &[]);
    let model = shop.registry.find("github-copilot", "gpt-4o").unwrap();
    let headers = shop.registry.headers(model, None).unwrap();
    assert!(headers.contains(&("Copilot-Integration-Id".to_owned(), "vscode-chat".to_owned())));
}
