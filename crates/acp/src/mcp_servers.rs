//! The member `mcpServers` of a request as the parameters of `set_mcp_servers`.

use serde_json::{Map, Value, json};
use wire::mcp::McpServersParams;

use crate::rpc::{Failure, INVALID_PARAMS};

/// Converts the servers of a client, stdio and HTTP.
///
/// # Errors
/// When a server has another transport, lacks a member or has the name of another one. No session is opened then.
pub(crate) fn read(params: &Map<String, Value>) -> Result<McpServersParams, Failure> {
    let servers = params.get("mcpServers").and_then(Value::as_array);
    let servers =
        servers.ok_or_else(|| Failure::new(INVALID_PARAMS, "The member mcpServers must be an array"))?;
    let mut mcp_servers = Map::new();
    for server in servers {
        let (name, entry) = entry(server).map_err(|error| {
            let message = format!("An MCP server of the client is not valid: {error}");
            Failure::new(INVALID_PARAMS, message)
        })?;
        if mcp_servers.contains_key(&name) {
            let message = format!("Two MCP servers of the client have the name {name:?}");
            return Err(Failure::new(INVALID_PARAMS, message));
        }
        mcp_servers.insert(name, entry);
    }
    Ok(McpServersParams { mcp_servers })
}

fn entry(server: &Value) -> Result<(String, Value), String> {
    let name: String = text(server, "name")?.chars().map(name_letter).collect();
    let entry = match server.get("type").map(Value::as_str) {
        None | Some(Some("stdio")) => json!({
            "command": text(server, "command")?,
            "args": server.get("args").unwrap_or(&json!([])),
            "env": pairs(server, "env")?,
        }),
        Some(Some("http")) => json!({
            "type": "http",
            "url": text(server, "url")?,
            "headers": pairs(server, "headers")?,
        }),
        Some(_) => return Err("the transport must be stdio or http".to_owned()),
    };
    Ok((name, entry))
}

/// Names become part of tool names, which models accept only with these letters.
fn name_letter(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || letter == '-' {
        letter
    } else {
        '_'
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    let found = value.get(name).and_then(Value::as_str);
    found.ok_or_else(|| format!("the member {name} must be a string"))
}

/// Converts a list of objects with `name` and `value` to an object.
fn pairs(server: &Value, name: &str) -> Result<Map<String, Value>, String> {
    let pairs = match server.get(name) {
        None => return Ok(Map::new()),
        Some(pairs) => pairs.as_array(),
    };
    let pairs = pairs.ok_or_else(|| format!("the member {name} must be an array"))?;
    let pairs = pairs
        .iter()
        .map(|pair| Ok((text(pair, "name")?.to_owned(), text(pair, "value")?.into())));
    pairs.collect()
}
