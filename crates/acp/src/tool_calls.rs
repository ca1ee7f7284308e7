//! Tool calls as clients see them: kind, title, locations, diffs.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use wire::{Event, ToolResult};

use crate::content;

/// A tool call without its status: the members that `tool_call` and a permission request share. `old_text` is the text of
/// the file that the call replaces.
pub(crate) fn describe(
    id: &str,
    tool: &str,
    args: &Map<String, Value>,
    cwd: &Path,
    old_text: Option<&str>,
) -> Map<String, Value> {
    let path = args.get("path").and_then(Value::as_str);
    let subject = path.or_else(|| {
        ["command", "pattern", "url", "query"]
            .iter()
            .find_map(|name| args.get(*name)?.as_str())
    });
    let title = subject.map_or_else(|| tool.to_owned(), |subject| format!("{tool} {subject}"));
    let mut call = Map::new();
    call.insert("toolCallId".to_owned(), id.into());
    call.insert("title".to_owned(), title.into());
    call.insert("name".to_owned(), tool.into());
    call.insert("kind".to_owned(), kind(tool).into());
    call.insert("locations".to_owned(), locations(args, cwd).into());
    call.insert("rawInput".to_owned(), args.clone().into());
    let diffs = diffs(tool, args, cwd, old_text);
    if !diffs.is_empty() {
        call.insert("content".to_owned(), diffs.into());
    }
    call
}

fn kind(tool: &str) -> &'static str {
    match tool {
        "read" | "ls" => "read",
        "write" | "edit" => "edit",
        "grep" | "find" => "search",
        "bash" | "process" => "execute",
        "fetch" => "fetch",
        "task" => "think",
        _ => "other",
    }
}

/// The file of a call. Clients open it, so its path must be absolute.
fn location(args: &Map<String, Value>, cwd: &Path) -> Option<String> {
    let path = args.get("path").and_then(Value::as_str)?;
    // Tools expand a tilde to a home directory that is not known here, and decode `file:` URLs.
    let is_known = !path.is_empty() && !path.starts_with('~') && !path.starts_with("file://");
    is_known.then(|| cwd.join(path).to_string_lossy().into_owned())
}

fn locations(args: &Map<String, Value>, cwd: &Path) -> Vec<Value> {
    let Some(path) = location(args, cwd) else {
        return Vec::new();
    };
    match args.get("offset").and_then(Value::as_u64) {
        Some(line) => vec![json!({"path": path, "line": line})],
        None => vec![json!({"path": path})],
    }
}

/// Returns the file that a call replaces as a whole.
pub(crate) fn replaced_file(event: &Event, cwd: &Path) -> Option<PathBuf> {
    match event {
        Event::ToolExecutionStart { tool_name, args, .. } if tool_name == "write" => {
            location(args, cwd).map(PathBuf::from)
        }
        _ => None,
    }
}

/// The changes that a call of `edit` or `write` proposes.
fn diffs(tool: &str, args: &Map<String, Value>, cwd: &Path, old_text: Option<&str>) -> Vec<Value> {
    let Some(path) = location(args, cwd) else {
        return Vec::new();
    };
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let diff = |old: Option<String>, new: String| json!({"type": "diff", "path": path, "oldText": old, "newText": new});
    match tool {
        "write" => (args.get("content").and_then(Value::as_str).into_iter())
            .map(|content| {
                // Equal texts: the file may have been read after the change, so its old text is unknown.
                let old = old_text.filter(|old| *old != content);
                diff(old.map(str::to_owned), content.to_owned())
            })
            .collect(),
        "edit" => {
            let edits = args.get("edits").and_then(Value::as_array);
            let edits = edits.into_iter().flatten();
            let changes =
                edits.filter_map(|edit| Some(diff(Some(text(edit, "oldText")?), text(edit, "newText")?)));
            changes.collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true for content that is a terminal of the client.
pub(crate) fn is_terminal(content: &Value) -> bool {
    content.get("type").and_then(Value::as_str) == Some("terminal")
}

/// The content of a call that has ended or reports progress. An update replaces the content, so diffs and terminals are sent
/// again. A terminal shows the output, so the text is left out.
pub(crate) fn content(result: &ToolResult, shown: Vec<Value>) -> Vec<Value> {
    if shown.iter().any(is_terminal) {
        return shown;
    }
    let blocks = result.content.iter().map(content::block);
    let blocks = blocks.map(|block| json!({"type": "content", "content": block}));
    shown.into_iter().chain(blocks).collect()
}
