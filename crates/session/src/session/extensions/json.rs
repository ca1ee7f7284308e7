//! JSON of events and answers.

use serde_json::{Map, Value, json};

/// Gives an event another member.
pub(crate) fn put(event: &mut Value, name: &str, member: Value) {
    if let Value::Object(members) = event {
        members.insert(name.to_owned(), member);
    }
}

/// Members of an object; none of anything else.
pub(crate) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Returns true if an answer says `cancel`.
pub(crate) fn cancels(answer: &Value) -> bool {
    answer.get("cancel") == Some(&json!(true))
}
