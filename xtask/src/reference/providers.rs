//! `providers.md`: which API family can do what, as the tests of `llm` have shown it (`data/features.json` there), and
//! which provider is reached through which family (its catalogue). Nothing is known here by itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use models::Header;
use serde::Deserialize;
use serde_json::Value;

/// What the tests have shown.
#[derive(Deserialize)]
struct Shown {
    features: Vec<String>,
    families: BTreeMap<String, Vec<String>>,
}

/// The text of the page about each feature: its name there, the head of its column, and the proof.
const COLUMNS: [(&str, &str, &str); 14] = [
    ("streaming", "streaming", "text arrives in deltas"),
    (
        "thinking",
        "thinking",
        "thinking is requested by level and separate from text",
    ),
    ("tools", "tools", "the model can call tools"),
    (
        "toolDeltas",
        "tool deltas",
        "arguments of calls arrive in deltas; otherwise the provider sends them at once",
    ),
    ("images", "images", "images in user messages"),
    ("toolImages", "tool images", "images in tool results"),
    (
        "caching",
        "caching",
        "Pinion controls the prompt cache; otherwise the provider decides",
    ),
    ("usage", "usage", "input and output tokens are counted"),
    (
        "cachedTokens",
        "cached tokens",
        "tokens from the cache are counted separately",
    ),
    ("cost", "cost", "cost is calculated"),
    (
        "errors",
        "errors",
        "HTTP and stream errors contain the text of the provider",
    ),
    (
        "abort",
        "abort",
        "an abort ends the answer at once; the received part is kept",
    ),
    (
        "faults",
        "faults",
        "a broken stream ends with one error, and the next request works",
    ),
    (
        "handOver",
        "hand-over",
        "conversations that began with any other family can continue",
    ),
];

/// A provider line of the catalogue.
#[derive(Deserialize)]
struct Provider {
    provider: String,
    default: String,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    ambient: Vec<Vec<String>>,
    #[serde(default)]
    adc: bool,
    routes: Vec<Route>,
    /// Models by API family; counted, not read.
    #[serde(skip)]
    models: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Route {
    api: String,
}

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let read = |name: &str| {
        let path = root.join("crates").join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let shown: Shown = serde_json::from_str(&read("llm/data/features.json")?).context("features.json")?;
    for feature in &shown.features {
        let known = COLUMNS.iter().any(|(name, ..)| name == feature);
        ensure!(known, "the page has no column for the feature {feature}");
    }
    let catalogue = read("models/data/catalogue.jsonl")?;
    let list = catalogue.lines().next().unwrap_or_default();
    let list: Header = serde_json::from_str(list).context("the catalogue has no header")?;
    let providers = providers(&catalogue)?;
    let mut page = vec![
        super::head("Providers").trim_end().to_owned(),
        String::new(),
        "Each *yes* in the first table was shown by a test (`cargo test -p pinion-llm matrix`). The test fails if the table says more or".to_owned(),
        "less than it shows.".to_owned(),
        String::new(),
        "## Features of the API families".to_owned(),
        String::new(),
    ];
    page.extend(matrix(&shown));
    page.push(String::new());
    page.extend(
        COLUMNS
            .iter()
            .map(|(_, head, what)| format!("* *{head}*: {what}")),
    );
    page.extend([
        String::new(),
        "## Providers and their API families".to_owned(),
        String::new(),
        format!("{} models of {} providers, from {} of {}.", list.models, list.providers, list.source, list.day()),
        String::new(),
        "Models of families in brackets are not supported and not listed. Variables that are needed together are joined by `+`.".to_owned(),
        String::new(),
        "| provider | API family (models) | key from | default model |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ]);
    page.extend(providers.iter().map(|provider| row(provider, &shown)));
    page.push(String::new());
    Ok(page.join("\n"))
}

/// Families down, features across.
fn matrix(shown: &Shown) -> Vec<String> {
    let heads: Vec<&str> = COLUMNS.iter().map(|(_, head, _)| *head).collect();
    let mut lines = vec![
        format!("| API family | {} |", heads.join(" | ")),
        format!("|---|{}", "---|".repeat(heads.len())),
    ];
    for (api, features) in &shown.families {
        let mark = |(name, ..): &(&str, &str, &str)| match features.iter().any(|feature| feature == name) {
            true => "yes",
            false => "-",
        };
        let marks: Vec<&str> = COLUMNS.iter().map(mark).collect();
        lines.push(format!("| `{api}` | {} |", marks.join(" | ")));
    }
    lines
}

/// The providers of the catalogue, by name.
fn providers(catalogue: &str) -> Result<Vec<Provider>> {
    let mut out: Vec<Provider> = Vec::new();
    for line in catalogue.lines() {
        let value: Value = serde_json::from_str(line)?;
        if value.get("catalogue").is_some() || value.get("shared").is_some() {
            continue;
        }
        if value.get("provider").is_some() {
            out.push(serde_json::from_value(value)?);
            continue;
        }
        let provider = out.last_mut().context("a model before the first provider")?;
        let route = value.get("route").and_then(Value::as_u64).unwrap_or(0);
        let route = provider.routes.get(usize::try_from(route)?);
        let api = route.context("a model without a route")?.api.clone();
        *provider.models.entry(api).or_default() += 1;
    }
    Ok(out)
}

fn row(provider: &Provider, shown: &Shown) -> String {
    let families: Vec<String> = provider
        .models
        .iter()
        .map(|(api, count)| match shown.families.contains_key(api) {
            true => format!("`{api}` ({count})"),
            false => format!("[`{api}` ({count})]"),
        })
        .collect();
    let mut keys: Vec<String> = provider.env.iter().map(|name| format!("`{name}`")).collect();
    keys.extend(provider.ambient.iter().map(|names| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join("+")
    }));
    if provider.adc {
        keys.push("application default credentials".to_owned());
    }
    if keys.is_empty() {
        keys.push("login".to_owned());
    }
    let (families, default) = match families.as_slice() {
        [] => ("no chat models".to_owned(), "-".to_owned()),
        families => (families.join(", "), format!("`{}`", provider.default)),
    };
    format!(
        "| {} | {families} | {} | {default} |",
        provider.provider,
        keys.join(", ")
    )
}
