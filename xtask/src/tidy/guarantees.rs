//! A column of GUARANTEES.md, and of the page about clients, page and tools, names what checks a row: tests, files and commands must
//! exist.

use std::collections::BTreeSet;

use anyhow::Result;
use regex::Regex;

use super::{Finding, finding};

/// The pages, and the column that names the checks, from 0. Rows begin with a number.
const PAGES: [(&str, usize); 2] = [("GUARANTEES.md", 2), ("docs/project/clients-page-tools.md", 2)];

/// Checks the pages. `texts` are all files with their paths from the root.
///
/// # Errors
/// Never: the patterns are constant.
pub(super) fn check(texts: &[(String, String)]) -> Result<Vec<Finding>> {
    let code = Regex::new("`([^`]+)`")?;
    let names = names(texts)?;
    let mut found = Vec::new();
    for (page, column) in PAGES {
        let Some((_, text)) = texts.iter().find(|(path, _)| path == page) else {
            found.push(finding(page, 1, "the page is missing"));
            continue;
        };
        for (line, row) in (1..).zip(text.lines()) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
            let is_numbered = cells
                .first()
                .is_some_and(|cell| cell.trim().parse::<u32>().is_ok());
            let Some(checks) = cells.get(column).filter(|_| is_numbered) else {
                continue;
            };
            for capture in code.captures_iter(checks) {
                let text = capture.get(1).map_or("", |text| text.as_str());
                if !exists(text, texts, &names) {
                    let message = format!("`{text}` names no test, file or command");
                    found.push(finding(page, line, &message));
                }
            }
        }
    }
    Ok(found)
}

/// Names of functions, modules and test files.
fn names(texts: &[(String, String)]) -> Result<BTreeSet<String>> {
    let declared = Regex::new(r"\b(?:fn|mod|function|def) (\w+)")?;
    let is_code = |path: &str| [".rs", ".mjs", ".py"].iter().any(|end| path.ends_with(end));
    let mut names = BTreeSet::new();
    for (path, text) in texts.iter().filter(|(path, _)| is_code(path)) {
        let found = declared.captures_iter(text);
        names.extend(found.filter_map(|name| Some(name.get(1)?.as_str().to_owned())));
        let stem = path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
        names.extend(stem.map(str::to_owned));
    }
    Ok(names)
}

fn exists(text: &str, texts: &[(String, String)], names: &BTreeSet<String>) -> bool {
    let command = text.strip_prefix("cargo ").unwrap_or(text);
    if let Some(chore) = command.strip_prefix("xtask ") {
        let chore = chore.split(' ').next().unwrap_or(chore);
        return texts
            .iter()
            .any(|(path, text)| path.starts_with("xtask/src/") && text.contains(&format!("\"{chore}\"")));
    }
    if command.starts_with("run ") || command.starts_with("test ") {
        return true;
    }
    let path = text.split(' ').next().unwrap_or(text);
    if path.contains('/') {
        // `a/{b,c}.rs` stands for two files.
        let start = path.split('{').next().unwrap_or(path);
        return texts
            .iter()
            .any(|(known, _)| known.starts_with(start) || known.ends_with(&format!("/{path}")));
    }
    let is_file = |(known, _): &(String, String)| known.rsplit('/').next() == Some(text);
    text.contains('.') && texts.iter().any(is_file) || text.split("::").all(|part| names.contains(part))
}
