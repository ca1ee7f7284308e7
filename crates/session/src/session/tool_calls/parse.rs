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
        // A message without details has no such member (behaviour.md 2.9), so null stands for none.
        details: map.remove("details").filter(|details| !details.is_null()),
        structured_content: map
            .remove("structuredContent")
            .filter(|content| !content.is_null()),
        // A usage that cannot be read is left out: the result still answers the call.
        usage: map
            .remove("usage")
            .and_then(|usage| serde_json::from_value(usage).ok()),
        // Not read here: of other programs, only extensions may end a run with a result.
        terminate: None,
        // Kept apart from the outcome of the call, which hooks may change.
        has_failed: map.get("isError") == Some(&Value::Bool(true)),
        is_replaced: true,
    })
}

/// Reads a block of content.
pub(crate) fn block(value: Value) -> UserBlock {
    if let Value::String(text) = value {
        return UserBlock::text(text);
    }
    // Before the general form, which knows only one of the forms of an image (dialects.md 5, row 10).
    if value.get("type").and_then(Value::as_str) == Some("image")
        && let Ok(image) = image_from_value(&value)
    {
        return UserBlock::Image(image);
    }
    let text = value.to_string();
    serde_json::from_value(value).unwrap_or_else(|_| UserBlock::text(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn result_needs_an_array_of_content() {
        for value in [json!("text"), json!({}), json!({"content": "text"}), json!([])] {
            assert_eq!(result(value.clone()), None, "{value}");
        }
        assert!(result(json!({"content": []})).is_some());
    }

    #[test]
    fn null_details_count_as_absent() {
        let given = json!({"content": ["x"], "details": null, "structuredContent": null, "usage": "odd"});
        let read = result(given).unwrap();
        assert_eq!((read.details, read.structured_content), (None, None));
        assert!(
            read.usage.is_none(),
            "a usage that cannot be read does not end the call"
        );
        let read = result(json!({"content": [], "details": 0, "structuredContent": false})).unwrap();
        assert_eq!(read.details, Some(json!(0)));
        assert_eq!(read.structured_content, Some(json!(false)));
    }

    #[test]
    fn foreign_result_cannot_end_the_run() {
        let read = result(json!({"content": [], "terminate": true, "hasFailed": true})).unwrap();
        assert_eq!((read.terminate, read.has_failed), (None, false));
    }

    #[test]
    fn strange_block_becomes_its_json() {
        let strange = json!({"type": "video", "url": "x"});
        assert_eq!(block(strange.clone()), UserBlock::text(strange.to_string()));
        assert_eq!(block(json!(7)), UserBlock::text("7"));
        assert_eq!(block(json!("plain")), UserBlock::text("plain"));
        let broken = json!({"type": "image"});
        assert!(matches!(block(broken), UserBlock::Text(_)));
    }

    #[test]
    fn image_is_read_in_both_forms() {
        let own = json!({"type": "image", "data": "QUJD", "mimeType": "image/png"});
        let source =
            json!({"type": "image", "source": {"type": "base64", "data": "QUJD", "mediaType": "image/png"}});
        for image in [own, source] {
            match block(image.clone()) {
                UserBlock::Image(read) => {
                    assert_eq!(
                        (read.data.as_str(), read.mime_type.as_str()),
                        ("QUJD", "image/png")
                    );
                }
                UserBlock::Text(text) => panic!("{image}: {text:?}"),
            }
        }
    }
}
