//! Validated arguments, read by name. What makes them valid lives in `validate`.

use serde_json::{Map, Value};

use crate::limits;

/// Arguments that have passed the schema of their tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args(Map<String, Value>);

impl Args {
    /// Takes arguments that were validated.
    pub(crate) fn new(args: Map<String, Value>) -> Self {
        Self(args)
    }

    /// The value as it is.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A text; empty when absent.
    pub(crate) fn str(&self, name: &str) -> &str {
        self.opt_str(name).unwrap_or_default()
    }

    /// A text, if given.
    pub(crate) fn opt_str(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A number, if given.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    /// A count, if given: at least `min`, fractions cut off.
    pub(crate) fn count(&self, name: &str, min: usize) -> Option<usize> {
        let number = self.number(name)?;
        Some(to_count(number).max(min))
    }

    /// A limit with its default, within `1..=LIMIT_MAX`.
    pub(crate) fn limit(&self, name: &str, default: usize) -> usize {
        self.count(name, 1).unwrap_or(default).min(limits::LIMIT_MAX)
    }

    /// A switch; off when absent.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Cuts a number to a count; negative and not-a-number become zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float cast saturates, which is meant"
)]
fn to_count(number: f64) -> usize {
    number as usize
}
