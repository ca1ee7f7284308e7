//! Lists in pi-ai's own form: objects nested to any depth whose leaves are models with `id`, `api`, `provider` and `baseUrl`.
//! Their addresses count only where the overrides know the host.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Lines, Purpose, Section, flag, list, price, route, section, text};
use crate::error::RegistryError;
use crate::limits::{DEFAULT_CONTEXT, DEFAULT_OUTPUT};

/// Names of providers in those lists that are others here.
const RENAMED: [(&str, &str); 1] = [("azure", "azure-openai-responses")];

/// How deep models may lie.
const DEPTH: usize = 4;

/// The chat models of some lists.
pub(super) fn models(lists: &[Value]) -> Vec<&Value> {
    let mut out = Vec::new();
    lists.iter().for_each(|list| gather(list, DEPTH, &mut out));
    out.retain(|model| matches!(text(model, "type"), "" | "chat"));
    out
}

/// How many entries are no chat models, by type (`image`, `classifier`).
pub(super) fn left_out(lists: &[Value]) -> BTreeMap<String, usize> {
    let (mut all, mut count) = (Vec::new(), BTreeMap::new());
    lists.iter().for_each(|list| gather(list, DEPTH, &mut all));
    let types = all.into_iter().map(|model| text(model, "type"));
    for kind in types.filter(|kind| !matches!(*kind, "" | "chat")) {
        *count.entry(kind.to_owned()).or_default() += 1;
    }
    count
}

fn gather<'a>(value: &'a Value, depth: usize, out: &mut Vec<&'a Value>) {
    let is_text = |key: &str| value.get(key).is_some_and(Value::is_string);
    if ["id", "api", "provider", "baseUrl"].into_iter().all(is_text) {
        out.push(value);
        return;
    }
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(members) => members.values().for_each(|value| gather(value, depth - 1, out)),
        Value::Array(items) => items.iter().for_each(|value| gather(value, depth - 1, out)),
        _ => {}
    }
}

/// One section for each provider of `overrides`, or why there is none.
pub(super) fn sections(
    models: &[&Value],
    overrides: &Value,
    purpose: Purpose,
) -> Vec<Result<Section, RegistryError>> {
    let providers = list(overrides, "providers").iter().enumerate();
    providers
        .map(|(rank, provider)| {
            let id = text(provider, "id");
            let (mut routes, mut lines) = (list(provider, "routes").to_vec(), Lines::new());
            for model in models.iter().filter(|model| is_of(model, id)) {
                let (model_id, url) = (text(model, "id"), text(model, "baseUrl"));
                match route(text(model, "api"), url, &mut routes) {
                    Some(route) => drop(lines.insert(model_id.to_owned(), line(model, route))),
                    None if purpose == Purpose::Update => {}
                    None => {
                        let why =
                            format!("provider {id}: the overrides have no route for {model_id} at {url}");
                        return Err(RegistryError::Snapshot(why));
                    }
                }
            }
            section(provider, rank, &routes, lines, purpose)
        })
        .collect()
}

/// Returns true for a model of this provider, which may have another name in the list.
pub(super) fn is_of(model: &Value, provider: &str) -> bool {
    let named = text(model, "provider");
    let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == named);
    named == provider || renamed.is_some_and(|(_, ours)| *ours == provider)
}

fn line(model: &Value, route: usize) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("id".into(), json!(text(model, "id")));
    let name = Some(text(model, "name")).filter(|name| !name.is_empty());
    line.insert("name".into(), json!(name.unwrap_or(text(model, "id"))));
    if route > 0 {
        line.insert("route".into(), json!(route));
    }
    if flag(model, "reasoning") {
        line.insert("reasoning".into(), json!(true));
    }
    if list(model, "input").iter().any(|input| input == "image") {
        line.insert("image".into(), json!(true));
    }
    let cost = model.get("cost");
    let rates = |cost: Option<&Value>, base: Option<&Value>| {
        ["input", "output", "cacheRead", "cacheWrite"]
            .map(|key| price(cost, key).or_else(|| price(base, key)).unwrap_or(json!(0)))
    };
    line.insert("cost".into(), json!(rates(cost, None)));
    let tiers = cost.map_or(&[][..], |cost| list(cost, "tiers")).iter();
    let tiers: Vec<Vec<Value>> = tiers
        .filter_map(|tier| {
            let above = tier.get("inputTokensAbove")?.as_u64()?;
            let row = [json!(above)].into_iter().chain(rates(Some(tier), cost));
            Some(row.collect())
        })
        .collect();
    if !tiers.is_empty() {
        line.insert("tiers".into(), json!(tiers));
    }
    for (key, theirs, unknown) in [
        ("context", "contextWindow", DEFAULT_CONTEXT),
        ("output", "maxTokens", DEFAULT_OUTPUT),
    ] {
        let limit = model.get(theirs).and_then(Value::as_u64);
        line.insert(
            key.into(),
            json!(limit.filter(|limit| *limit > 0).unwrap_or(unknown)),
        );
    }
    for (key, theirs) in [
        ("thinking", "thinkingLevelMap"),
        ("compat", "compat"),
        ("limits", "inputLimits"),
        ("cache", "promptCache"),
    ] {
        if let Some(Value::Object(map)) = model.get(theirs).filter(|map| map != &&json!({})) {
            line.insert(key.into(), json!(map));
        }
    }
    line
}
