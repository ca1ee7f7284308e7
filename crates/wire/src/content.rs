//! Content blocks of messages (pi-core.md 1.2). Messages themselves live in `message`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::extra::Extra;

/// A text block.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    /// The text, UTF-8, any length.
    #[serde(default)]
    pub text: String,
    /// Opaque provider data that must be sent back with the text to the same model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Thinking of the model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThinkingContent {
    /// The thinking text; empty if the provider only sends a signature.
    #[serde(default)]
    pub thinking: String,
    /// Opaque provider data (signature, encrypted item or the field name it came from).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// True when the provider withheld the text; the signature then carries the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<bool>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// An image, inline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// Base64 of the file's bytes, without a `data:` prefix.
    pub data: String,
    /// For example `image/png`.
    pub mime_type: String,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// A tool call the model asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The provider's call id; unique within a message.
    pub id: String,
    /// Tool name as the model wrote it.
    pub name: String,
    /// Arguments as the model wrote them (not validated).
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Opaque provider data that travels with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

impl ToolCall {
    /// The member that says why the arguments could not be read.
    const ARGUMENTS_ERROR: &str = "argumentsError";

    /// Why the arguments could not be read; the call has none then, and must not run.
    #[must_use]
    pub fn arguments_error(&self) -> Option<&str> {
        self.extra.get(Self::ARGUMENTS_ERROR)?.as_str()
    }

    /// Notes that the arguments could not be read.
    pub fn set_arguments_error(&mut self, error: String) {
        self.extra = Map::from_iter([(Self::ARGUMENTS_ERROR.to_owned(), error.into())]).into();
    }
}

/// A block of a user message or of a tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum UserBlock {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(ImageContent),
}

/// A block of an assistant message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AssistantBlock {
    /// Text.
    Text(TextContent),
    /// Thinking.
    Thinking(ThinkingContent),
    /// A tool call.
    ToolCall(ToolCall),
}

impl TextContent {
    /// Text without a signature.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            text_signature: None,
            extra: Extra::default(),
        }
    }
}

impl UserBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(t) => Some(&t.text),
            Self::Image(_) => None,
        }
    }
}

impl AssistantBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The tool call, if this is one.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            Self::Text(_) | Self::Thinking(_) => None,
        }
    }
}

/// Joins the text blocks with a line feed; images are left out.
pub fn joined_text(blocks: &[UserBlock]) -> String {
    let mut out = String::new();
    for text in blocks.iter().filter_map(UserBlock::as_text) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(text);
    }
    out
}

/// Writes a tool call with the `type` that it has as a block.
pub(crate) fn serialize_tool_call<S: serde::Serializer>(
    call: &ToolCall,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Block<'a> {
        r#type: &'a str,
        #[serde(flatten)]
        call: &'a ToolCall,
    }
    Block {
        r#type: "toolCall",
        call,
    }
    .serialize(serializer)
}

/// Reads a tool call with the `type` that it has as a block, which is no unknown member of it.
pub(crate) fn deserialize_tool_call<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<ToolCall, D::Error> {
    let mut call = ToolCall::deserialize(deserializer)?;
    call.extra.drop_known(&["type"]);
    Ok(call)
}
