//! Schema of [`Message`]: one definition per role, each with its `role`, and one member for roles of the future.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::tagged::{unknown, with_head};
use crate::message::{
    AssistantMessage, BashExecutionMessage, BranchSummaryMessage, CompactionSummaryMessage, CustomMessage,
    Message, ToolResultMessage, UserMessage,
};

const ROLES: [&str; 8] = [
    "user",
    "assistant",
    "toolResult",
    "bashExecution",
    "custom",
    "hookMessage",
    "branchSummary",
    "compactionSummary",
];

fn role<T: JsonSchema>(generator: &mut SchemaGenerator, name: &str) -> Value {
    let head = Map::from_iter([("role".to_owned(), json!({ "type": "string", "const": name }))]);
    with_head::<T>(generator, &head)
}

impl JsonSchema for Message {
    fn schema_name() -> Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let members = [
            role::<UserMessage>(generator, "user"),
            role::<AssistantMessage>(generator, "assistant"),
            role::<ToolResultMessage>(generator, "toolResult"),
            role::<BashExecutionMessage>(generator, "bashExecution"),
            role::<CustomMessage>(generator, "custom"),
            role::<BranchSummaryMessage>(generator, "branchSummary"),
            role::<CompactionSummaryMessage>(generator, "compactionSummary"),
            unknown("A role of a newer version; pass over it.", "role", &ROLES),
        ];
        json_schema!({
            "description": "A message of any role. Pass over roles that you do not know.",
            "anyOf": members,
        })
    }
}
