//! Lists in the form of models.dev's `api.json`: an object of providers, each with `models` by id. They tell names, prices,
//! limits and input kinds. They do not tell which API a model is reached through, how it thinks and what its server accepts:
//! that is taken from the built-in model with this id, else from the built-in model with the most similar id.

use serde_json::{Map, Value, json};

use super::{
    Lines, Purpose, Section, flag, globs, list, most_like, price, route, section, shared_beginning, text,
};
use crate::catalogue::{Catalogue, Provider, SHARED};
use crate::error::RegistryError;
use crate::limits::{DEFAULT_CONTEXT, DEFAULT_OUTPUT};

/// One section for each provider of `overrides`, or why there is none.
pub(super) fn sections(
    source: &Value,
    overrides: &Value,
    built_in: &Catalogue,
) -> Vec<Result<Section, RegistryError>> {
    let providers = list(overrides, "providers").iter().enumerate();
    providers
        .map(|(rank, provider)| {
            let known = built_in.provider(text(provider, "id"));
            let known = known.map(Provider::lines).unwrap_or_default();
            let mut routes = list(provider, "routes").to_vec();
            let lines = models_of(provider, source, &known, &mut routes)?;
            section(provider, rank, &routes, lines, Purpose::Update)
        })
        .collect()
}

fn models_of(
    provider: &Value,
    source: &Value,
    known: &Lines,
    routes: &mut Vec<Value>,
) -> Result<Lines, RegistryError> {
    let own = text(provider, "id");
    let name = provider.get("source").and_then(Value::as_str).unwrap_or(own);
    let models = source.get(name).and_then(|section| section.get("models"));
    let Some(models) = models.and_then(Value::as_object) else {
        let why = format!("provider {own}: {name} is not in the snapshot");
        return Err(RegistryError::Snapshot(why));
    };
    let mut lines = Lines::new();
    for entry in models.values().filter(|entry| wanted(provider, entry)) {
        let (id, mut line) = convert(provider, entry);
        if let Some(like) = like(&id, known) {
            inherit(&mut line, like, routes);
        }
        lines.insert(id, line);
    }
    Ok(lines)
}

/// The built-in model with this id, else the one with the most similar id if at least half of the id is the same.
fn like<'a>(id: &str, known: &'a Lines) -> Option<&'a Map<String, Value>> {
    let nearest = most_like(id, known.keys().map(String::as_str))?;
    let is_near = shared_beginning(nearest, id) * 2 >= id.len();
    known.get(nearest).filter(|_| is_near)
}

/// Copies what a list of models.dev does not tell.
fn inherit(line: &mut Map<String, Value>, from: &Map<String, Value>, routes: &mut Vec<Value>) {
    for key in SHARED {
        if let Some(value) = from.get(key) {
            line.insert(key.to_owned(), value.clone());
        }
    }
    let word = |key: &str| from.get(key).and_then(Value::as_str).unwrap_or("");
    if let Some(index) = route(word("api"), word("baseUrl"), routes) {
        line.shift_remove("route");
        if index > 0 {
            line.insert("route".to_owned(), json!(index));
        }
    }
}

/// Only models that call tools; then the provider's `only`, `drop` and `skipDeprecated`.
fn wanted(provider: &Value, entry: &Value) -> bool {
    let id = text(entry, "id");
    let only = list(provider, "only");
    let deprecated = text(entry, "status") == "deprecated";
    flag(entry, "tool_call")
        && !id.is_empty()
        && (only.is_empty() || globs::any(only, id))
        && !globs::any(list(provider, "drop"), id)
        && !(deprecated && flag(provider, "skipDeprecated"))
}

fn convert(provider: &Value, entry: &Value) -> (String, Map<String, Value>) {
    let full = text(entry, "id");
    let npm = entry.get("provider").map_or("", |provider| text(provider, "npm"));
    let matches = |route: &Value| match (route.get("ids"), route.get("npm")) {
        (Some(_), _) => globs::any(list(route, "ids"), full),
        (None, Some(wanted)) => wanted == npm,
        (None, None) => true,
    };
    let found = list(provider, "routes")
        .iter()
        .enumerate()
        .find(|(_, route)| matches(route));
    let (index, strip) = found.map_or((0, ""), |(index, route)| (index, text(route, "strip")));
    let id = full.strip_prefix(strip).unwrap_or(full);
    let mut line = Map::new();
    line.insert("id".into(), json!(id));
    line.insert("name".into(), json!(text(entry, "name")));
    if index > 0 {
        line.insert("route".into(), json!(index));
    }
    if flag(entry, "reasoning") {
        line.insert("reasoning".into(), json!(true));
    }
    let inputs = entry
        .get("modalities")
        .map_or(&[][..], |modalities| list(modalities, "input"));
    if inputs.iter().any(|input| input == "image") {
        line.insert("image".into(), json!(true));
    }
    let cost = entry.get("cost");
    let base = rates(cost, &[json!(0), json!(0), json!(0), json!(0)]);
    line.insert("cost".into(), json!(base));
    let tiers = tiers(cost, &base);
    if !tiers.is_empty() {
        line.insert("tiers".into(), json!(tiers));
    }
    for (key, unknown) in [("context", DEFAULT_CONTEXT), ("output", DEFAULT_OUTPUT)] {
        let limit = entry.get("limit").and_then(|limit| limit.get(key));
        let limit = limit.and_then(Value::as_u64).filter(|limit| *limit > 0);
        line.insert(key.into(), json!(limit.unwrap_or(unknown)));
    }
    (id.to_owned(), line)
}

/// Input, output, cache read and cache write in US dollars per million tokens; missing prices come from `otherwise`.
fn rates(cost: Option<&Value>, otherwise: &[Value; 4]) -> [Value; 4] {
    let [input, output, read, write] = otherwise.clone();
    [
        price(cost, "input").unwrap_or(input),
        price(cost, "output").unwrap_or(output),
        price(cost, "cache_read").unwrap_or(read),
        price(cost, "cache_write").unwrap_or(write),
    ]
}

/// Prices above a size of the input: `[tokens, input, output, cache read, cache write]`, smallest first. The older form names
/// one size only, and in its name.
fn tiers(cost: Option<&Value>, base: &[Value; 4]) -> Vec<Vec<Value>> {
    let Some(cost) = cost else { return Vec::new() };
    let row = |above: u64, rates: [Value; 4]| [json!(above)].into_iter().chain(rates).collect();
    let mut rows: Vec<(u64, Vec<Value>)> = Vec::new();
    for tier in list(cost, "tiers") {
        let size = tier.get("tier").filter(|size| text(size, "type") == "context");
        if let Some(above) = size.and_then(|size| size.get("size")?.as_u64()) {
            rows.push((above, row(above, rates(Some(tier), base))));
        }
    }
    if let Some(over) = cost.get("context_over_200k").filter(|_| rows.is_empty()) {
        rows.push((200_000, row(200_000, rates(Some(over), base))));
    }
    rows.sort_by_key(|(above, _)| *above);
    rows.into_iter().map(|(_, row)| row).collect()
}
