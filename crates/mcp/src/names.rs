//! What tools of servers are called towards models and clients: `mcp__SERVER__TOOL`, as pi 1.x does it.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest as _, Sha256};

use crate::limits;

/// Begins every name of such a tool.
pub const PREFIX: &str = "mcp__";

/// Bytes of a name's hash that tell it from others.
const MARK: usize = 8;

/// Assigns names to a server's tools, in their order; none for a repeated name or an empty one.
pub(crate) fn assign(server: &str, tools: &[&str]) -> Vec<Option<String>> {
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = HashSet::new();
    let kept: Vec<Option<&str>> = tools
        .iter()
        .map(|tool| (!tool.is_empty() && seen.insert(*tool)).then_some(*tool))
        .collect();
    for tool in kept.iter().flatten() {
        *wanted.entry(plain_name(server, tool)).or_default() += 1;
    }
    kept.into_iter()
        .map(|tool| {
            let tool = tool?;
            let name = plain_name(server, tool);
            let is_shared = wanted.get(&name).is_some_and(|count| *count > 1);
            Some(if is_shared || name.len() > limits::TOOL_NAME {
                marked(&name, server, tool)
            } else {
                name
            })
        })
        .collect()
}

/// The part of a tool's name that says which server has it: `-` and `_` are the same there.
#[must_use]
pub fn namespace(server: &str) -> String {
    server.chars().map(letter).collect()
}

fn plain_name(server: &str, tool: &str) -> String {
    let tool: String = tool.chars().map(letter).collect();
    format!("{PREFIX}{}__{tool}", namespace(server))
}

fn letter(c: char) -> char {
    if c.is_ascii_alphanumeric() { c } else { '_' }
}

/// The name with a hash of what it stands for.
fn marked(name: &str, server: &str, tool: &str) -> String {
    let hash = Sha256::digest(format!("{server}\n{tool}"));
    let mark: String = hash
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .take(MARK / 2)
        .collect();
    // Only ASCII is left by now.
    let end = name.len().min(limits::TOOL_NAME - MARK - 1);
    format!("{}_{mark}", name.get(..end).unwrap_or(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_tool_names_are_valid_and_unique() {
        let long = "x".repeat(100);
        let longer = "x".repeat(101);
        let tools = [
            "read-file",
            "read.file",
            "list",
            "list",
            "",
            "größe",
            &long,
            &longer,
        ];
        let names = assign("dev-box", &tools);
        assert_eq!(names[2].as_deref(), Some("mcp__dev_box__list"));
        assert_eq!(names[3], None, "a second one of the same name");
        assert_eq!(names[4], None);
        assert_eq!(names[5].as_deref(), Some("mcp__dev_box__gr__e"));
        assert!(names[0].as_ref().unwrap().starts_with("mcp__dev_box__read_file_"));
        let all: Vec<&String> = names.iter().flatten().collect();
        let unique: HashSet<&&String> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        assert!(all.iter().all(|name| name.len() <= limits::TOOL_NAME
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')));
        assert_eq!(names, assign("dev-box", &tools), "they stay the same");
    }
}
