//! Words in comments and pages: pictures instead of terms, and references that a reader cannot follow.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use regex::Regex;

use super::{Finding, finding};

/// Words that hide who does what, or that stand for the field's own term.
const AVOIDED: &str = r"(?i)\b(nobody|somebody|whoever|whatever|nowhere|is told|are told|besides?|unasked|put away|what is|what was|those that|one that|doors?)\b";
/// The folder of the pages that have numbered sections.
const SPECIFICATIONS: &str = "docs/internals/specifications/";
/// Texts that are not ours, or that no person writes.
const FOREIGN: [&str; 5] = ["vendor/", "fixtures/", "data/", "protocol/", "docs/reference/"];

/// Checks comments of Rust files and pages. `texts` are all files with their paths from the root.
///
/// # Errors
/// Never: the patterns are constant.
pub(super) fn check(texts: &[(String, String)]) -> Result<Vec<Finding>> {
    let avoided = Regex::new(AVOIDED)?;
    let mut found = citations(texts)?;
    for (path, text) in texts {
        let is_foreign = FOREIGN
            .iter()
            .any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")));
        if is_foreign {
            continue;
        }
        for (line, prose) in prose(path, text) {
            for word in avoided.find_iter(&without_code(prose)) {
                let message = format!("\"{}\": name the actor, or use the term", word.as_str());
                found.push(finding(path, line, &message));
            }
        }
    }
    Ok(found)
}

/// The line without the text between backticks, which quotes values and names.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// Comment lines of a Rust file and all lines of a page, numbered from 1.
fn prose<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let is_page = path.ends_with(".md");
    let is_rust = path.ends_with(".rs");
    (1..)
        .zip(text.lines())
        .filter(move |(_, line)| is_page || is_rust && line.trim_start().starts_with("//"))
}

/// Pages that comments name must exist, and so must their numbered sections.
fn citations(texts: &[(String, String)]) -> Result<Vec<Finding>> {
    let cited = Regex::new(r"\b([\w.-]+\.md)(?: (\d+(?:\.\d+)*))?")?;
    let heading = Regex::new(r"(?m)^#+ (\d+(?:\.\d+)*)\b")?;
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let pages: BTreeSet<String> = texts.iter().map(|(path, _)| name(path)).collect();
    let mut sections: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in texts {
        if path.starts_with(SPECIFICATIONS) {
            let numbers = heading
                .captures_iter(text)
                .filter_map(|found| Some(found.get(1)?.as_str()));
            sections.insert(name(path), numbers.collect());
        }
    }
    let mut found = Vec::new();
    for (path, text) in texts.iter().filter(|(path, _)| path.ends_with(".rs")) {
        for (line, prose) in prose(path, text) {
            for capture in cited.captures_iter(prose) {
                let Some(page) = capture.get(1).map(|page| page.as_str()) else {
                    continue;
                };
                if !pages.contains(page) {
                    let message = format!("{page} is not in the repository");
                    found.push(finding(path, line, &message));
                } else if let (Some(known), Some(section)) = (sections.get(page), capture.get(2))
                    && !known.contains(section.as_str())
                {
                    let message = format!("{page} has no section {}", section.as_str());
                    found.push(finding(path, line, &message));
                }
            }
        }
    }
    Ok(found)
}
