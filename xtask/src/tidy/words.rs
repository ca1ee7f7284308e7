//! Words in comments and pages: pictures instead of terms, and references that a reader cannot follow.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use regex::Regex;

use super::{Finding, finding};

/// Words that hide who does what, or that stand for the field's own term.
const AVOIDED: &str = r"(?i)\b(nobody|somebody|whoever|whatever|nowhere|is told|are told|besides?|unasked|put away|what is|what was|those that|one that|doors?)\b";
/// Where words that have other uses (quoted wire texts, English that means what it says) may stand, and how many there are.
/// The figures may only fall: lower them here with the change that does it.
const KNOWN: [(&str, usize); 2] = [("crates/agent", 62), ("crates/session", 72)];
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
    let mut counts: BTreeMap<&str, Vec<Finding>> = BTreeMap::new();
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
                counts
                    .entry(folder(path))
                    .or_default()
                    .push(finding(path, line, &message));
            }
        }
    }
    for (folder, findings) in counts {
        let known = KNOWN.iter().find(|(name, _)| *name == folder);
        let known = known.map_or(0, |(_, count)| *count);
        match findings.len() {
            count if count > known => {
                let message = format!("{count} words to avoid, {known} are known");
                found.push(finding(folder, 1, &message));
                found.extend(findings);
            }
            count if count < known => {
                let message = format!("{count} words to avoid in {folder}: lower the figure {known} here");
                found.push(finding("xtask/src/tidy/words.rs", 1, &message));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The crate or the top folder of a path; the file itself at the root.
fn folder(path: &str) -> &str {
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    let end = path.match_indices('/').nth(depth - 1).map(|(at, _)| at);
    end.and_then(|end| path.get(..end)).unwrap_or(path)
}

/// The line without what stands between backticks: values and names there are quoted as they are.
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
