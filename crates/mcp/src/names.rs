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
        *wanted.entry(full_name(server, tool)).or_default() += 1;
    }
    kept.into_iter()
        .map(|tool| {
            let tool = tool?;
            let name = full_name(server, tool);
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

/// The name of a tool before it is shortened. Several tools of a server can have it, since a character that no name of a tool can
/// have becomes `_`.
#[must_use]
pub fn full_name(server: &str, tool: &str) -> String {
    let tool: String = tool.chars().map(letter).collect();
    format!("{PREFIX}{}__{tool}", namespace(server))
}

/// Returns true if `name` is that of a tool and may have been cut, and the name before can fit the pattern, in which `*` stands for any
/// letters. For restrictions: a pattern for all tools of a server must not miss those whose names are cut within that of the server.
#[must_use]
pub fn may_have_been(pattern: &str, name: &str) -> bool {
    let kept = name.get(..limits::TOOL_NAME - MARK - 1).unwrap_or_default();
    if name.len() != limits::TOOL_NAME || !kept.starts_with(PREFIX) {
        return false;
    }
    let (begin, is_whole) = pattern
        .split_once('*')
        .map_or((pattern, true), |(begin, _)| (begin, false));
    begin.starts_with(kept) || !is_whole && kept.starts_with(begin)
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

    #[test]
    fn cut_name_fits_patterns_for_its_server() {
        let server = "s".repeat(60);
        let names = assign(&server, &["read"]);
        let name = names[0].as_deref().unwrap();
        let patterns = [
            format!("mcp__{server}__*"),
            full_name(&server, "read"),
            "mcp__s*".to_owned(),
        ];
        assert!(patterns.iter().all(|pattern| may_have_been(pattern, name)));
        let other = format!("mcp__{}t*", "s".repeat(20));
        for pattern in ["mcp__t*", "mcp__s", other.as_str()] {
            assert!(!may_have_been(pattern, name), "{pattern}");
        }
        assert!(!may_have_been("mcp__docs__*", "mcp__docs__search"), "not cut");
    }
}
