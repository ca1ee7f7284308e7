//! Schemas of the frames: lines of the client that answer a question of the agent and are no commands.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::Defs;
use super::tagged::prepend;
use crate::hosted::{HostToolResult, HostToolUpdate, HostUriResult};
use crate::ui::UiResponse;

/// All frames: `HostToolUpdateFrame` and so on.
pub(super) fn frames(generator: &mut SchemaGenerator) -> Defs {
    Defs::from_iter([
        (
            "HostToolUpdateFrame".to_owned(),
            frame::<HostToolUpdate>(generator, "host_tool_update", &["type", "id", "partialResult"]),
        ),
        (
            "HostToolResultFrame".to_owned(),
            frame::<HostToolResult>(generator, "host_tool_result", &["type", "id", "result"]),
        ),
        (
            "HostUriResultFrame".to_owned(),
            frame::<HostUriResult>(generator, "host_uri_result", &["type", "id"]),
        ),
        (
            "ExtensionUiResponseFrame".to_owned(),
            frame::<UiResponse>(generator, "extension_ui_response", &["type", "id"]),
        ),
        (
            "HookUiResponseFrame".to_owned(),
            frame::<UiResponse>(generator, "hook_ui_response", &["type", "id"]),
        ),
    ])
}

/// `required` is what the agent cannot do without; it reads more leniently, so as to be able to complain.
fn frame<T: JsonSchema>(generator: &mut SchemaGenerator, name: &str, required: &[&str]) -> Value {
    let mut schema = T::json_schema(generator);
    let head = Map::from_iter([("type".to_owned(), json!({ "type": "string", "const": name }))]);
    prepend(schema.ensure_object(), &head);
    schema.insert("required".to_owned(), json!(required));
    schema.to_value()
}
