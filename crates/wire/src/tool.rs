//! Tools as the model and clients see them. How tools work lives in `tools`; who may call them in `host`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{UserBlock, joined_text};

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Name, unique among the active tools.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments; always an object schema.
    pub parameters: Value,
    /// The provider shall hold the model to the schema where it can. Not part of the protocol.
    #[serde(skip)]
    pub prefers_strict: bool,
}

/// Answer of `get_tools` (web.md 1.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tools {
    /// Names of those that the model may call.
    pub active_tool_names: Vec<String>,
    /// All of them, whoever brings them.
    pub all_tools: Vec<ToolSpec>,
}

/// Parameters of `set_active_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActiveToolsParams {
    /// Names of the tools that the model may call from its next request on. Those that nobody brings, or that the command
    /// line forbids, are passed over.
    #[serde(alias = "tool_names")]
    pub tool_names: Vec<String>,
}

/// Answer of `set_active_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActiveTools {
    /// Names of those that the model may call.
    pub active_tool_names: Vec<String>,
}

/// What a tool gave back, or how far it has come (`partialResult`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// What the model sees.
    #[serde(default)]
    pub content: Vec<UserBlock>,
    /// What only clients see; its shape belongs to the tool. Absent when there is none, `{}` for errors (behaviour.md 2.9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// True asks the loop not to call the model again when every result of the batch says so (pi-core.md 1.3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
}

impl ToolResult {
    /// A result of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![UserBlock::text(text)],
            details: None,
            terminate: None,
        }
    }

    /// An error result: one text block and `details: {}`.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            details: Some(Value::Object(serde_json::Map::new())),
            ..Self::text(text)
        }
    }

    /// The text blocks, joined by a line feed.
    #[must_use]
    pub fn joined_text(&self) -> String {
        joined_text(&self.content)
    }
}
