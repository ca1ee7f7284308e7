//! Reading a model's `compat` flags. What they mean is decided in the families.

use serde_json::Value;
use wire::Model;

/// A yes/no flag, or what holds when the model does not say.
pub(crate) fn flag(model: &Model, name: &str, otherwise: bool) -> bool {
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
