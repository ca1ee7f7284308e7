//! The two tools that look at resources of servers; there only while a server has some. Their names are those of pi 1.x.

use ::mcp::{Block, McpError, Outcome, Server};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// Lists resources.
pub(super) const LIST: &str = "list_mcp_resources";
const READ: &str = "read_mcp_resource";

/// Name, description and schema of each.
pub(super) fn tools() -> [(&'static str, &'static str, Value); 2] {
    let text = |what: &str| json!({"type": "string", "description": what});
    let list = json!({
        "type": "object",
        "properties": {
            "server": text("Only the resources of this MCP server"),
            "cursor": text("Where to go on, from an earlier answer for the same server"),
        },
    });
    let read = json!({
        "type": "object",
        "properties": {"server": text("The MCP server"), "uri": text("The address of the resource")},
        "required": ["server", "uri"],
    });
    [
        (LIST, "List the resources that MCP servers offer, as JSON", list),
        (READ, "Read a resource of an MCP server", read),
    ]
}

/// Lists resources of one server or of all.
pub(super) async fn list(
    servers: &[Server],
    args: &Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<Outcome, McpError> {
    let text = |key: &str| {
        args.get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let servers = match text("server") {
        Some(name) => vec![named(servers, name)?],
        None => servers.iter().collect(),
    };
    let is_one = servers.len() == 1;
    let (mut resources, mut errors, mut next) = (Vec::new(), Vec::new(), None);
    for server in servers {
        let name = &server.config().name;
        // A cursor is a place in the list of one server.
        let cursor = text("cursor").filter(|_| is_one).map(str::to_owned);
        match server.resources(cursor, cancel).await {
            Ok(mut page) => {
                let items = page.get_mut("resources").map(Value::take);
                let Some(Value::Array(items)) = items else {
                    continue;
                };
                next = page.get("nextCursor").filter(|next| next.is_string()).cloned();
                // The server decides how long a page is, and the model reads all of it.
                let items = items.into_iter().take(::mcp::limits::ITEMS);
                resources.extend(items.filter_map(|item| entry(name, item)));
            }
            // An abort ends the call, and not only the request to this server.
            Err(McpError::Cancelled) => return Err(McpError::Cancelled),
            Err(error) if is_one => return Err(error),
            // A server that fails must not hide the resources of the others.
            Err(error) => errors.push(json!({"server": name, "error": error.to_string()})),
        }
    }
    let mut answer = json!({"resources": resources});
    if let Some(next) = next.filter(|_| is_one)
        && let Some(members) = answer.as_object_mut()
    {
        members.insert("nextCursor".to_owned(), next);
    }
    if !errors.is_empty()
        && let Some(members) = answer.as_object_mut()
    {
        members.insert("errors".to_owned(), Value::Array(errors));
    }
    let text = serde_json::to_string_pretty(&answer).unwrap_or_default();
    Ok(Outcome {
        blocks: vec![Block::Text(text)],
        ..Outcome::default()
    })
}

/// What the model needs to choose a resource.
fn entry(server: &str, item: Value) -> Option<Value> {
    let Value::Object(item) = item else { return None };
    let mut entry = Map::new();
    entry.insert("server".to_owned(), server.into());
    for key in ["uri", "name", "title", "description", "mimeType", "size"] {
        if let Some(value) = item.get(key).filter(|value| !value.is_null()) {
            entry.insert(key.to_owned(), value.clone());
        }
    }
    Some(Value::Object(entry))
}

/// Reads one.
pub(super) async fn read(
    servers: &[Server],
    args: &Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<Outcome, McpError> {
    let text = |key: &str| args.get(key).and_then(Value::as_str).unwrap_or_default();
    named(servers, text("server"))?.read(text("uri"), cancel).await
}

fn named<'a>(servers: &'a [Server], name: &str) -> Result<&'a Server, McpError> {
    let found = servers.iter().find(|server| server.config().is_called(name));
    found.ok_or_else(|| {
        let names: Vec<&str> = servers
            .iter()
            .map(|server| server.config().name.as_str())
            .collect();
        McpError::Refused(format!(
            "No MCP server with resources is called \"{name}\". There are: {}",
            names.join(", ")
        ))
    })
}
