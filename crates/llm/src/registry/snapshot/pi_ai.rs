//! Lists in pi-ai's own form: objects nested to any depth whose leaves are models with `id`, `api`, `provider` and `baseUrl`.
//! They say how a model thinks and what its server understands, and they say addresses, which count only where this program
//! knows the host.

use serde_json::{Map, Value, json};

use super::{Lines, OldDefault, Section, flag, list, price, section, text};
use crate::registry::error::RegistryError;
use crate::registry::limits::{DEFAULT_CONTEXT, DEFAULT_OUTPUT};

/// Names of providers in those lists that are others here.
const RENAMED: [(&str, &str); 1] = [("azure", "azure-openai-responses")];

/// How deep models may lie.
const DEPTH: usize = 4;

/// All models of some lists.
pub(super) fn models(lists: &[Value]) -> Vec<&Value> {
    let mut out = Vec::new();
    lists.iter().for_each(|list| gather(list, DEPTH, &mut out));
    out
}

fn gather<'a>(value: &'a Value, depth: usize, out: &mut Vec<&'a Value>) {
    let is_text = |key: &str| value.get(key).is_some_and(Value::is_string);
    if ["id", "api", "provider", "baseUrl"].into_iter().all(is_text) {
        if matches!(text(value, "type"), "" | "chat") {
            out.push(value);
        }
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
pub(super) fn sections(models: &[&Value], overrides: &Value) -> Vec<Result<Section, RegistryError>> {
    let providers = list(overrides, "providers").iter().enumerate();
    providers
        .map(|(rank, provider)| {
            let id = text(provider, "id");
            let (mut routes, mut lines) = (list(provider, "routes").to_vec(), Lines::new());
            for model in models.iter().filter(|model| is_of(model, id)) {
                if let Some(route) = route(model, &mut routes) {
                    lines.insert(text(model, "id").to_owned(), line(model, route));
                }
            }
            section(provider, rank, &routes, lines, OldDefault::MayChange)
        })
        .collect()
}

fn is_of(model: &Value, provider: &str) -> bool {
    let named = text(model, "provider");
    let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == named);
    named == provider || renamed.is_some_and(|(_, ours)| *ours == provider)
}

/// The route of a model: a known one, or a new path or API at a host that is known for this provider.
fn route(model: &Value, routes: &mut Vec<Value>) -> Option<usize> {
    let (api, url) = (text(model, "api"), text(model, "baseUrl"));
    let is_same = |route: &Value| text(route, "api") == api && text(route, "baseUrl") == url;
    if let Some(known) = routes.iter().position(is_same) {
        return Some(known);
    }
    let host = host(url)?;
    let like = routes
        .iter()
        .find(|route| self::host(text(route, "baseUrl")) == Some(host))?;
    let mut new = Map::new();
    new.insert("api".into(), json!(api));
    new.insert("baseUrl".into(), json!(url));
    if let Some(headers) = like.get("headers") {
        new.insert("headers".into(), headers.clone());
    }
    routes.push(Value::Object(new));
    Some(routes.len() - 1)
}

/// The host of an `https:` address. Whoever tries to hide one behind user names or odd signs has none.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let host = rest.split_once('/').map_or(rest, |(host, _)| host);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    (!host.is_empty() && host.bytes().all(fits)).then_some(host)
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
    for (key, theirs) in [("thinking", "thinkingLevelMap"), ("compat", "compat")] {
        if let Some(Value::Object(map)) = model.get(theirs).filter(|map| map != &&json!({})) {
            line.insert(key.into(), json!(map));
        }
    }
    line
}
