//! Results that other programs give: clients, extensions and hooks write them as JSON.

use serde_json::Value;
use wire::command::image_from_value;
use wire::{ToolResult, UserBlock};

/// Reads a result. `None` if it has no array of content. Blocks of an unknown form become texts: a strange text is better than a
/// call that never ends.
pub(crate) fn result(value: Value) -> Option<ToolResult> {
    let Value::Object(mut map) = value else {
        return None;
    };
    let Some(Value::Array(content)) = map.remove("content") else {
        return None;
    };
    Some(ToolResult {
        content: content.into_iter().map(block).collect(),
        details: map.remove("details").filter(|details| !details.is_null()),
        structured_content: map
            .remove("structuredContent")
            .filter(|content| !content.is_null()),
        usage: map
            .remove("usage")
            .and_then(|usage| serde_json::from_value(usage).ok()),
        terminate: None,
        has_failed: false,
    })
}

/// Reads a block of content.
pub(crate) fn block(value: Value) -> UserBlock {
    if let Value::String(text) = value {
        return UserBlock::text(text);
    }
    if value.get("type").and_then(Value::as_str) == Some("image")
        && let Ok(image) = image_from_value(&value)
    {
        return UserBlock::Image(image);
    }
    let text = value.to_string();
    serde_json::from_value(value).unwrap_or_else(|_| UserBlock::text(text))
}
