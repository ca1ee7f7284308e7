//! Content blocks.

use serde_json::{Value, json};
use wire::UserBlock;

/// A text or image as a content block.
pub(crate) fn block(block: &UserBlock) -> Value {
    match block {
        UserBlock::Text(content) => text(&content.text),
        UserBlock::Image(image) => {
            json!({"type": "image", "data": image.data, "mimeType": image.mime_type})
        }
    }
}

/// A text as a content block.
pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
