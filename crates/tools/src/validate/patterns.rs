//! Patterns of a foreign schema. The `regex` crate knows no look-around and no back-references, which ECMAScript patterns may
//! use; such a pattern is left unchecked, so that the rest of the schema still counts.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::limits;

/// Keywords whose values are data, not schemas.
pub(super) const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];

/// Returns the schema without patterns that need look-around or back-references, or whose automaton would be larger than
/// [`limits::SCHEMA_PATTERN_SIZE`]. Patterns that are wrong in every dialect stay, so that compilation fails.
pub(super) fn supported(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            Value::Object(map.iter().filter_map(|(key, value)| member(key, value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(supported).collect()),
        other => other.clone(),
    }
}

fn member(key: &str, value: &Value) -> Option<(String, Value)> {
    let kept = match (key, value) {
        ("pattern", Value::String(pattern)) if is_unsupported(pattern) => return None,
        ("patternProperties", Value::Object(map)) => Value::Object(
            map.iter()
                .filter(|(pattern, _)| !is_unsupported(pattern))
                .map(|(pattern, schema)| (pattern.clone(), supported(schema)))
                .collect::<Map<_, _>>(),
        ),
        (key, value) if DATA.contains(&key) => value.clone(),
        (_, value) => supported(value),
    };
    Some((key.to_owned(), kept))
}

/// The first pattern that [`supported`] leaves out.
pub(super) fn first_unsupported(schema: &Value) -> Option<&str> {
    let map = match schema {
        Value::Object(map) => map,
        Value::Array(items) => return items.iter().find_map(first_unsupported),
        _ => return None,
    };
    map.iter().find_map(|(key, value)| match (key.as_str(), value) {
        ("pattern", Value::String(pattern)) => {
            Some(pattern.as_str()).filter(|pattern| is_unsupported(pattern))
        }
        ("patternProperties", Value::Object(patterns)) => {
            let mut names = patterns.keys().map(String::as_str);
            names
                .find(|pattern| is_unsupported(pattern))
                .or_else(|| patterns.values().find_map(first_unsupported))
        }
        (key, _) if DATA.contains(&key) => None,
        (_, value) => first_unsupported(value),
    })
}

fn is_unsupported(pattern: &str) -> bool {
    const ONLY_ECMA: [&str; 5] = ["(?=", "(?!", "(?<=", "(?<!", "\\k<"];
    let refers_back = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| matches!(pair, [b'\\', b'1'..=b'9']));
    if refers_back || ONLY_ECMA.iter().any(|construct| pattern.contains(construct)) {
        return true;
    }
    let compiled = RegexBuilder::new(pattern)
        .size_limit(limits::SCHEMA_PATTERN_SIZE)
        .build();
    matches!(compiled, Err(regex::Error::CompiledTooBig(_)))
}
