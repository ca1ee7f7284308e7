//! Lists of a server: tools, prompts, and whether it has resources. They are read page by page and leniently. Entries
//! beyond the limits are left out, and a note says so.

use std::collections::HashSet;

use rmcp::model::{ClientRequest, ListPromptsRequest, ListToolsRequest, PaginatedRequestParams};
use serde_json::{Map, Value, json};

use crate::ask::Asker;
use crate::config::Offered;
use crate::error::McpError;
use crate::text::{line, plain};
use crate::{limits, names};

/// A tool that the model is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// What models and clients call it.
    pub name: String,
    /// What the server calls it.
    pub raw: String,
    /// What it does.
    pub description: String,
    /// What arguments it takes; always an object's schema.
    pub schema: Value,
}

/// A prompt that the user can call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The name after the slash.
    pub name: String,
    /// What the server calls it.
    pub raw: String,
    /// What it is for.
    pub description: Option<String>,
    /// Its arguments, in order.
    pub arguments: Vec<Argument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// True if the argument is required.
    pub required: bool,
}

/// What a server offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lists {
    /// Tools.
    pub tools: Vec<Tool>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
    /// True if the server has resources.
    pub resources: bool,
    /// Notes about entries that were left out, as sentences.
    pub notes: Vec<String>,
}

/// Which lists a server says it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Has {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

/// Reads all lists. Prompts that cannot be read are left out; without tools there is no use for the server.
pub(crate) async fn read(asker: &Asker, has: Has, offered: &Offered) -> Result<Lists, McpError> {
    let mut lists = Lists {
        resources: has.resources,
        ..Lists::default()
    };
    if has.tools {
        let items = pages(asker, "tools", |params| {
            ClientRequest::ListToolsRequest(ListToolsRequest {
                method: Default::default(),
                params,
                extensions: Default::default(),
            })
        });
        let (items, complete) = items.await?;
        tools(&asker.server, items, complete, offered, &mut lists);
    }
    if has.prompts {
        let items = pages(asker, "prompts", |params| {
            ClientRequest::ListPromptsRequest(ListPromptsRequest {
                method: Default::default(),
                params,
                extensions: Default::default(),
            })
        });
        match items.await {
            Ok((items, _)) => lists.prompts = prompts(&asker.server, &items),
            Err(error) => lists.notes.push(format!("its prompts cannot be listed: {error}")),
        }
    }
    Ok(lists)
}

/// The items of all pages; false when there were more than are read.
async fn pages(
    asker: &Asker,
    key: &str,
    request: impl Fn(Option<PaginatedRequestParams>) -> ClientRequest,
) -> Result<(Vec<Value>, bool), McpError> {
    let mut items = Vec::new();
    let mut cursors = HashSet::new();
    let mut params = None;
    let mut bytes = 0;
    for _ in 0..limits::PAGES {
        let mut page = asker.ask(request(params)).await?;
        bytes += page.to_string().len();
        match page.get_mut(key).map(Value::take) {
            Some(Value::Array(more)) => items.extend(more),
            _ => return Err(McpError::Connect(format!("its list of {key} cannot be read"))),
        }
        let next = page
            .get("nextCursor")
            .and_then(Value::as_str)
            .filter(|next| !next.is_empty());
        let Some(next) = next.map(str::to_owned) else {
            return Ok((items, true));
        };
        // A page that was there already would come for ever.
        if items.len() > limits::ITEMS || bytes > limits::LIST_BYTES || !cursors.insert(next.clone()) {
            break;
        }
        params = Some(PaginatedRequestParams::default().with_cursor(Some(next)));
    }
    Ok((items, false))
}

fn tools(server: &str, items: Vec<Value>, complete: bool, offered: &Offered, lists: &mut Lists) {
    let raw = |item: &Value| {
        let name = item.get("name").and_then(Value::as_str)?;
        (!name.is_empty() && name.len() <= limits::RAW_NAME).then(|| name.to_owned())
    };
    let total = items.len();
    let mut items: Vec<(String, Value)> = items
        .into_iter()
        .filter_map(|item| Some((raw(&item)?, item)))
        .collect();
    if items.len() < total {
        lists.notes.push(format!(
            "{} tools without a usable name are left out",
            total - items.len()
        ));
    }
    items.retain(|(name, _)| offered.has(name));
    if items.len() > limits::ITEMS || !complete {
        items.truncate(limits::ITEMS);
        lists
            .notes
            .push(format!("only {} tools are taken, there are more", items.len()));
    }
    let raws: Vec<&str> = items.iter().map(|(name, _)| name.as_str()).collect();
    let names = names::assign(server, &raws);
    let mut bytes = 0;
    for ((raw, item), name) in items.iter().zip(names) {
        let Some(name) = name else {
            lists
                .notes
                .push(format!("a second tool {} is left out", line(raw, limits::NAME)));
            continue;
        };
        let tool = tool(name, raw, item);
        bytes += tool.description.len() + tool.schema.to_string().len();
        if bytes > limits::TOOLS_BYTES {
            lists.notes.push(format!(
                "only {} tools are taken: their descriptions are too long",
                lists.tools.len()
            ));
            break;
        }
        lists.tools.push(tool);
    }
    lists.notes.truncate(limits::TAIL_LINES);
}

fn tool(name: String, raw: &str, item: &Value) -> Tool {
    let text = |key: &str| {
        item.get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    };
    let title = || text("title").or_else(|| item.get("annotations")?.get("title")?.as_str());
    let description = text("description").or_else(title).unwrap_or(raw);
    Tool {
        name,
        raw: raw.to_owned(),
        description: plain(description, limits::DESCRIPTION),
        schema: schema(item.get("inputSchema")),
    }
}

