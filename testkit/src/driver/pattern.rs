//! Partial comparison of JSON values, as the conformance kit's scripts use it. It does not wait for anything.

use serde_json::{Map, Value};

use crate::llm::pyjson;

/// Whether `value` fits `pattern`: an object must have the pattern's keys with fitting values, a list must have the
/// pattern's length with fitting elements, everything else must be equal. An object with one of these keys alone is
/// a test instead: `$contains` (part of a text, or of the JSON text of any other
/// value), `$exists` (true or false), `$ge` (a
/// number at least this large).
///
/// ```
/// use serde_json::json;
/// let line = json!({"type": "agent_end", "messages": [{"role": "user"}], "n": 3});
/// assert!(testkit::driver::matches(&json!({"type": "agent_end", "n": {"$ge": 2}}), &line));
/// assert!(!testkit::driver::matches(&json!({"messages": {"$exists": false}}), &line));
/// ```
#[must_use]
pub fn matches(pattern: &Value, value: &Value) -> bool {
    match pattern {
        Value::Object(map) => test(map, Some(value)).unwrap_or_else(|| object(map, value)),
        Value::Array(want) => value.as_array().is_some_and(|have| {
            have.len() == want.len() && want.iter().zip(have).all(|(w, h)| matches(w, h))
        }),
        Value::Number(_) => pattern.as_f64() == value.as_f64(),
        _ => pattern == value,
    }
}

fn object(map: &Map<String, Value>, value: &Value) -> bool {
    let Some(have) = value.as_object() else {
        return false;
    };
    map.iter().all(|(key, want)| match (want, have.get(key)) {
        (Value::Object(inner), found) if test(inner, found).is_some() => test(inner, found) == Some(true),
        (want, Some(found)) => matches(want, found),
        (_, None) => false,
    })
}

/// The result of a test such as `{"$ge": 2}`; none if the object is no test.
fn test(map: &Map<String, Value>, value: Option<&Value>) -> Option<bool> {
    let mut entries = map.iter();
    let (Some((key, arg)), None) = (entries.next(), entries.next()) else {
        return None;
    };
    match key.as_str() {
        "$exists" => Some(value.is_some() == (arg != &Value::Bool(false))),
        "$ge" => Some(
            value
                .and_then(Value::as_f64)
                .zip(arg.as_f64())
                .is_some_and(|(have, least)| have >= least),
        ),
        "$contains" => Some(match value {
            Some(Value::String(s)) => arg.as_str().is_some_and(|part| s.contains(part)),
            Some(other) => arg
                .as_str()
                .is_some_and(|part| pyjson::to_string(other).contains(part)),
            None => false,
        }),
        _ => None,
    }
}
