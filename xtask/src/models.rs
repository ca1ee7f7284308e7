//! `xtask models <data.json.gz>`: trims a models.dev snapshot to the catalogue in `crates/llm/data`.
//!
//! Here: reading the snapshot, applying `overrides.json` (providers, routes, patches, rules), writing one line per
//! provider and per model. Not here: reading the catalogue back, which `llm::registry` does.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

/// Largest snapshot that is read, in bytes after decompression.
const MAX_SNAPSHOT: u64 = 64 << 20;

/// Writes `catalogue.jsonl` in `data` from the snapshot and from `overrides.json` in the same folder. Returns one line of
/// figures for the terminal.
///
/// # Errors
/// When a file cannot be read or written, a named source is missing, or a provider's default model is not in its list.
pub fn run(snapshot: &Path, data: &Path) -> Result<String> {
    let source: Value = serde_json::from_slice(&gunzip(snapshot)?).context("the snapshot is not JSON")?;
    let overrides = fs::read(data.join("overrides.json")).context("cannot read overrides.json")?;
    let overrides: Value = serde_json::from_slice(&overrides).context("overrides.json is not JSON")?;
    let rules = list(&overrides, "rules");
    let mut sections = BTreeMap::new();
    let mut count = 0;
    for (rank, provider) in list(&overrides, "providers").iter().enumerate() {
        let id = text(provider, "id");
        let models = models_of(provider, &source, rules).with_context(|| format!("provider {id}"))?;
        count += models.len();
        let lines = models
            .into_values()
            .map(|model| format!("{}\n", Value::Object(model)));
        let body: String = lines.collect();
        sections.insert(
            id.to_owned(),
            format!("{}\n{body}", head(provider, rank, body.len())),
        );
    }
    let providers = sections.len();
    let out: String = sections.into_values().collect();
    fs::write(data.join("catalogue.jsonl"), &out).context("cannot write the catalogue")?;
    Ok(format!(
        "{count} models of {providers} providers, {} bytes",
        out.len()
    ))
}

fn gunzip(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut bytes = Vec::new();
    GzDecoder::new(file)
        .take(MAX_SNAPSHOT)
        .read_to_end(&mut bytes)
        .context("cannot decompress")?;
    Ok(bytes)
}

/// The provider line: everything the agent must know before it looks at a model; `bytes` is the length of its model lines,
/// so that a reader can skip them.
fn head(provider: &Value, rank: usize, bytes: usize) -> Value {
    let mut head = Map::new();
    head.insert("provider".into(), json!(text(provider, "id")));
    head.insert("bytes".into(), json!(bytes));
    head.insert("rank".into(), json!(rank));
    for key in ["default", "env", "ambient", "adc", "secrets"] {
        if let Some(value) = provider.get(key) {
            head.insert(key.into(), value.clone());
        }
    }
    let routes = list(provider, "routes").iter().map(|route| {
        let mut route = route.as_object().cloned().unwrap_or_default();
        for key in ["ids", "npm", "strip"] {
            route.shift_remove(key);
        }
        Value::Object(route)
    });
    head.insert("routes".into(), routes.collect());
    Value::Object(head)
}

type Models = BTreeMap<String, Map<String, Value>>;

fn models_of(provider: &Value, source: &Value, rules: &[Value]) -> Result<Models> {
    let name = provider
        .get("source")
        .and_then(Value::as_str)
        .unwrap_or_else(|| text(provider, "id"));
    let section = source
        .get(name)
        .and_then(|section| section.get("models"))
        .and_then(Value::as_object);
    let Some(section) = section else {
        bail!("{name} is not in the snapshot")
    };
    let mut models = Models::new();
    for entry in section.values().filter(|entry| wanted(provider, entry)) {
        let (id, model) = convert(provider, entry);
        models.insert(id, model);
    }
    for entry in list(provider, "add") {
        let model = entry.as_object().cloned().unwrap_or_default();
        models.entry(text(entry, "id").to_owned()).or_insert(model);
    }
    for (id, model) in &mut models {
        patch(provider, id, model);
        apply_rules(provider, id, model, rules);
    }
    let default = text(provider, "default");
    if !models.contains_key(default) {
        bail!("the default model {default} is not in the list");
    }
    Ok(models)
}

