//! Strict schemas of tools: the provider holds the model to a schema of this form, so that arguments are always valid.

use serde_json::{Map, Value, json};
use wire::ToolSpec;

/// Strict tools that Claude accepts in one request.
pub(crate) const CLAUDE_TOOLS: usize = 20;

/// Optional parameters that Claude accepts in all strict tools of one request.
const CLAUDE_OPTIONAL: usize = 16;

/// Keywords that a strict schema must not have anywhere.
const REFUSED: [&str; 28] = [
    "$ref",
    "$defs",
    "definitions",
    "allOf",
    "oneOf",
    "anyOf",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "propertyNames",
    "contains",
    "prefixItems",
    "not",
    "if",
    "then",
    "else",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
];

/// Formats of strings that a strict schema may name.
const FORMATS: [&str; 10] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// The strict schemas of the tools that ask for one, as many as Claude accepts in one request.
pub(crate) fn for_claude(tools: &[ToolSpec], is_accepted: bool) -> Vec<Option<Value>> {
    let (mut count, mut optional) = (0, 0);
    let choose = |tool: &ToolSpec| {
        let (schema, more) = preferred(tool, is_accepted && count < CLAUDE_TOOLS)
            .filter(|(_, more)| optional + more <= CLAUDE_OPTIONAL)?;
        count += 1;
        optional += more;
        Some(schema)
    };
    tools.iter().map(choose).collect()
}

/// The strict schema of a tool that asks for one, and the number of its optional parameters. None if the API does not accept it, or if
/// the schema cannot be strict.
fn preferred(tool: &ToolSpec, is_accepted: bool) -> Option<(Value, usize)> {
    (is_accepted && tool.prefers_strict)
        .then(|| strict(&tool.parameters))
        .flatten()
}

/// The schema of a tool for the request, and true if it is strict.
pub(crate) fn parameters(tool: &ToolSpec, is_accepted: bool) -> (Value, bool) {
    match preferred(tool, is_accepted) {
        Some((schema, _)) => (schema, true),
        None => (tool.parameters.clone(), false),
    }
}

/// The strict form of an object schema and the number of its optional parameters. In the strict form every property is
/// required and an optional one may be null, which the tools take as absent. None when the schema cannot be strict.
fn strict(schema: &Value) -> Option<(Value, usize)> {
    let schema = schema.as_object()?;
    if schema.get("type")? != "object" {
        return None;
    }
    let mut optional = 0;
    let schema = node(schema, &mut optional)?;
    Some((Value::Object(schema), optional))
}

fn node(schema: &Map<String, Value>, optional: &mut usize) -> Option<Map<String, Value>> {
    let is_refused = |(name, value): (&String, &Value)| match name.as_str() {
        "minItems" => !matches!(value.as_u64(), Some(0 | 1)),
        "format" => !value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        "additionalProperties" => value != &json!(false),
        name => REFUSED.contains(&name),
    };
    if schema.iter().any(is_refused) {
        return None;
    }
    let mut out = schema.clone();
    if let Some(items) = schema.get("items") {
        out.insert("items".into(), Value::Object(node(items.as_object()?, optional)?));
    }
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if !is_object {
        return schema.get("properties").is_none().then_some(out);
    }
    let none = Map::new();
    let properties = match schema.get("properties") {
        Some(properties) => properties.as_object()?,
        None => &none,
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let mut strict = Map::new();
    for (name, property) in properties {
        let property = Value::Object(node(property.as_object()?, optional)?);
        strict.insert(
            name.clone(),
            if is_required(name) {
                property
            } else {
                *optional += 1;
                json!({"anyOf": [property, {"type": "null"}]})
            },
        );
    }
    out.insert("required".into(), strict.keys().map(String::as_str).collect());
    out.insert("properties".into(), Value::Object(strict));
    out.insert("additionalProperties".into(), json!(false));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_schema_makes_optional_properties_nullable() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "limit": {"type": "number"},
            "edits": {"type": "array", "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}}}});
        let (strict, optional) = strict(&schema).unwrap();
        assert_eq!(optional, 2);
        let expected = json!({"type": "object", "required": ["path", "limit", "edits"], "additionalProperties": false,
            "properties": {"path": {"type": "string"}, "limit": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "edits": {"anyOf": [{"type": "array", "items": {"type": "object", "required": ["a"],
                    "properties": {"a": {"type": "string"}}, "additionalProperties": false}}, {"type": "null"}]}}});
        assert_eq!(strict, expected);
    }

    #[test]
    fn unsupported_schemas_stay_non_strict() {
        for part in [
            json!({"type": "number", "minimum": 1}),
            json!({"$ref": "#/$defs/a"}),
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!({"type": "object", "additionalProperties": true}),
            json!({"type": "string", "format": "path"}),
            json!({"type": "array", "minItems": 2, "items": {"type": "string"}}),
            json!(true),
        ] {
            let schema = json!({"type": "object", "properties": {"p": part}});
            assert_eq!(strict(&schema), None, "{schema}");
        }
    }
}
