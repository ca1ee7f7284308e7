//! Building blocks for schemas of tagged types: a struct that gets a constant field, and the member for names that are not
//! known yet.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A reference to a definition.
pub(crate) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Gives the definition of `T` the fields in `head` in front of its own, all of them required, and answers a reference to it.
pub(crate) fn with_head<T: JsonSchema>(generator: &mut SchemaGenerator, head: &Map<String, Value>) -> Value {
    let reference = generator.subschema_for::<T>().to_value();
    if let Some(Value::Object(schema)) = generator.definitions_mut().get_mut(T::schema_name().as_ref()) {
        prepend(schema, head);
    }
    reference
}

/// Puts required fields in front of an object schema's own.
pub(crate) fn prepend(schema: &mut Map<String, Value>, head: &Map<String, Value>) {
    let mut properties = head.clone();
    if let Some(Value::Object(own)) = schema.remove("properties") {
        properties.extend(own);
    }
    let mut required: Vec<Value> = head.keys().map(|key| json!(key)).collect();
    if let Some(Value::Array(own)) = schema.remove("required") {
        required.extend(
            own.into_iter()
                .filter(|key| !head.contains_key(key.as_str().unwrap_or(""))),
        );
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), Value::Array(required));
}

/// An object whose `key` is a string that is none of `known`.
pub(crate) fn unknown(doc: &str, key: &str, known: &[&str]) -> Value {
    json!({
        "description": doc,
        "type": "object",
        "properties": { key: { "type": "string", "not": { "enum": known } } },
        "required": [key],
    })
}

/// `get_state` -> `GetState`.
#[must_use]
pub fn pascal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for word in name.split('_') {
        let mut letters = word.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}