/// Only models that call tools; then the provider's `only`, `drop` and `skipDeprecated`.
fn wanted(provider: &Value, entry: &Value) -> bool {
    let id = text(entry, "id");
    let only = list(provider, "only");
    let deprecated = text(entry, "status") == "deprecated";
    flag(entry, "tool_call")
        && (only.is_empty() || any_glob(only, id))
        && !any_glob(list(provider, "drop"), id)
        && !(deprecated && flag(provider, "skipDeprecated"))
}

fn convert(provider: &Value, entry: &Value) -> (String, Map<String, Value>) {
    let full = text(entry, "id");
    let npm = entry.get("provider").map_or("", |provider| text(provider, "npm"));
    let matches = |route: &Value| match (route.get("ids"), route.get("npm")) {
        (Some(_), _) => any_glob(list(route, "ids"), full),
        (None, Some(wanted)) => wanted == npm,
        (None, None) => true,
    };
    let found = list(provider, "routes")
        .iter()
        .enumerate()
        .find(|(_, route)| matches(route));
    let (index, strip) = found.map_or((0, ""), |(index, route)| (index, text(route, "strip")));
    let id = full.strip_prefix(strip).unwrap_or(full);
    let mut model = Map::new();
    model.insert("id".into(), json!(id));
    model.insert("name".into(), json!(text(entry, "name")));
    if index > 0 {
        model.insert("route".into(), json!(index));
    }
    if flag(entry, "reasoning") {
        model.insert("reasoning".into(), json!(true));
    }
    let inputs = entry
        .get("modalities")
        .map_or(&[][..], |modalities| list(modalities, "input"));
    if inputs.iter().any(|input| input == "image") {
        model.insert("image".into(), json!(true));
    }
    model.insert("cost".into(), cost(entry));
    for (key, unknown) in [("context", 128_000), ("output", 16_384)] {
        let limit = entry
            .get("limit")
            .and_then(|limit| limit.get(key))
            .and_then(Value::as_u64);
        model.insert(
            key.into(),
            json!(limit.filter(|limit| *limit > 0).unwrap_or(unknown)),
        );
    }
    (id.to_owned(), model)
}

/// Input, output, cache read, cache write in US dollars per million tokens; routers carry negative prices, which count as 0.
fn cost(entry: &Value) -> Value {
    let cost = entry.get("cost");
    let price = |key: &str| {
        cost.and_then(|cost| cost.get(key))
            .filter(|price| price.as_f64() > Some(0.0))
    };
    ["input", "output", "cache_read", "cache_write"]
        .into_iter()
        .map(|key| price(key).cloned().unwrap_or(json!(0)))
        .collect()
}

fn patch(provider: &Value, id: &str, model: &mut Map<String, Value>) {
    let patches = provider.get("patch").and_then(Value::as_object);
    for key in ["*", id] {
        let patch = patches
            .and_then(|patches| patches.get(key))
            .and_then(Value::as_object);
        for (name, value) in patch.into_iter().flatten() {
            model.insert(name.clone(), value.clone());
        }
    }
    model.retain(|_, value| value != &json!(false));
}

/// Rules merge their `thinking` and `compat` into every model they name, later rules over earlier ones.
fn apply_rules(provider: &Value, id: &str, model: &mut Map<String, Value>, rules: &[Value]) {
    let route = model.get("route").and_then(Value::as_u64).unwrap_or(0);
    let route = usize::try_from(route)
        .ok()
        .and_then(|index| list(provider, "routes").get(index));
    let api = route.map_or("", |route| text(route, "api"));
    let passes =
        |rule: &Value, key: &str, value: &str| rule.get(key).is_none() || any_glob(list(rule, key), value);
    for rule in rules {
        let applies = passes(rule, "providers", text(provider, "id"))
            && passes(rule, "apis", api)
            && passes(rule, "ids", id);
        for key in ["thinking", "compat"] {
            let Some(Value::Object(add)) = rule.get(key).filter(|_| applies) else {
                continue;
            };
            let slot = model.entry(key).or_insert_with(|| json!({}));
            if let Value::Object(slot) = slot {
                slot.extend(add.clone());
            }
        }
    }
}

fn any_glob(patterns: &[Value], text: &str) -> bool {
    patterns
        .iter()
        .filter_map(Value::as_str)
        .any(|pattern| glob(pattern, text))
}

/// `*` stands for any run of characters; everything else for itself.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, rest)) => text.strip_prefix(before).is_some_and(|tail| {
            let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            ends.into_iter()
                .any(|at| tail.get(at..).is_some_and(|tail| glob(rest, tail)))
        }),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}
