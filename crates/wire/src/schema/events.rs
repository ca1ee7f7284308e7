//! Gives every kind of event a definition of its own, and adds the cumulative form of `message_update`, which exists only on
//! the wire (docs/internals/decisions/25-linear-updates.md).

use serde_json::{Value, json};

use super::Defs;
use super::tagged::{pascal, reference};

const CUMULATIVE: &str = "MessageUpdateCumulativeEvent";

/// The event definitions.
pub(super) struct Events {
    /// All of them, those of `assistantMessageEvent` last.
    pub(super) defs: Defs,
    /// Names of the types that are lines of their own.
    pub(super) lines: Vec<String>,
}

/// Takes the two event enums apart. `Event` is left for the caller to replace; `StreamEvent` becomes a union of references.
pub(super) fn split(types: &mut Defs) -> Events {
    let mut defs = Defs::new();
    let mut lines = Vec::new();
    for (name, schema) in variants(types.get("Event")) {
        let update = name == "MessageUpdateEvent";
        lines.push(name.clone());
        defs.insert(name, numbered(schema));
        if update {
            lines.push(CUMULATIVE.to_owned());
            defs.insert(CUMULATIVE.to_owned(), numbered(cumulative()));
        }
    }
    let steps = variants(types.get("StreamEvent"));
    let members: Vec<Value> = steps.iter().map(|(name, _)| reference(name)).collect();
    if let Some(Value::Object(stream)) = types.get_mut("StreamEvent") {
        stream.shift_remove("oneOf");
        stream.insert("anyOf".to_owned(), Value::Array(members));
    }
    defs.extend(steps);
    Events { defs, lines }
}

/// An event line may have a number.
pub(super) fn numbered(mut schema: Value) -> Value {
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        let doc = "Number of the event on this connection; only there when it was asked for with `hello`.";
        fields.insert(
            "seq".to_owned(),
            json!({ "type": "integer", "minimum": 1, "description": doc }),
        );
    }
    schema
}

fn variants(schema: Option<&Value>) -> Vec<(String, Value)> {
    let all = schema
        .and_then(|schema| schema.get("oneOf"))
        .and_then(Value::as_array);
    let named = |schema: &Value| {
        let name = schema.pointer("/properties/type/const")?.as_str()?;
        Some((format!("{}Event", pascal(name)), schema.clone()))
    };
    all.into_iter().flatten().filter_map(named).collect()
}

fn cumulative() -> Value {
    json!({
        "description": "An answer grew; the form that carries the whole message so far with every step. Clients of older \
                        agents get it.",
        "type": "object",
        "properties": {
            "type": { "type": "string", "const": "message_update" },
            "assistantMessageEvent": {
                "description": "What arrived.",
                "allOf": [
                    reference("StreamEvent"),
                    {
                        "type": "object",
                        "properties": {
                            "partial": { "description": "The message so far.", "$ref": "#/$defs/AssistantMessage" },
                        },
                        "required": ["partial"],
                    },
                ],
            },
            "message": { "description": "The message so far.", "$ref": "#/$defs/AssistantMessage" },
            "usage": { "description": "Token counts so far.", "$ref": "#/$defs/Usage" },
        },
        "required": ["type", "assistantMessageEvent", "message"],
    })
}
