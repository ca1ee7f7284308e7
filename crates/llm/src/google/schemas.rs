//! Parameters of tools as Gemini understands them: it ignores `const` and follows `enum` (pi 1.5.0).

use serde_json::{Map, Value, json};

/// Keywords whose members are named by the user; each value is a schema.
const NAMED: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Keywords with a schema or a list of schemas. What others contain, such as `default`, is data.
const NESTED: [&str; 16] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Returns the schema with an `enum` of one value in place of each `const` that is a text or a number.
pub(super) fn without_const(schema: &Value) -> Value {
    match schema {
        Value::Array(schemas) => schemas.iter().map(without_const).collect(),
        Value::Object(schema) => {
            let is_known = |value: &Value| value.is_string() || value.is_number();
            let replaced = schema
                .get("const")
                .filter(|value| is_known(value) && !schema.contains_key("enum"));
            let members = schema.iter().map(|(name, value)| match name.as_str() {
                "const" if replaced.is_some() => ("enum".to_owned(), json!([value])),
                name if NESTED.contains(&name) => (name.to_owned(), without_const(value)),
                name if NAMED.contains(&name) => (name.to_owned(), each(value)),
                name => (name.to_owned(), value.clone()),
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn each(schemas: &Value) -> Value {
    let Value::Object(schemas) = schemas else {
        return schemas.clone();
    };
    let members = schemas
        .iter()
        .map(|(name, schema)| (name.clone(), without_const(schema)));
    Value::Object(members.collect())
}
