//! Writes tools for the Messages API: their schemas reduced to what the API takes, and strict where the tool asks for it and
//! the model supports it.

use serde_json::{Map, Value, json};
use wire::ToolSpec;

use crate::strict_schema;

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
    let schemas = strict_schema::for_claude(tools, style.strict);
    let tools = tools.iter().zip(schemas);
    tools
        .map(|(tool, strict)| definition(tool, style, strict))
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(strict(&many), strict_schema::CLAUDE_TOOLS);
        let wide: Vec<ToolSpec> = (0..4).map(|index| tool(index, 7)).collect();
        assert_eq!(strict(&wide), 2);
        let off = ToolStyle {
            strict: false,
            ..style
        };
        assert!(write(&many, off).iter().all(|tool| tool.get("strict").is_none()));
    }
}
