//! The TypeScript file without definitions that went. It knows how `xtask gen` lays the file out: definitions stand apart by
//! an empty line, unions have one member per line or all on one.

use std::collections::BTreeSet;

use wire::Dialect;

/// The file with the definitions named in `kept`, and the answers of the commands among them.
pub(super) fn only(types: &str, kept: &BTreeSet<&str>, dialect: Dialect) -> String {
    let mut blocks = types.trim_end().split("\n\n");
    let head = blocks.next().unwrap_or_default();
    let mut out = vec![format!(
        "{head}\n// Dialect {}: {}.",
        dialect.as_str(),
        dialect.doc()
    )];
    for block in blocks {
        match defined(block) {
            Some("ResponseOf") if kept.contains("Response") => out.push(answers(block, kept)),
            Some(name) if kept.contains(name) => out.push(union(block, kept)),
            _ => {}
        }
    }
    out.join("\n\n") + "\n"
}

/// What a block defines.
fn defined(block: &str) -> Option<&str> {
    let line = block.lines().find_map(|line| line.strip_prefix("export "))?;
    line.split(' ').nth(1)
}

/// Returns true if the type is a line that the filter removed. Types of other kinds stay if a kept line needs them.
fn is_gone(name: &str, kept: &BTreeSet<&str>) -> bool {
    let is_line = ["Command", "Response", "Event", "Frame", "Line"]
        .iter()
        .any(|end| name.ends_with(end));
    is_line && name.chars().all(char::is_alphanumeric) && !kept.contains(name)
}

fn union(block: &str, kept: &BTreeSet<&str>) -> String {
    let Some(at) = block.find("export type ") else {
        return block.to_owned();
    };
    let (before, text) = block.split_at_checked(at).unwrap_or(("", block));
    let Some((head, body)) = text.split_once('=') else {
        return block.to_owned();
    };
    let is_long = body.starts_with('\n');
    let body = body.trim().trim_start_matches("| ").trim_end_matches(';');
    let separator = if is_long { "\n  | " } else { " | " };
    let members: Vec<&str> = body
        .split(separator)
        .filter(|member| !is_gone(member, kept))
        .collect();
    let first = if is_long { "\n  | " } else { " " };
    format!("{before}{head}={first}{};", members.join(separator))
}

fn answers(block: &str, kept: &BTreeSet<&str>) -> String {
    let lines = block.lines().filter(|line| {
        let answer = line
            .trim()
            .split(": ")
            .nth(1)
            .and_then(|kind| kind.split(' ').next());
        answer.is_none_or(|answer| !is_gone(answer, kept))
    });
    lines.collect::<Vec<_>>().join("\n")
}
