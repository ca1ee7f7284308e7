//! Tools and URIs of the host: what a client lends to the agent, and the frames that answer the agent's questions
//! (dialects.md 7). The questions themselves are events; how calls are carried out is the host crate's business.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::ui::UiResponse;

/// A tool that the client runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostTool {
    /// Unique name. Leading and trailing whitespace is removed.
    pub name: String,
    /// Name that users see. Default: `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Map<String, Value>,
    /// Whether the model sees it only if `--tools` names it.
    #[serde(default)]
    pub hidden: bool,
}

/// Parameters of `set_host_tools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostToolsParams {
    /// All tools of the client. They replace the previous ones. Errors name the tool.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<HostTool>"))]
    pub tools: Vec<Value>,
}

/// Response to `set_host_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolNames {
    /// Names of all tools of the client, including hidden ones.
    pub tool_names: Vec<String>,
}

/// A URI scheme that the client serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUriScheme {
    /// The part before `://`. Upper and lower case are equal.
    pub scheme: String,
    /// Description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the tool `write` can write to it.
    #[serde(default)]
    pub writable: bool,
    /// Whether the content never changes.
    #[serde(default)]
    pub immutable: bool,
}

/// Parameters of `set_host_uri_schemes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUriSchemesParams {
    /// All schemes of the client. They replace the previous ones.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<HostUriScheme>"))]
    pub schemes: Vec<Value>,
}

/// Response to `set_host_uri_schemes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUriSchemes {
    /// The schemes in lower case.
    pub schemes: Vec<String>,
}

/// Operation on a URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UriOperation {
    /// Read the content.
    Read,
    /// Write new content.
    Write,
}

impl UriOperation {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A tool result as the agent writes it; the definition is made once, with the lines that go out.
#[cfg(feature = "schema")]
fn tool_result(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "$ref": "#/$defs/ToolResult" })
}

/// Progress of a client tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolUpdate {
    /// The `id` of the `host_tool_call`.
    pub id: String,
    /// The whole result so far. Its `content` must be an array.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "tool_result"))]
    pub partial_result: Value,
}

/// Result of a client tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolResult {
    /// The `id` of the `host_tool_call`.
    pub id: String,
    /// The result; its `content` must be an array.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "tool_result"))]
    pub result: Value,
    /// Whether it failed. The text is then the error.
    #[serde(default, deserialize_with = "exactly_true")]
    pub is_error: bool,
}

/// Result of a `host_uri_request`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostUriResult {
    /// The `id` of the `host_uri_request`.
    pub id: String,
    /// The text that was read, or a message about the write.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub content: Value,
    /// `text/plain` (the default), `text/markdown` or `application/json`.
    #[serde(default, deserialize_with = "text_only")]
    pub content_type: Option<String>,
    /// Notes that are shown below the text.
    #[serde(default, deserialize_with = "texts_only")]
    pub notes: Vec<String>,
    /// Whether the content never changes. Default: as the scheme.
    #[serde(default, deserialize_with = "flag_only")]
    pub immutable: Option<bool>,
    /// Whether it failed.
    #[serde(default, deserialize_with = "exactly_true")]
    pub is_error: bool,
    /// The error message.
    #[serde(default, deserialize_with = "text_only")]
    pub error: Option<String>,
}

/// A frame of the client. Frames are handled at once, like control commands, and get a response only if they cannot be
/// used.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Frame {
    /// `host_tool_update`.
    ToolUpdate(HostToolUpdate),
    /// `host_tool_result`.
    ToolResult(HostToolResult),
    /// `host_uri_result`.
    UriResult(HostUriResult),
    /// `extension_ui_response`, or `hook_ui_response` as older clients call it.
    UiResponse(Box<UiResponse>),
}

impl Frame {
    /// The id of the question that the frame answers.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::ToolUpdate(update) => &update.id,
            Self::ToolResult(result) => &result.id,
            Self::UriResult(result) => &result.id,
            Self::UiResponse(response) => &response.id,
        }
    }

    /// Makes a frame of its name and the whole line. `None`: no frame of the host, or one without a text as `id`, which
    /// cannot belong to any question of ours.
    #[must_use]
    pub fn parse(name: &str, line: &str) -> Option<Self> {
        let read = match name {
            "host_tool_update" => serde_json::from_str(line).map(Self::ToolUpdate),
            "host_tool_result" => serde_json::from_str(line).map(Self::ToolResult),
            "host_uri_result" => serde_json::from_str(line).map(Self::UriResult),
            "extension_ui_response" | "hook_ui_response" => serde_json::from_str(line).map(Self::UiResponse),
            _ => return None,
        };
        read.ok()
    }
}

fn exactly_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(deserializer)? == Value::Bool(true))
}

fn flag_only<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_bool())
}

fn text_only<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(Some(text)),
        _ => Ok(None),
    }
}

fn texts_only<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let Value::Array(values) = Value::deserialize(deserializer)? else {
        return Ok(Vec::new());
    };
    let texts = values.into_iter().filter_map(|value| match value {
        Value::String(text) => Some(text),
        _ => None,
    });
    Ok(texts.collect())
}
