//! `xtask tidy`: the house rules that no compiler checks (CONTRIBUTING.md, "House rules").
//!
//! Here: running all rules and printing what they found. The rules are in `source` (one Rust file), `types` (how far a type
//! spreads), `cycles` (modules that import each other), `words` (comments and pages), `guarantees` (what checks a promise) and
//! `manifest` (who may depend on whom); `files` says which files there are.

mod cycles;
mod files;
mod guarantees;
mod manifest;
mod source;
#[cfg(test)]
mod tests;
mod types;
mod words;

use std::path::Path;

use anyhow::Result;

use crate::out::{complain, say};
use files::SourceFile;

/// Longest source file, in lines.
const MAX_FILE: usize = 600;
/// Highest median of all source files, in lines.
const MAX_MEDIAN: usize = 200;
/// Longest function, in lines.
const MAX_FUNCTION: usize = 70;
/// Markdown pages that may lie at the root.
const ROOT_PAGES: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "GUARANTEES.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// Something against the rules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// Path from the root of the repository.
    path: String,
    /// 1-based.
    line: usize,
    /// The error.
    message: String,
}

/// Figures over all source files that are no tests.
#[derive(Debug, Default)]
struct Figures {
    /// Lines of each file, tests inside it not counted.
    lengths: Vec<usize>,
    /// Lines with code.
    code: usize,
    /// Lines of doc comments.
    doc: usize,
}

impl Figures {
    fn median(&self) -> usize {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or(0)
    }
}

/// The chore; false when a rule is broken.
///
/// # Errors
/// When the repository cannot be read.
pub fn run(root: &Path) -> Result<bool> {
    let mut findings = Vec::new();
    let mut figures = Figures::default();
    let mut texts = Vec::new();
    let mut sources = Vec::new();
    for path in files::all(root)? {
        let Some(text) = files::text(root, &path) else {
            continue;
        };
        findings.extend(source::machine_paths(&path, &text));
        if !path.contains('/') && path.ends_with(".md") && !ROOT_PAGES.contains(&path.as_str()) {
            findings.push(finding(
                &path,
                1,
                "no such page at the root; put it elsewhere or into one of the six",
            ));
        }
        if path.ends_with(".rs") {
            let file = SourceFile::new(path.clone(), text.clone())?;
            source::check(&file, &mut findings, &mut figures);
            sources.push(file);
        }
        texts.push((path, text));
    }
    findings.extend(types::check(&sources));
    findings.extend(cycles::check(&sources));
    findings.extend(words::check(&texts)?);
    findings.extend(guarantees::check(&texts)?);
    findings.extend(manifest::check(root)?);
    let median = figures.median();
    if median > MAX_MEDIAN {
        findings.push(finding(
            "crates",
            1,
            &format!("the median file has {median} lines, more than {MAX_MEDIAN}"),
        ));
    }
    findings.sort();
    for found in &findings {
        complain(&format!("{}:{}: {}", found.path, found.line, found.message));
    }
    let longest = figures.lengths.iter().max().copied().unwrap_or(0);
    say(&format!(
        "{} source files, {} lines of code, {} of documentation ({}%); median {median} lines, longest {longest}; {} findings",
        figures.lengths.len(),
        figures.code,
        figures.doc,
        (figures.doc * 100).checked_div(figures.code).unwrap_or(0),
        findings.len()
    ));
    Ok(findings.is_empty())
}

fn finding(path: &str, line: usize, message: &str) -> Finding {
    Finding {
        path: path.to_owned(),
        line,
        message: message.to_owned(),
    }
}
