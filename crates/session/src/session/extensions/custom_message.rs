//! Messages that extensions add to the conversation.

use serde_json::Value;
use wire::{CustomMessage, Message};

use super::super::clock::now_ms;

/// A message of an extension.
///
/// # Errors
/// When its content is neither text nor blocks.
pub(crate) fn custom(value: &Value) -> Result<Message, String> {
    let content = match value.get("content") {
        None | Some(Value::Null) => Value::String(String::new()),
        Some(content) => content.clone(),
    };
    Ok(Message::Custom(CustomMessage {
        custom_type: value
            .get("customType")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        content: serde_json::from_value(content)
            .map_err(|error| format!("Invalid message content: {error}"))?,
        display: value.get("display").and_then(Value::as_bool).unwrap_or(false),
        details: value.get("details").filter(|details| !details.is_null()).cloned(),
        timestamp: now_ms(),
        extra: wire::Extra::default(),
    }))
}
