//! Attachments of the oldest dialects (dialects.md 13): what they are. What the model gets of them is decided in `session`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A file that came with a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// The client's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// `image` or `document`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Name without a path.
    #[serde(default, alias = "file_name", skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
    /// For example `image/png`.
    #[serde(default, alias = "mime_type", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Size of the file in bytes; ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Value>,
    /// Base64 of the file's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Text of a document.
    #[serde(default, alias = "extracted_text", skip_serializing_if = "Option::is_none")]
    pub extracted_text: Option<String>,
    /// Preview image; ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Value>,
}
