//! Making a catalogue: from a snapshot of models.dev or from pi-ai's own lists, together with `data/overrides.json`
//! (providers, routes, patches, rules). The same code makes the built-in catalogue (`xtask models`) and the one that
//! `pinion models update` puts beside it. Reading a catalogue back is `catalogue`'s business, fetching a snapshot the caller's.
//!
//! Where requests go is never taken from a snapshot: addresses, key variables and headers are those of `overrides.json`, so
//! that no list of models can lead a key elsewhere.

mod collect;
mod globs;
mod models_dev;
mod pi_ai;

use serde_json::{Map, Value, json};

use crate::registry::catalogue::{Catalogue, Header};
use crate::registry::error::RegistryError;

pub use collect::{Built, build};
pub use models_dev::sections;

/// What this program knows about providers by itself.
pub(crate) const OVERRIDES: &str = include_str!("../../../data/overrides.json");

/// A provider line and its model lines.
#[derive(Debug, Clone)]
pub struct Section {
    /// Provider id.
    pub id: String,
    /// The lines, each with its line feed.
    pub text: String,
    /// How many models it has.
    pub models: usize,
}

/// Models by id, as lines of a catalogue.
pub(crate) type Lines = std::collections::BTreeMap<String, Map<String, Value>>;

/// What becomes of a provider whose default model a list no longer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldDefault {
    /// It is an error: for the built-in catalogue somebody has to decide.
    MustBeThere,
    /// The model whose id is most like it takes its place.
    MayChange,
}

/// Puts a section together. `rank` is the provider's place among those that are asked for a default model.
///
/// # Errors
/// When the provider's default model is not among the lines and must be, or there are no lines.
pub(crate) fn section(
    provider: &Value,
    rank: usize,
    routes: &[Value],
    lines: Lines,
    default: OldDefault,
) -> Result<Section, RegistryError> {
    let id = text(provider, "id");
    let wanted = text(provider, "default");
    let chosen = match default {
        OldDefault::MustBeThere => lines.get_key_value(wanted).map(|(id, _)| id.as_str()),
        OldDefault::MayChange => most_like(wanted, &lines),
    };
    let Some(chosen) = chosen else {
        let why = format!("provider {id}: the default model {wanted} is not in the list");
        return Err(RegistryError::Snapshot(why));
    };
    let mut provider = provider.clone();
    if let Some(slot) = provider.get_mut("default") {
        *slot = json!(chosen);
    }
    let models = lines.len();
    let body: String = lines
        .into_values()
        .map(|line| format!("{}\n", Value::Object(line)))
        .collect();
    Ok(Section {
        id: id.to_owned(),
        text: format!("{}\n{body}", head(&provider, rank, routes, body.len())),
        models,
    })
}

/// The id that shares the longest beginning with `wanted`; of several, the last: mostly the newest.
fn most_like<'a>(wanted: &str, lines: &'a Lines) -> Option<&'a str> {
    let shared = |id: &str| {
        let pairs = id.bytes().zip(wanted.bytes());
        pairs.take_while(|(a, b)| a == b).count()
    };
    let ids = lines.keys().map(String::as_str);
    if lines.contains_key(wanted) {
        return ids.into_iter().find(|id| *id == wanted);
    }
    ids.max_by_key(|id| shared(id))
}

/// The provider line: everything the agent must know before it looks at a model; `bytes` is the length of its model lines,
/// so that a reader can skip them.
fn head(provider: &Value, rank: usize, routes: &[Value], bytes: usize) -> Value {
    let mut head = Map::new();
    head.insert("provider".into(), json!(text(provider, "id")));
    head.insert("bytes".into(), json!(bytes));
    head.insert("rank".into(), json!(rank));
    for key in ["default", "env", "ambient", "adc", "secrets"] {
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

/// A price; routers carry negative ones, which count as 0, as does what is no number.
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
