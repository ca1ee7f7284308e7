//! Cleans generated schemas for readers outside this repository: names of number formats that no validator knows go, as do
//! notes on where a rule comes from; wrapped doc comments become one line.

use serde_json::{Map, Value};

/// Cleans every schema below.
pub(crate) fn tidy(schemas: &mut Map<String, Value>) {
    for schema in schemas.values_mut() {
        walk(schema);
    }
}

fn walk(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(walk),
        Value::Object(map) => {
            if map.get("format").is_some_and(Value::is_string) {
                map.shift_remove("format");
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = plain(text);
            }
            for (key, value) in map.iter_mut() {
                // Below `properties` keys are field names, and a field may be called `format`.
                match (key.as_str(), value) {
                    ("properties", Value::Object(fields)) => tidy(fields),
                    ("const" | "default" | "enum", _) => {}
                    (_, value) => walk(value),
                }
            }
        }
        _ => {}
    }
}

/// Doc comments name the design notes a rule comes from, like `(behaviour.md 2.9)`; readers of the schema do not have them.
fn plain(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(joined.len());
    let mut rest = joined.as_str();
    while let Some((before, tail)) = rest.split_once(" (") {
        let Some((inside, after)) = tail.split_once(')') else {
            break;
        };
        out.push_str(before);
        let kept: Vec<&str> = inside.split("; ").filter(|part| !part.contains(".md ")).collect();
        if !kept.is_empty() {
            out.push_str(" (");
            out.push_str(&kept.join("; "));
            out.push(')');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Takes null away from fields that are left out when there is nothing to say: what the agent writes never has both.
pub(crate) fn absent_not_null(schemas: &mut Map<String, Value>) {
    for schema in schemas.values_mut() {
        optional_fields(schema);
        for member in schema
            .get_mut("oneOf")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            optional_fields(member);
        }
    }
}

fn optional_fields(schema: &mut Value) {
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in fields.into_iter().flatten() {
        if !required.iter().any(|known| known == name) {
            without_null(field);
        }
    }
}

fn without_null(field: &mut Value) {
    let Some(map) = field.as_object_mut() else { return };
    if let Some(Value::Array(names)) = map.get_mut("type") {
        names.retain(|name| name != "null");
        if let [only] = names.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(members)) = map.get_mut("anyOf") else {
        return;
    };
    members.retain(|member| member.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = members.as_slice() {
        let only = only.clone();
        map.shift_remove("anyOf");
        map.extend(only);
    }
}
