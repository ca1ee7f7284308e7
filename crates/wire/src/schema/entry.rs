//! Schema of [`Entry`]: one definition per entry type, each with the fields that all entries have, and one member for types
//! of the future.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::tagged::{unknown, with_head};
use crate::entry::{
    BranchSummary, Compaction, CustomEntry, CustomMessageEntry, Entry, Label, MessageEntry, ModelChange,
    SessionInfo, ThinkingLevelChange, TtsrInjection,
};

const TYPES: [&str; 11] = [
    "session",
    "message",
    "thinking_level_change",
    "model_change",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "ttsr_injection",
    "label",
    "session_info",
];

fn kind<T: JsonSchema>(generator: &mut SchemaGenerator, name: &str) -> Value {
    let head = json!({
        "type": { "type": "string", "const": name },
        "id": { "type": "string", "description": "Id, unique in the session." },
        "parentId": { "type": ["string", "null"], "description": "Entry it follows; null for a root." },
        "timestamp": { "type": "string", "description": "Time it was appended, ISO 8601." },
    });
    let empty = Map::new();
    with_head::<T>(generator, head.as_object().unwrap_or(&empty))
}

impl JsonSchema for Entry {
    fn schema_name() -> Cow<'static, str> {
        "Entry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let members = [
            kind::<MessageEntry>(generator, "message"),
            kind::<ThinkingLevelChange>(generator, "thinking_level_change"),
            kind::<ModelChange>(generator, "model_change"),
            kind::<Compaction>(generator, "compaction"),
            kind::<BranchSummary>(generator, "branch_summary"),
            kind::<CustomEntry>(generator, "custom"),
            kind::<CustomMessageEntry>(generator, "custom_message"),
            kind::<TtsrInjection>(generator, "ttsr_injection"),
            kind::<Label>(generator, "label"),
            kind::<SessionInfo>(generator, "session_info"),
            unknown("An entry type of a newer version; pass over it.", "type", &TYPES),
        ];
        json_schema!({
            "description": "A node of the session's tree. Pass over types that you do not know.",
            "anyOf": members,
        })
    }
}
