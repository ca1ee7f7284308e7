//! Reading a model's `compat` flags. What they mean is decided in the families.

use serde_json::{Map, Value};
use wire::{Model, ThinkingLevel};

use crate::request::ModelRequest;

/// A yes/no flag, or what holds when the model does not say.
#[must_use]
pub fn flag(model: &Model, name: &str, otherwise: bool) -> bool {
    value(model, name).and_then(Value::as_bool).unwrap_or(otherwise)
}

/// A flag that is a word.
pub(crate) fn word<'a>(model: &'a Model, name: &str) -> Option<&'a str> {
    value(model, name)?.as_str()
}

/// A flag of any shape.
pub(crate) fn value<'a>(model: &'a Model, name: &str) -> Option<&'a Value> {
    model.compat.as_ref()?.get(name)
}

/// Adds the model's sampling parameters to a request body, in place of fields of the same name; those of the thinking level
/// come last. (In `models.json` they are siblings of `compat`; the registry moves them there.)
pub(crate) fn add_sampling(request: &ModelRequest, body: &mut Map<String, Value>) {
    let model = &request.model;
    let level = match request.thinking {
        ThinkingLevel::Off => ThinkingLevel::Off,
        level => model.clamp_thinking(level),
    };
    let by_level =
        value(model, "samplingParamsByThinkingLevel").and_then(|levels| levels.get(level.as_str()));
    for params in [value(model, "samplingParams"), by_level].into_iter().flatten() {
        body.extend(
            params
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
    }
}
