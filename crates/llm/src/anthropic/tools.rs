//! Writes tools for the Messages API: their schemas reduced to what the API takes, and strict where the tool asks for it and
//! the model supports it.

use serde_json::{Map, Value, json};
use wire::ToolSpec;

/// Strict tools that Claude accepts in one request.
const MAX_STRICT_TOOLS: usize = 20;

/// Optional parameters that Claude accepts in all strict tools of one request.
const MAX_OPTIONAL: usize = 16;

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

/// How tools are written for a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolStyle {
    /// Each tool asks for its arguments to be streamed.
    pub(super) eager_input_streaming: bool,
    /// Strict schemas are accepted.
    pub(super) strict: bool,
}

/// The tools of a request, without cache markers.
pub(super) fn write(tools: &[ToolSpec], style: ToolStyle) -> Vec<Value> {
    let (mut strict_tools, mut optional) = (0, 0);
    let write = |tool: &ToolSpec| {
        let wants = style.strict && tool.prefers_strict && strict_tools < MAX_STRICT_TOOLS;
        let schema = wants.then(|| strict(&tool.parameters)).flatten();
        let schema = schema.filter(|(_, count)| optional + count <= MAX_OPTIONAL);
        if let Some((_, count)) = &schema {
            strict_tools += 1;
            optional += count;
        }
        definition(tool, style, schema.map(|(schema, _)| schema))
    };
    tools.iter().map(write).collect()
}

fn definition(tool: &ToolSpec, style: ToolStyle, strict: Option<Value>) -> Value {
    let mut fields = Map::new();
    fields.insert("name".into(), json!(tool.name));
    fields.insert("description".into(), json!(tool.description));
    if style.eager_input_streaming {
        fields.insert("eager_input_streaming".into(), json!(true));
    }
    if strict.is_some() {
        fields.insert("strict".into(), json!(true));
    }
    let schema = strict.unwrap_or_else(|| plain(&tool.parameters));
    fields.insert("input_schema".into(), schema);
    Value::Object(fields)
}

/// The parts of a schema that the API takes.
fn plain(parameters: &Value) -> Value {
    let part = |name: &str, other: Value| parameters.get(name).cloned().unwrap_or(other);
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), part("properties", json!({})));
    schema.insert("required".into(), part("required", json!([])));
    // A `$ref` inside the properties needs the definitions to resolve.
    for name in ["$defs", "definitions"] {
        if let Some(definitions) = parameters.get(name) {
            schema.insert(name.into(), definitions.clone());
        }
    }
    Value::Object(schema)
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

    #[test]
    fn strict_tools_respect_request_limits() {
        let tool = |index: usize, optional: usize| {
            let names = (0..optional).map(|name| (format!("p{name}"), json!({"type": "string"})));
            let properties: Map<String, Value> = names.collect();
            ToolSpec {
                name: format!("t{index}"),
                description: String::new(),
                parameters: json!({"type": "object", "properties": properties}),
                prefers_strict: true,
            }
        };
        let style = ToolStyle {
            eager_input_streaming: false,
            strict: true,
        };
        let strict = |tools: &[ToolSpec]| {
            let written = write(tools, style);
            written.iter().filter(|tool| tool["strict"] == true).count()
        };
        let many: Vec<ToolSpec> = (0..25).map(|index| tool(index, 0)).collect();
        assert_eq!(strict(&many), MAX_STRICT_TOOLS);
        let wide: Vec<ToolSpec> = (0..4).map(|index| tool(index, 7)).collect();
        assert_eq!(strict(&wide), 2);
        let off = ToolStyle {
            strict: false,
            ..style
        };
        assert!(write(&many, off).iter().all(|tool| tool.get("strict").is_none()));
    }
}
