//! MCP servers of a session, as clients set them and see them. What a server is and how it is kept connected is the business
//! of the crate `mcp`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Parameters of `set_mcp_servers`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct McpServersParams {
    /// Servers by name, each as an entry of `mcp.json`: `command`, `args`, `env` and `cwd`, or `url` and `headers`; also
    /// `timeout` in seconds, `enabled` and `tools`, a list of patterns. An error says which member is wrong.
    pub mcp_servers: Map<String, Value>,
}

/// Parameters of `mcp_reconnect`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct McpReconnectParams {
    /// The server; all of them if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpStatus {
    /// It is being connected.
    Connecting,
    /// It can be used.
    Connected,
    /// It cannot be had; `error` says why. It is tried again by itself a few times, and when it is wanted.
    Failed,
    /// Somebody has to log in: `pinion mcp login NAME`.
    NeedsLogin,
    /// It is not to be used.
    Disabled,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How it is doing.
    pub status: McpStatus,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// Who configured it: `user`, `project`, `cli`, `session` or `extension`.
    pub source: &'static str,
    /// Name and version that it gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Names of its tools, as the model calls them.
    pub tools: Vec<String>,
    /// Slash commands made of its prompts, without the slash.
    pub prompts: Vec<String>,
    /// Does it offer resources?
    pub resources: bool,
    /// What of it was left out, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Answer of `get_mcp_servers` and `set_mcp_servers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServers {
    /// The servers of the session.
    pub servers: Vec<McpServer>,
}
