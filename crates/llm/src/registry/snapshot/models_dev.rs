//! Snapshots in the form of models.dev's `api.json`: an object of providers, each with `models` by id.

use serde_json::{Map, Value, json};

use super::{Lines, OldDefault, Section, flag, globs, list, price, section, text};
use crate::registry::error::RegistryError;
use crate::registry::limits::{DEFAULT_CONTEXT, DEFAULT_OUTPUT};

/// One section for each provider of `overrides`, or why there is none.
#[must_use]
pub fn sections(
    source: &Value,
    overrides: &Value,
    default: OldDefault,
) -> Vec<Result<Section, RegistryError>> {
    let rules = list(overrides, "rules");
    let providers = list(overrides, "providers").iter().enumerate();
    providers
        .map(|(rank, provider)| {
            let lines = models_of(provider, source, rules)?;
            section(provider, rank, list(provider, "routes"), lines, default)
        })
        .collect()
}

fn models_of(provider: &Value, source: &Value, rules: &[Value]) -> Result<Lines, RegistryError> {
    let own = text(provider, "id");
    let name = provider.get("source").and_then(Value::as_str).unwrap_or(own);
    let models = source.get(name).and_then(|section| section.get("models"));
    let Some(models) = models.and_then(Value::as_object) else {
        let why = format!("provider {own}: {name} is not in the snapshot");
        return Err(RegistryError::Snapshot(why));
    };
    let mut lines = Lines::new();
    for entry in models.values().filter(|entry| wanted(provider, entry)) {
        let (id, line) = convert(provider, entry);
        lines.insert(id, line);
    }
    for entry in list(provider, "add") {
        let line = entry.as_object().cloned().unwrap_or_default();
        lines.entry(text(entry, "id").to_owned()).or_insert(line);
    }
    for (id, line) in &mut lines {
        patch(provider, id, line);
        apply_rules(provider, id, line, rules);
    }
    Ok(lines)
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

/// Input, output, cache read and cache write in US dollars per million tokens; what is not said is as in `otherwise`.
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

fn patch(provider: &Value, id: &str, line: &mut Map<String, Value>) {
    let patches = provider.get("patch").and_then(Value::as_object);
    for key in ["*", id] {
        let patch = patches
            .and_then(|patches| patches.get(key))
            .and_then(Value::as_object);
        for (name, value) in patch.into_iter().flatten() {
            // Tiers belong to the prices beside them.
            if name == "cost" {
                line.shift_remove("tiers");
            }
            line.insert(name.clone(), value.clone());
        }
    }
    line.retain(|_, value| value != &json!(false));
}

/// Rules merge their `thinking` and `compat` into every model they name, later rules over earlier ones.
fn apply_rules(provider: &Value, id: &str, line: &mut Map<String, Value>, rules: &[Value]) {
    let route = line.get("route").and_then(Value::as_u64).unwrap_or(0);
    let route = usize::try_from(route)
        .ok()
        .and_then(|index| list(provider, "routes").get(index));
    let api = route.map_or("", |route| text(route, "api"));
    let passes =
        |rule: &Value, key: &str, value: &str| rule.get(key).is_none() || globs::any(list(rule, key), value);
    for rule in rules {
        let applies = passes(rule, "providers", text(provider, "id"))
            && passes(rule, "apis", api)
            && passes(rule, "ids", id);
        for key in ["thinking", "compat"] {
            let Some(Value::Object(add)) = rule.get(key).filter(|_| applies) else {
                continue;
            };
            let slot = line.entry(key).or_insert_with(|| json!({}));
            if let Value::Object(slot) = slot {
                slot.extend(add.clone());
            }
        }
    }
}
