//! `xtask book`: checks the documentation. Links and anchors must lead somewhere, and code blocks must be what their language says:
//! `json,settings`, `json,models` and `json,replies` fit the files that they are examples of, `jsonl` in pages of the protocol
//! fits the schema, `sh`, `bash` and `python` have valid syntax. Blocks with the mark `run` run with an agent, and `console,run`
//! must print what it shows. Each page in `docs` is in the table of contents.
//!
//! Here: which pages there are, and the report. Pages are taken apart in `page`, links checked in `links`, blocks in `blocks`.

mod blocks;
mod console;
mod links;
mod page;
mod run;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::out::{complain, say};
use page::Page;

/// Counts of a check, and its errors.
#[derive(Debug, Default)]
pub struct Report {
    /// Pages that were read.
    pub pages: usize,
    /// Links within the repository that were followed.
    pub links: usize,
    /// Code blocks by kind of check.
    pub blocks: std::collections::BTreeMap<&'static str, usize>,
    /// Errors, as `file:line: message`.
    pub wrong: Vec<String>,
}

impl Report {
    fn count(&mut self, what: &'static str) {
        *self.blocks.entry(what).or_default() += 1;
    }
}

/// The chore; false when something is wrong.
///
/// # Errors
/// When a page cannot be read or a checker cannot be run.
pub fn run(root: &Path, agent: Option<&Path>) -> Result<bool> {
    let report = check(root, agent)?;
    for wrong in &report.wrong {
        complain(wrong);
    }
    let blocks: Vec<String> = report
        .blocks
        .iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    say(&format!(
        "{} pages, {} links; blocks: {}; {} problems",
        report.pages,
        report.links,
        blocks.join(", "),
        report.wrong.len()
    ));
    Ok(report.wrong.is_empty())
}

/// Checks all pages of a repository; with an agent, also runs the blocks that are to be run.
///
/// # Errors
/// When a page cannot be read or a checker cannot be run.
pub fn check(root: &Path, agent: Option<&Path>) -> Result<Report> {
    let mut report = Report::default();
    let mut all = Vec::new();
    for path in pages(root)? {
        let text = fs::read_to_string(root.join(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut page = Page::parse(&path, &text);
        include(root, &mut page, &mut report);
        all.push(page);
    }
    report.pages = all.len();
    contents(&all, &mut report);
    links::check(root, &all, &mut report);
    blocks::check(&all, &mut report)?;
    if let Some(agent) = agent {
        let agent = fs::canonicalize(agent).with_context(|| format!("no agent at {}", agent.display()))?;
        let root = fs::canonicalize(root)?;
        let runner = run::Runner {
            root: &root,
            agent: &agent,
        };
        runner.check(&all, &mut report)?;
    }
    Ok(report)
}

/// Puts files in place of the blocks that include them.
fn include(root: &Path, page: &mut Page, report: &mut Report) {
    let folder = root.join(&page.path).with_file_name("");
    let mut wrong = Vec::new();
    for block in &mut page.blocks {
        let name = block.text.trim().strip_prefix("{{#include ");
        let Some(name) = name.and_then(|rest| rest.strip_suffix("}}")) else {
            continue;
        };
        match fs::read_to_string(folder.join(name)) {
            Ok(text) => block.text = text,
            Err(error) => wrong.push((block.line, format!("{name} cannot be included: {error}"))),
        }
    }
    let wrong = wrong.into_iter();
    report
        .wrong
        .extend(wrong.map(|(line, why)| format!("{}: {why}", page.place(line))));
}

/// Checks that the table of contents, if there is one, has each page of the book: mdBook leaves others out.
fn contents(pages: &[Page], report: &mut Report) {
    let summary = Path::new("docs/SUMMARY.md");
    let Some(list) = pages.iter().find(|page| page.path == summary) else {
        return;
    };
    let listed: std::collections::BTreeSet<&str> = list.links.iter().map(|(_, to)| to.as_str()).collect();
    for page in pages {
        let name = page.path.strip_prefix("docs").ok().and_then(Path::to_str);
        if let Some(name) = name.filter(|name| *name != "SUMMARY.md" && !listed.contains(name)) {
            report.wrong.push(format!(
                "docs/SUMMARY.md:1: {name} is not in the table of contents"
            ));
        }
    }
}

/// Pages that are checked: Markdown at the root, in `docs`, in `protocol`, in `examples`, and READMEs of the SDKs and of crates.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    collect(root, Path::new(""), 1, &mut out)?;
    for (folder, depth) in [
        ("docs", 9),
        ("protocol", 1),
        ("examples", 3),
        ("sdk", 2),
        ("crates", 2),
        ("packaging", 3),
    ] {
        if root.join(folder).is_dir() {
            collect(root, Path::new(folder), depth, &mut out)?;
        }
    }
    out.sort();
    Ok(out)
}

fn collect(root: &Path, folder: &Path, depth: usize, out: &mut Vec<PathBuf>) -> Result<()> {
    let list =
        fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in list {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            let is_output =
                name.starts_with('.') || name == "node_modules" || name == "book" || name == "target";
            if depth > 1 && !is_output {
                collect(root, &path, depth - 1, out)?;
            }
        } else if name.ends_with(".md") {
            out.push(path);
        }
    }
    Ok(())
}
