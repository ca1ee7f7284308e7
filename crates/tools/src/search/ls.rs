//! The `ls` tool (pi-core.md 5.7).

use std::path::Path;

use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;
use wire::ToolResult;

use super::collation::Key;
use crate::limits;
use crate::text::system_error;

/// Lists a directory. Blocks.
pub(crate) fn ls(
    path: &Path,
    limit: usize,
    told: &super::Names<'_>,
    cancel: &CancellationToken,
) -> Result<ToolResult, String> {
    let shown = path.display();
    let meta = path.metadata().map_err(|_| format!("Path not found: {shown}"))?;
    if !meta.is_dir() {
        return Err(format!("Not a directory: {shown}"));
    }
    let entries = std::fs::read_dir(path).map_err(|error| {
        format!(
            "Cannot read directory: {}",
            system_error::text(&error, "scandir", path)
        )
    })?;
    let mut names: Vec<(Key, std::ffi::OsString)> = Vec::new();
    for entry in entries.flatten().take(limits::LS_SCAN_MAX) {
        if cancel.is_cancelled() {
            return Err(super::ABORTED.to_owned());
        }
        let name = entry.file_name();
        if !told.may_tell(&path.join(&name)) {
            continue;
        }
        names.push((Key::of(&name.to_string_lossy()), name));
    }
    names.sort();
    let (mut lines, mut more) = (Vec::new(), false);
    for (_, name) in names {
        // A broken link is left out.
        let Ok(meta) = path.join(&name).metadata() else {
            continue;
        };
        if lines.len() == limit {
            more = true;
            break;
        }
        let slash = if meta.is_dir() { "/" } else { "" };
        lines.push(format!("{}{slash}", name.to_string_lossy()));
    }
    if lines.is_empty() {
        return Ok(ToolResult::text("(empty directory)"));
    }
    let (mut notices, mut details) = (Vec::new(), Map::new());
    if more {
        notices.push(format!(
            "{limit} entries limit reached. Use limit={} for more",
            limit * 2
        ));
        details.insert("entryLimitReached".to_owned(), json!(limit));
    }
    Ok(super::result(&lines, notices, details, None))
}
