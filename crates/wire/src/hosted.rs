//! Tools and URIs of the host: what a client lends to the agent, and the frames that answer the agent's questions
//! (dialects.md 7). The questions themselves are events; how calls are carried out is the host crate's business.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::ui::UiResponse;

/// A tool that the client carries out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostTool {
    /// Name, unique among all tools; white space around it is removed.
    pub name: String,
    /// For people; the name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Map<String, Value>,
    /// True keeps it from the model unless the user names it (`--tools`).
    #[serde(default)]
    pub hidden: bool,
}

/// Parameters of `set_host_tools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostToolsParams {
    /// All tools of the host; they take the place of those set before. What is wrong with them is said tool by tool.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<HostTool>"))]
    pub tools: Vec<Value>,
}

/// Answer of `set_host_tools`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolNames {
    /// Names of all tools of the host, hidden ones too.
    pub tool_names: Vec<String>,
}

/// A URI scheme that the client serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUriScheme {
    /// The part before `://`; letters count as small ones.
    pub scheme: String,
    /// What is found there, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// May the write tool write there?
    #[serde(default)]
    pub writable: bool,
    /// Does what was read once never change?
    #[serde(default)]
    pub immutable: bool,
}

/// Parameters of `set_host_uri_schemes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUriSchemesParams {
    /// All schemes of the host; they take the place of those set before.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<HostUriScheme>"))]
    pub schemes: Vec<Value>,
}

/// Answer of `set_host_uri_schemes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostUriSchemes {
    /// The schemes, in small letters.
    pub schemes: Vec<String>,
}

/// What the agent wants of a URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum UriOperation {
    /// Its content.
    Read,
    /// To give it new content.
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

/// How far a call of the host has come.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolUpdate {
    /// The `id` of the `host_tool_call`.
    pub id: String,
    /// Everything so far; its `content` must be an array.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::tool_result"))]
    pub partial_result: Value,
}

/// What a call of the host gave back.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostToolResult {
    /// The `id` of the `host_tool_call`.
    pub id: String,
    /// The result; its `content` must be an array.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::tool_result"))]
    pub result: Value,
    /// Did it fail? The text is then the error.
    #[serde(default, deserialize_with = "exactly_true")]
    pub is_error: bool,
}

/// What became of a `host_uri_request`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HostUriResult {
    /// The `id` of the `host_uri_request`.
    pub id: String,
    /// The text that was read, or a word on what was written.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub content: Value,
    /// `text/plain` (the default), `text/markdown` or `application/json`.
    #[serde(default, deserialize_with = "text_only")]
    pub content_type: Option<String>,
    /// Remarks, shown below the text.
    #[serde(default, deserialize_with = "texts_only")]
    pub notes: Vec<String>,
    /// Does what was read never change? What the scheme says when absent.
    #[serde(default, deserialize_with = "flag_only")]
    pub immutable: Option<bool>,
    /// Did it fail?
    #[serde(default, deserialize_with = "exactly_true")]
    pub is_error: bool,
    /// Why it failed.
    #[serde(default, deserialize_with = "text_only")]
    pub error: Option<String>,
}

/// A frame of the host. Frames overtake like control commands and are answered only when they cannot be used.
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
    UiResponse(UiResponse),
}

impl Frame {
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
