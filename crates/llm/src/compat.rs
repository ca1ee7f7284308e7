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
/// come last. They are members of the model; in `compat` they count, too.
pub(crate) fn add_sampling(request: &ModelRequest, body: &mut Map<String, Value>) {
    let model = &request.model;
    let level = match request.thinking {
        ThinkingLevel::Off => ThinkingLevel::Off,
        level => model.clamp_thinking(level),
    };
    let member = |name: &str| value(model, name).and_then(Value::as_object);
    let all = model
        .sampling_params
        .as_deref()
        .or_else(|| member("samplingParams"));
    let levels = (model.sampling_params_by_thinking_level.as_deref())
        .or_else(|| member("samplingParamsByThinkingLevel"));
    let of_level = levels.and_then(|levels| levels.get(level.as_str())?.as_object());
    for params in [all, of_level].into_iter().flatten() {
        body.extend(params.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}
