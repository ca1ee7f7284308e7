//! Checks a model's arguments against a tool's JSON Schema, forgiving what models commonly get wrong (pi-core.md 1.6,
//! pi-1.5-delta.md 7). Coercions live in `coerce`, the rules in `check`. A schema that cannot be followed (`$ref`,
//! not an object) accepts everything; depth, steps and the number of problems are bounded. Schemas of tools that are not ours
//! may be anything; they are carried out in `foreign`.

mod check;
mod coerce;
mod cost;
mod foreign;
#[cfg(test)]
mod foreign_tests;
mod output;
mod patterns;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use wire::Dialect;

use crate::limits;
pub(crate) use coerce::Coercions;
pub use foreign::ForeignSchema;
pub use output::OutputSchema;

/// Returns the arguments in the schema's types.
///
/// # Errors
/// The whole failure text for the model.
pub fn validate(tool: &str, schema: &Value, args: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    validate_with(tool, schema, args, Coercions::Plain, Dialect::default())
}

/// As [`validate`], with these coercions, in the words of a dialect.
pub(crate) fn validate_with(
    tool: &str,
    schema: &Value,
    args: &Map<String, Value>,
    coercions: Coercions,
    dialect: Dialect,
) -> Result<Map<String, Value>, String> {
    let mut budget = Budget::default();
    let coerced = coerce::coerce(schema, Value::Object(args.clone()), coercions, &mut budget);
    let mut problems = Vec::new();
    check::check(schema, &coerced, &mut Vec::new(), &mut budget, &mut problems);
    match coerced {
        Value::Object(map) if problems.is_empty() => Ok(map),
        _ => Err(failure(tool, &problems, args, dialect)),
    }
}

fn failure(tool: &str, problems: &[Problem], args: &Map<String, Value>, dialect: Dialect) -> String {
    let mut text = format!("Validation failed for tool \"{tool}\":\n");
    // A problem may have many lines.
    let lines = problems.iter().flat_map(|problem| problem.lines(dialect));
    for (path, message) in lines.take(limits::SCHEMA_ERRORS) {
        text.push_str(&format!("  - {path}: {message}\n"));
    }
    let received = serde_json::to_string_pretty(args).unwrap_or_default();
    text + "\nReceived arguments:\n" + &received
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    /// Where, with dots; empty for the whole.
    path: String,
    fault: Fault,
}

/// A broken rule of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    /// Members that an object lacks.
    Missing(Vec<String>),
    /// The value has none of the types.
    Type {
        expected: Vec<String>,
        found: &'static str,
    },
    /// Members that a closed object does not know.
    Unknown(Vec<String>),
    /// No choice accepts the value: the rule in the words of pi 0.74, and the errors of the choice that was probably meant.
    NoChoice { older: &'static str, best: Vec<Problem> },
    /// Another rule, in the words of pi 0.74 and of today's pi.
    Rule { older: String, newer: String },
    /// Another rule, in words.
    Other(String),
}

impl Problem {
    /// Place and text of each line about it. pi changed the words for types and missing members in 1.5
    /// (pi-1.5-delta.md 7).
    fn lines(&self, dialect: Dialect) -> Vec<(String, String)> {
        let place = || match self.path.as_str() {
            "" => "root".to_owned(),
            path => path.to_owned(),
        };
        let member = |name: &str| match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        match &self.fault {
            Fault::Missing(names) if dialect.is_newest_pi() => {
                let lines = names.iter().map(|name| (member(name), "missing".to_owned()));
                lines.collect()
            }
            Fault::Missing(names) => {
                // The first missing member counts as the place.
                let first = names.first().map(String::as_str).unwrap_or_default();
                let text = format!("must have required properties {}", names.join(", "));
                vec![(member(first), text)]
            }
            Fault::Type { expected, found } => {
                let expected = expected.join(" or ");
                let text = match (dialect.is_newest_pi(), expected.contains(" or ")) {
                    (true, _) => format!("expected {expected}, got {found}"),
                    (false, true) => format!("must be either {expected}"),
                    (false, false) => format!("must be {expected}"),
                };
                vec![(place(), text)]
            }
            Fault::Unknown(names) if dialect.is_newest_pi() => {
                let lines = names
                    .iter()
                    .map(|name| (member(name), "unknown field".to_owned()));
                lines.collect()
            }
            Fault::Unknown(_) => vec![(place(), "must not have additional properties".to_owned())],
            Fault::NoChoice { older, .. } if !dialect.is_newest_pi() => vec![(place(), (*older).to_owned())],
            Fault::NoChoice { best, .. } if best.is_empty() => {
                vec![(place(), "matches no alternative".to_owned())]
            }
            Fault::NoChoice { best, .. } => best.iter().flat_map(|problem| problem.lines(dialect)).collect(),
            Fault::Rule { newer, .. } if dialect.is_newest_pi() => vec![(place(), newer.clone())],
            Fault::Rule { older, .. } => vec![(place(), older.clone())],
            Fault::Other(text) => vec![(place(), text.clone())],
        }
    }
}

/// The name of a value's type.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_type(value, "integer") => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// How far a validation may go.
#[derive(Debug)]
struct Budget {
    depth: usize,
    steps: usize,
    /// Only whether there are errors counts. The best explanation is not looked for: in nested choices it costs steps at each level.
    only_judges: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            depth: limits::SCHEMA_DEPTH,
            steps: limits::SCHEMA_STEPS,
            only_judges: false,
        }
    }
}

impl Budget {
    /// Goes one level down; none when that is too far.
    fn enter<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth == 0 || self.steps == 0 {
            return None;
        }
        self.depth -= 1;
        self.steps -= 1;
        let done = work(self);
        self.depth += 1;
        Some(done)
    }
}

/// The types a schema allows; none when it does not say.
fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        // An unknown type must not block the call.
        _ => true,
    }
}

/// A schema that only points elsewhere is not followed.
fn is_reference(schema: &Map<String, Value>) -> bool {
    ["$ref", "$dynamicRef", "$recursiveRef"]
        .iter()
        .any(|key| schema.contains_key(*key))
}