/// Returns a schema that every provider accepts: that of an object, for any schema of the server.
fn schema(given: Option<&Value>) -> Value {
    let anything = || json!({"type": "object", "properties": {}});
    let Some(Value::Object(given)) = given else {
        return anything();
    };
    let mut schema: Map<String, Value> = given.clone();
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        // A list of types, or none, may include an object.
        None | Some(Value::Array(_) | Value::Null) => {
            schema.insert("type".to_owned(), json!("object"));
        }
        Some(_) => return anything(),
    }
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    if let Some(required) = schema.get("required")
        && !required
            .as_array()
            .is_some_and(|names| names.iter().all(Value::is_string))
    {
        schema.shift_remove("required");
    }
    let schema = Value::Object(schema);
    if schema.to_string().len() > limits::SCHEMA_BYTES {
        return anything();
    }
    schema
}

fn prompts(server: &str, items: &[Value]) -> Vec<Prompt> {
    let mut seen = HashSet::new();
    let read = |item: &Value| {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        let raw = text("name").filter(|name| !name.is_empty() && name.len() <= limits::RAW_NAME)?;
        let arguments = item.get("arguments").and_then(Value::as_array);
        let argument = |argument: &Value| {
            let name = argument.get("name")?.as_str()?;
            // Clients show the name, and the user types it.
            let is_plain = !name.is_empty() && line(name, limits::NAME) == name;
            is_plain.then(|| Argument {
                name: name.to_owned(),
                required: argument.get("required") == Some(&Value::Bool(true)),
            })
        };
        // It is typed as one word.
        let word: String = raw
            .chars()
            .map(|c| {
                if c.is_whitespace() || c.is_control() {
                    '_'
                } else {
                    c
                }
            })
            .collect();
        Some(Prompt {
            name: format!("mcp:{server}:{}", line(&word, limits::NAME)),
            raw: raw.to_owned(),
            description: text("description")
                .or_else(|| text("title"))
                .map(|text| line(text, limits::ERROR)),
            arguments: arguments
                .map(|arguments| {
                    arguments
                        .iter()
                        .filter_map(argument)
                        .take(limits::FIELDS)
                        .collect()
                })
                .unwrap_or_default(),
        })
    };
    items
        .iter()
        .filter_map(read)
        .filter(|prompt| seen.insert(prompt.name.clone()))
        .take(limits::ITEMS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_tool_schemas_become_object_schemas() {
        let anything = json!({"type": "object", "properties": {}});
        for odd in [
            json!(null),
            json!([1]),
            json!("x"),
            json!({}),
            json!({"type": "string"}),
        ] {
            assert_eq!(schema(Some(&odd))["type"], "object", "{odd}");
            assert!(schema(Some(&odd))["properties"].is_object(), "{odd}");
        }
        assert_eq!(schema(None), anything);
        let odd = json!({"properties": [], "required": "a", "type": ["object", "null"]});
        assert_eq!(schema(Some(&odd)), json!({"properties": {}, "type": "object"}));
        let good = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert_eq!(schema(Some(&good)), good);
        let huge =
            json!({"type": "object", "properties": {"a": {"description": "x".repeat(limits::SCHEMA_BYTES)}}});
        assert_eq!(schema(Some(&huge)), anything);
    }

    #[test]
    fn mcp_lists_are_bounded_and_unusable_tools_reported() {
        let items: Vec<Value> = (0..10_000)
            .map(|n| json!({"name": format!("t{n}"), "inputSchema": null}))
            .collect();
        let mut lists = Lists::default();
        tools("s", items, true, &Offered::default(), &mut lists);
        assert_eq!(lists.tools.len(), limits::ITEMS);
        assert_eq!(lists.notes, ["only 500 tools are taken, there are more"]);
        let mut lists = Lists::default();
        let odd = json!({"name": "a\u{1b}[31m", "description": "\u{1b}[2Jhi\u{202e}"});
        tools(
            "s",
            vec![odd, json!({"name": "x".repeat(5_000)}), json!(7)],
            true,
            &Offered::default(),
            &mut lists,
        );
        assert_eq!(lists.tools.len(), 1);
        assert_eq!(lists.tools[0].name, "mcp__s__a__31m");
        assert_eq!(lists.tools[0].description, "hi");
        assert_eq!(lists.notes, ["2 tools without a usable name are left out"]);
    }

    #[test]
    fn mcp_prompt_arguments_have_plain_names() {
        let long = "x".repeat(limits::NAME + 1);
        let names = ["who", "a\u{1b}[2Jb", "two words", "", "\u{202e}x", long.as_str()];
        let arguments: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
        let read = prompts("s", &[json!({"name": "p", "arguments": arguments})]);
        let names: Vec<&str> = read[0]
            .arguments
            .iter()
            .map(|argument| argument.name.as_str())
            .collect();
        assert_eq!(names, ["who", "two words"]);
    }

    #[test]
    fn mcp_tools_are_filtered_by_patterns() {
        let offered = Offered {
            deny: vec!["delete_*".to_owned()],
            exposure: vec![("*".to_owned(), false), ("get_a".to_owned(), true)],
            ..Offered::default()
        };
        assert!(offered.has("get_a") && !offered.has("get_b") && !offered.has("delete_x"));
        let only = Offered {
            allow: vec!["get_*".to_owned()],
            ..Offered::default()
        };
        assert!(only.has("get_b") && !only.has("put_b"));
    }
}
