//! Tools as the model and clients see them. How tools work lives in `tools`; who may call them in `session`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{UserBlock, joined_text};
use crate::usage::Usage;

/// Definition of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// Name, unique among the active tools.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments; always an object schema.
    pub parameters: Value,
    /// The provider shall hold the model to the schema where it can. Not part of the protocol.
    #[serde(skip)]
    pub prefers_strict: bool,
}

/// Response to `get_tools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tools {
    /// Names of the tools that the model can call.
    pub active_tool_names: Vec<String>,
    /// All tools, including those of clients, extensions and MCP servers.
    pub all_tools: Vec<ToolSpec>,
}

/// Parameters of `set_active_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActiveToolsParams {
    /// Names of the tools that the model can call, starting with its next request. Unknown tools and tools that the
    /// command line excludes are ignored.
    #[serde(alias = "tool_names")]
    pub tool_names: Vec<String>,
}

/// Response to `set_active_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActiveTools {
    /// Names of the tools that the model can call.
    pub active_tool_names: Vec<String>,
}

/// Result of a tool, or its progress (`partialResult`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// What the model sees.
    #[serde(default)]
    pub content: Vec<UserBlock>,
    /// Data for clients. Its format depends on the tool. `{}` for errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The result for programs, beyond the text for the model. Only `bash`, `submit_result`, and tools of clients and
    /// extensions that give one, have it. It is in `tool_execution_end`, never in the session file (pi-1.5-delta.md 7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// What models used that the tool gave work to. It counts in the totals of the session (pi-1.5-delta.md 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// True ends the run after this turn if all results of the turn have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
    /// True if the command of `bash` ended with another exit code than 0, or if the tool of an extension said so, even if hooks
    /// changed the result.
    #[serde(skip)]
    pub has_failed: bool,
    /// True if another program gave or replaced the content: nothing may repeat it as that of the built-in tool.
    #[serde(skip)]
    pub is_replaced: bool,
}

impl ToolResult {
    /// A result of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![UserBlock::text(text)],
            details: None,
            structured_content: None,
            usage: None,
            terminate: None,
            has_failed: false,
            is_replaced: false,
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
