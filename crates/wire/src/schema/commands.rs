//! Schemas of command and response lines, one definition per row of the command table.

use std::collections::BTreeSet;

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::Defs;
use super::tagged::{pascal, prepend};
use crate::omp::ContinuedSession;
use crate::table::{CommandSpec, TABLE};

/// The command lines.
pub(super) struct Requests {
    /// `PromptCommand` and so on.
    pub(super) defs: Defs,
    /// Parameter types that are part of the command definitions now and not needed on their own.
    pub(super) inlined: BTreeSet<String>,
}

/// Commands, in table order.
pub(super) fn requests(generator: &mut SchemaGenerator) -> Requests {
    let mut defs = Defs::new();
    let mut inlined = BTreeSet::new();
    for spec in TABLE {
        let params = (spec.params)(generator);
        let name = target(&params);
        let own = name
            .and_then(|name| generator.definitions().get(name))
            .and_then(Value::as_object);
        inlined.extend(name.map(str::to_owned));
        defs.insert(
            format!("{}Command", pascal(spec.name)),
            request(spec, own.cloned().unwrap_or_default()),
        );
    }
    Requests { defs, inlined }
}

/// Responses, in table order, then the two kinds of errors.
pub(super) fn responses(generator: &mut SchemaGenerator) -> Defs {
    let mut defs = Defs::new();
    for spec in TABLE {
        let reply = (spec.reply)(generator).to_value();
        defs.insert(format!("{}Response", pascal(spec.name)), response(spec, &reply));
        if let Some((name, reply)) = other_reply(spec, generator) {
            defs.insert(name.to_owned(), response(spec, &reply));
        }
    }
    let command = json!({ "description": "The command's `type`; absent when it had none." });
    let doc = "A command failed. Nothing has changed unless the command says otherwise.";
    defs.insert(
        "ErrorResponse".to_owned(),
        failure(doc, Some(id()), &command, &["type", "success", "error"]),
    );
    let command = json!({ "type": "string", "const": "parse" });
    let doc = "A line was no command: not JSON, too long or nested too deeply.";
    let required = ["type", "command", "success", "error"];
    defs.insert(
        "ParseErrorResponse".to_owned(),
        failure(doc, None, &command, &required),
    );
    defs
}

/// Another response of a command that succeeded.
fn other_reply(spec: &CommandSpec, generator: &mut SchemaGenerator) -> Option<(&'static str, Value)> {
    match spec.name {
        // With `sessionDir` the command continues a session, as in today's oh-my-pi (dialects.md 14).
        "open_session" => {
            let continued = generator.subschema_for::<ContinuedSession>().to_value();
            Some(("OpenSessionDirectoryResponse", continued))
        }
        // pi sends no text when an extension refuses.
        "fork" => {
            let refused = json!({ "type": "boolean", "const": true, "description": "An extension refused." });
            let data = json!({ "type": "object", "properties": { "cancelled": refused }, "required": ["cancelled"] });
            Some(("ForkRefusedResponse", data))
        }
        _ => None,
    }
}

fn id() -> Value {
    json!({ "description": "Any JSON value; the response carries the same." })
}

fn request(spec: &CommandSpec, mut own: Map<String, Value>) -> Value {
    own.shift_remove("title");
    own.shift_remove("description");
    let head = Map::from_iter([("type".to_owned(), json!({ "type": "string", "const": spec.name }))]);
    prepend(&mut own, &head);
    let mut properties = Map::from_iter([("id".to_owned(), id())]);
    if let Some(Value::Object(rest)) = own.remove("properties") {
        properties.extend(rest);
    }
    let required = own.remove("required");
    json!({
        "description": spec.doc.trim(),
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

fn response(spec: &CommandSpec, reply: &Value) -> Value {
    let mut properties = json!({
        "id": { "description": "The command's `id`; absent when it had none." },
        "type": { "type": "string", "const": "response" },
        "command": { "type": "string", "const": spec.name },
        "success": { "type": "boolean", "const": true },
    });
    let mut required = vec!["type", "command", "success"];
    let nothing = reply.get("type").and_then(Value::as_str) == Some("null");
    if let Some(fields) = properties.as_object_mut().filter(|_| !nothing) {
        fields.insert("data".to_owned(), reply.clone());
        required.push("data");
    }
    json!({
        "description": format!("`{}` succeeded.", spec.name),
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

fn failure(doc: &str, id: Option<Value>, command: &Value, required: &[&str]) -> Value {
    let mut properties = Map::new();
    properties.extend(id.map(|id| ("id".to_owned(), id)));
    properties.insert(
        "type".to_owned(),
        json!({ "type": "string", "const": "response" }),
    );
    properties.insert("command".to_owned(), command.clone());
    properties.insert("success".to_owned(), json!({ "type": "boolean", "const": false }));
    let error = json!({ "type": "string", "description": "What is wrong, for people; the known texts do not change." });
    properties.insert("error".to_owned(), error);
    json!({ "description": doc, "type": "object", "properties": properties, "required": required })
}

/// Name of the definition that a schema refers to.
fn target(schema: &Schema) -> Option<&str> {
    schema
        .as_object()?
        .get("$ref")?
        .as_str()?
        .strip_prefix("#/$defs/")
}
