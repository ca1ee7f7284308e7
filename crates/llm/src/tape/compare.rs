//! Decides whether a request equals a recorded one. Only the conversation counts: instructions contain directories and
//! dates, and ids of sessions and calls are always new.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

/// Where the families keep the conversation.
const CONVERSATIONS: [&str; 3] = ["messages", "input", "contents"];
/// Who does not take part in it.
const INSTRUCTORS: [&str; 2] = ["system", "developer"];
/// Names of ids, and of marks that say nothing.
const IDS: [&str; 7] = [
    "id",
    "tool_use_id",
    "tool_call_id",
    "toolCallId",
    "toolUseId",
    "call_id",
    "cache_control",
];

/// Returns a hash that is equal for requests with the same conversation.
pub(super) fn fingerprint(body: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    conversation(body).to_string().hash(&mut hasher);
    hasher.finish()
}

/// Where two requests say different things for the first time, as a path.
pub(super) fn difference(recorded: &Value, asked: &Value) -> Option<String> {
    differ(&conversation(recorded), &conversation(asked))
}

fn conversation(body: &Value) -> Value {
    let mut out = Map::new();
    for name in CONVERSATIONS {
        match body.get(name) {
            Some(Value::Array(messages)) => {
                let said = messages.iter().filter(|message| {
                    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
                    !INSTRUCTORS.contains(&role)
                });
                out.insert(name.to_owned(), said.map(plain).collect());
            }
            Some(text) => drop(out.insert(name.to_owned(), text.clone())),
            None => {}
        }
    }
    Value::Object(out)
}

/// Without ids.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !IDS.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name.clone(), plain(value))).collect())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

fn differ(one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names
                .into_iter()
                .find_map(|name| match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differ(a, b).map(|rest| format!(".{name}{rest}")),
                    _ => Some(format!(".{name}")),
                })
        }
        (Value::Array(a), Value::Array(b)) => {
            let inside = a
                .iter()
                .zip(b)
                .enumerate()
                .find_map(|(at, (a, b))| differ(a, b).map(|rest| format!("[{at}]{rest}")));
            inside.or_else(|| (a.len() != b.len()).then(|| format!("[{}]", a.len().min(b.len()))))
        }
        _ => (one != other).then(String::new),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn recording_comparison_ignores_volatile_fields() {
        let body = |day: &str, id: &str, text: &str| {
            json!({"model": "m", "prompt_cache_key": id, "messages": [
                {"role": "system", "content": day},
                {"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]},
                {"role": "tool", "tool_call_id": id, "content": "x"},
            ]})
        };
        let recorded = body("Monday", "1", "hi");
        assert_eq!(fingerprint(&recorded), fingerprint(&body("Tuesday", "2", "hi")));
        assert_eq!(difference(&recorded, &body("Tuesday", "2", "hi")), None);
        let other = body("Monday", "1", "hello");
        assert_ne!(fingerprint(&recorded), fingerprint(&other));
        assert_eq!(
            difference(&recorded, &other).as_deref(),
            Some(".messages[0].content[0].text")
        );
        assert_eq!(
            difference(&recorded, &json!({"messages": []})).as_deref(),
            Some(".messages[0]")
        );
    }
}
