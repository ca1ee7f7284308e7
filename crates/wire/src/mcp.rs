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
    #[serde(alias = "mcp_servers")]
    pub mcp_servers: Map<String, Value>,
}

/// Parameters of `mcp_reconnect`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct McpReconnectParams {
    /// Name of the server. Default: all servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// Status of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpStatus {
    /// The connection is being established.
    Connecting,
    /// The server is ready.
    Connected,
    /// The connection failed; `error` contains the reason. Pinion retries a few times and when the server is needed.
    Failed,
    /// The server needs a login: `pinion mcp login NAME`.
    NeedsLogin,
    /// The server is disabled.
    Disabled,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// Its status.
    pub status: McpStatus,
    /// The error message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// Where it is configured: `user`, `project`, `cli`, `session` or `extension`.
    pub source: &'static str,
    /// Name and version that it reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Names of its tools, as the model calls them.
    pub tools: Vec<String>,
    /// Slash commands made of its prompts, without the slash.
    pub prompts: Vec<String>,
    /// Whether it offers resources.
    pub resources: bool,
    /// Notes about parts that were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Response to `get_mcp_servers` and `set_mcp_servers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServers {
    /// The servers of the session.
    pub servers: Vec<McpServer>,
}
