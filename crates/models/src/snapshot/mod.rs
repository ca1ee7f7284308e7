//! Makes catalogue files from lists of models and `data/overrides.json`. Two callers: `xtask models` makes the built-in
//! catalogue from pi-ai's npm package, `pinion models update` makes the file in the agent directory from models.dev or from
//! lists in pi-ai's form. Not here: reading a catalogue (`catalogue`), fetching a list (the callers).
//!
//! Hosts, key variables and headers come only from `overrides.json`, so a list of models cannot send a key to another host.

mod adaptive;
mod collect;
mod globs;
mod models_dev;
mod pi_ai;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::catalogue::{Catalogue, Header, SHARED};
use crate::error::RegistryError;

pub use adaptive::adaptive_list;
pub use collect::{Built, build, generate};

/// Providers, their defaults, key variables and routes.
pub(crate) const OVERRIDES: &str = include_str!("../../data/overrides.json");

/// A provider line, its line of shared values and its model lines.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Provider id.
    pub(crate) id: String,
    /// The lines, each with its line feed.
    pub(crate) text: String,
    /// How many models it has.
    pub(crate) models: usize,
}

/// Models by id, as lines of a catalogue whose shared values are still in them.
pub(crate) type Lines = BTreeMap<String, Map<String, Value>>;

/// What a catalogue is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The built-in catalogue: every model must have a route, and every default model must be in the list.
    BuiltIn,
    /// A user's list: models without a route are left out, and the model with the most similar id replaces a default model
    /// that is gone.
    Update,
}

/// Builds the section of a provider. `rank` is its place in the order of default models.
///
/// # Errors
/// When there are no models although the provider has a default model, or when the default model must exist and does not.
pub(crate) fn section(
    provider: &Value,
    rank: usize,
    routes: &[Value],
    mut lines: Lines,
    purpose: Purpose,
) -> Result<Section, RegistryError> {
    let id = text(provider, "id");
    let wanted = text(provider, "default");
    let chosen = match purpose {
        Purpose::BuiltIn if wanted.is_empty() && lines.is_empty() => Some(""),
        Purpose::BuiltIn => lines.get_key_value(wanted).map(|(id, _)| id.as_str()),
        Purpose::Update => most_like(wanted, lines.keys().map(String::as_str)),
    };
    let Some(chosen) = chosen else {
        let why = format!("provider {id}: the default model \"{wanted}\" is not in the list");
        return Err(RegistryError::Snapshot(why));
    };
    let default = json!(chosen);
    let models = lines.len();
    let shared = share(&mut lines);
    let lines = lines.into_values().map(Value::Object);
    let body: String = shared
        .into_iter()
        .chain(lines)
        .map(|line| format!("{line}\n"))
        .collect();
    Ok(Section {
        id: id.to_owned(),
        text: format!("{}\n{body}", head(provider, default, rank, routes, body.len())),
        models,
    })
}

/// Takes the values that repeat from model to model out of the lines, leaves an index in their place, and returns the line of
/// these values. Written out in each line they would take more than half of the file.
fn share(lines: &mut Lines) -> Option<Value> {
    let mut shared = Map::new();
    for key in SHARED {
        let mut values: Vec<Value> = Vec::new();
        for line in lines.values_mut() {
            let Some(slot) = line.get_mut(key) else { continue };
            let index = values.iter().position(|value| value == slot);
            let index = index.unwrap_or_else(|| {
                values.push(slot.clone());
                values.len() - 1
            });
            *slot = json!(index);
        }
        if !values.is_empty() {
            shared.insert(key.to_owned(), Value::Array(values));
        }
    }
    (!shared.is_empty()).then(|| json!({"shared": shared}))
}

/// The id that shares the longest beginning with `wanted`, `wanted` itself first; of several, the last: mostly the newest.
fn most_like<'a>(wanted: &str, ids: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    ids.max_by_key(|id| (*id == wanted, shared_beginning(id, wanted)))
}

/// How many bytes both begin with.
fn shared_beginning(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(a, b)| a == b).count()
}

/// The provider line; `bytes` is the length of the lines below it, so that a reader can skip them.
fn head(provider: &Value, default: Value, rank: usize, routes: &[Value], bytes: usize) -> Value {
    let mut head = Map::new();
    head.insert("provider".into(), json!(text(provider, "id")));
    head.insert("bytes".into(), json!(bytes));
    head.insert("rank".into(), json!(rank));
    head.insert("default".into(), default);
    for key in ["env", "ambient", "adc", "secrets"] {
        if let Some(value) = provider.get(key) {
            head.insert(key.into(), value.clone());
        }
    }
    let routes = routes.iter().map(|route| {
        let mut route = route.as_object().cloned().unwrap_or_default();
        for key in ["ids", "npm", "strip"] {
            route.shift_remove(key);
        }
        Value::Object(route)
    });
    head.insert("routes".into(), routes.collect());
    Value::Object(head)
}

/// The index of the route for an API and an address: a known one, or a new path or API at a host that is known for this
/// provider.
fn route(api: &str, url: &str, routes: &mut Vec<Value>) -> Option<usize> {
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

/// The host of an `https:` address. An address with a user name or unusual characters before the path has none.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let host = rest.split_once('/').map_or(rest, |(host, _)| host);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    (!host.is_empty() && host.bytes().all(fits)).then_some(host)
}

/// Returns a price. Routers list negative ones, which count as 0, as does anything that is no number.
pub(crate) fn price(cost: Option<&Value>, key: &str) -> Option<Value> {
    let price = cost?.get(key)?;
    price
        .as_f64()
        .filter(|price| *price >= 0.0 && price.is_finite())
        .map(|number| if number > 0.0 { price.clone() } else { json!(0) })
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

pub(crate) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Reads a catalogue file's text as it will be read later and counts what can be used of it.
fn check(text: &str) -> Result<Header, RegistryError> {
    let (catalogue, header) = Catalogue::of_file(text).map_err(RegistryError::Snapshot)?;
    let models: usize = catalogue
        .providers()
        .iter()
        .map(|provider| provider.models().len())
        .sum();
    if models != header.models || catalogue.providers().len() != header.providers {
        return Err(RegistryError::Snapshot(
            "the list could not be read back".to_owned(),
        ));
    }
    Ok(header)
}
