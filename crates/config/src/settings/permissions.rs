//! `permissions`: modes and rules, of the user and of the project. They are kept apart: only the user's own file can loosen
//! anything. What they mean is in the crate `permissions`.
//!
//! Permissions fail closed: an unknown mode becomes `ask`.

use permissions::{PermissionLayer, PermissionSettings, tool_of};
use serde_json::Value;
use wire::state::PermissionMode;

use crate::diagnostic::Diagnostic;
use crate::settings::keys::distance;
use crate::settings::layers::Layer;
use crate::settings::reader::Reader;
use crate::source::Scope;

pub(super) fn permissions(reader: &mut Reader<'_>, tools: &[&str]) -> PermissionSettings {
    let mut found = PermissionSettings::default();
    for layer in reader.layers {
        let read = one(layer, tools, &mut reader.notes);
        match layer.scope {
            Scope::Project => found.project = read,
            _ => found.user = read,
        }
    }
    found
}

fn one(layer: &Layer, tools: &[&str], notes: &mut Vec<Diagnostic>) -> PermissionLayer {
    let mut fault = |key: &str, message: String| notes.push(Diagnostic::fault(&layer.path, key, message));
    if layer.get("permissions").is_some_and(|value| !value.is_object()) {
        fault(
            "permissions",
            "\"permissions\" should be an object; taken as the mode ask".to_owned(),
        );
        return PermissionLayer {
            mode: Some(PermissionMode::Ask),
            ..PermissionLayer::default()
        };
    }
    let mode = layer.get("permissions.mode").map(|value| {
        value.as_str().and_then(PermissionMode::parse).unwrap_or_else(|| {
            let message = "\"permissions.mode\" should be off, auto, ask or read-only; taken as ask";
            fault("permissions.mode", message.to_owned());
            PermissionMode::Ask
        })
    });
    let mut rules = |name: &str| {
        // A misspelled name in `allow` allows nothing.
        let is_strict = name != "allow";
        let key = format!("permissions.{name}");
        let texts: Option<Vec<String>> = match layer.get(&key) {
            None => return Vec::new(),
            Some(Value::String(text)) => Some(vec![text.clone()]),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect(),
            Some(_) => None,
        };
        for rule in texts.iter().flatten().filter(|_| is_strict) {
            if let Some(meant) = misspelled_tool(rule, tools) {
                fault(&key, misspelled(&key, rule, meant));
            }
        }
        texts.unwrap_or_else(|| {
            // The intended rules are unknown: nothing is allowed, and everything forbidden or asked about.
            let (meaning, texts) = match is_strict {
                false => ("ignored", Vec::new()),
                true => ("taken as a rule for all tools", vec!["*".to_owned()]),
            };
            fault(&key, format!("\"{key}\" should be a list of rules; {meaning}"));
            texts
        })
    };
    let (mut allow, ask, deny) = (rules("allow"), rules("ask"), rules("deny"));
    if layer.scope == Scope::Project && !allow.is_empty() {
        let message = "\"permissions.allow\" is left out: a project allows nothing by itself";
        notes.push(Diagnostic::new(&layer.path, message));
        allow.clear();
    }
    PermissionLayer {
        mode,
        allow,
        ask,
        deny,
    }
}

/// Returns the built-in tool that a rule almost names. A rule that misses its tool seems to hold. Names that tools of
/// extensions, clients and MCP servers may have are not known here, so only the nearest ones count.
pub(super) fn misspelled_tool<'a>(rule: &str, tools: &[&'a str]) -> Option<&'a str> {
    let name = tool_of(rule);
    // A pattern is the way to name a tool of an extension that is spelled like a built-in one.
    if name.contains('*') || tools.contains(&name.as_str()) {
        return None;
    }
    let near = tools.iter().map(|tool| (distance(&name, tool), *tool));
    near.filter(|(distance, tool)| *distance <= (tool.chars().count() / 4).min(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, tool)| tool)
}

fn misspelled(key: &str, rule: &str, meant: &str) -> String {
    let name = tool_of(rule);
    format!(
        "\"{key}\" has the rule \"{rule}\", but no built-in tool is named {name} (did you mean \"{meant}\"? For a tool of an extension \
         or client, write \"{name}*\")"
    )
}

#[cfg(test)]
mod tests {
    use super::misspelled_tool;

    #[test]
    fn misspelled_tool_of_rule_is_found() {
        let tools = ["bash", "edit", "ls", "process", "read", "todo_write", "write"];
        for (rule, meant) in [
            ("bsh", "bash"),
            ("Bahs(rm *)", "bash"),
            (" wirte (src/**)", "write"),
            ("todowrite", "todo_write"),
            ("proces", "process"),
        ] {
            assert_eq!(misspelled_tool(rule, &tools), Some(meant), "{rule}");
        }
        for rule in [
            "bash",
            "BASH(curl *)",
            "*",
            "bas*",
            "*(.env)",
            "lsp",
            "mcp__docs__read",
            "web_search",
            "deploy(x)",
            "",
        ] {
            assert_eq!(misspelled_tool(rule, &tools), None, "{rule}");
        }
    }
}
