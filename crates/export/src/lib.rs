//! A session as something to read or to pass on: one HTML page, Markdown, JSON (pi-core.md 9).
//!
//! What lives here: what goes in, the formats, default names and the preconditions. The page is in `page`, Markdown in
//! `markdown`, `calls`, `prose` and `fence`, putting a file in place in `file`. How the page looks and behaves is in `assets`.
//! What does not: which session, where to, who asked, and reading session files (`store`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod calls;
mod error;
mod escape;
mod fence;
mod file;
mod json;
pub mod limits;
mod markdown;
mod page;
mod prose;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use store::SessionLog;
use wire::{Entry, SessionHeader, ToolSpec};

pub use error::{ExportError, Result};
pub use file::write_file;
pub use json::json;
pub use markdown::markdown;
pub use page::html;

/// What an export shows.
#[derive(Debug, Clone, Copy)]
pub struct ExportInput<'a> {
    /// The session's header.
    pub header: &'a SessionHeader,
    /// All entries of all branches, in file order.
    pub entries: &'a [Arc<Entry>],
    /// The leaf whose branch is shown first; none shows the branch of the last entry.
    pub leaf_id: Option<&'a str>,
    /// What the model was told, when it is known.
    pub system_prompt: Option<&'a str>,
    /// The tools the model had, when they are known.
    pub tools: &'a [ToolSpec],
    /// The session's name.
    pub name: Option<&'a str>,
}

impl<'a> ExportInput<'a> {
    /// What a session log knows by itself: everything but system prompt and tools.
    #[must_use]
    pub fn of(log: &'a SessionLog) -> Self {
        Self {
            header: log.header(),
            entries: log.entries(),
            leaf_id: log.leaf_id(),
            system_prompt: None,
            tools: &[],
            name: log.session_name(),
        }
    }

    /// The entries from a root to the leaf. A damaged file can have a circle in it; the walk then ends where it closes.
    fn branch(&self) -> Vec<&'a Entry> {
        let by_id: std::collections::HashMap<&str, usize> = (0..)
            .zip(self.entries)
            .map(|(at, entry)| (entry.id.as_str(), at))
            .collect();
        let mut seen = std::collections::HashSet::new();
        let leaf = self.leaf_id.and_then(|id| by_id.get(id).copied());
        let mut next = leaf.or_else(|| self.entries.len().checked_sub(1));
        let mut branch = Vec::new();
        while let Some(at) = next.filter(|at| seen.insert(*at)) {
            let Some(entry) = self.entries.get(at) else { break };
            branch.push(&**entry);
            next = entry.parent_id.as_deref().and_then(|id| by_id.get(id).copied());
        }
        branch.reverse();
        branch
    }
}

/// A form an export can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One self-contained page.
    Html,
    /// The branch of the leaf as Markdown.
    Markdown,
    /// Header and entries in one JSON object.
    Json,
}

impl Format {
    /// The format that a file name asks for by its extension (`md`, `markdown`, `json`); anything else is a page.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Self::Markdown,
            "json" => Self::Json,
            _ => Self::Html,
        }
    }

    /// The extension of default names, without a dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Json => "json",
        }
    }

    /// Returns true if a file that begins like this is an export of this format.
    fn is_export(self, beginning: &[u8]) -> bool {
        let marker = self.marker().as_bytes();
        match self {
            Self::Html => memchr::memmem::find(beginning, marker).is_some(),
            // Nothing comes before it: a text that contains a copy of an export is no export.
            Self::Markdown | Self::Json => beginning.starts_with(marker),
        }
    }

    /// A text near the beginning of every export, by which a later export recognises it.
    fn marker(self) -> &'static str {
        match self {
            Self::Html => r#"<meta name="generator" content="pinion-export"#,
            Self::Markdown => "<!-- pinion-export -->",
            Self::Json => r#"{"format":"pinion-export","#,
        }
    }

    fn write(self, input: &ExportInput<'_>, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Html => html(input, out),
            Self::Markdown => markdown(input, out),
            Self::Json => json(input, out),
        }
    }
}

/// Default file name of an export: `pi-session-<name of the session file>.html` (pi-core.md 9).
#[must_use]
pub fn default_name(session_file: &Path, format: Format) -> String {
    let name = session_file.file_name().unwrap_or_default().to_string_lossy();
    let base = name.strip_suffix(".jsonl").unwrap_or(&name);
    format!("pi-session-{base}.{}", format.extension())
}

/// Checks that this session can be exported: it has a file, and at least one entry (pi-core.md 9).
///
/// # Errors
/// [`ExportError::InMemory`] or [`ExportError::NothingToExport`].
pub fn check(log: &SessionLog) -> Result<()> {
    match log.path() {
        None => Err(ExportError::InMemory),
        Some(_) if !log.is_on_disk() => Err(ExportError::NothingToExport),
        Some(_) => Ok(()),
    }
}
