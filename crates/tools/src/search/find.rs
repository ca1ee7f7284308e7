//! The `find` tool (pi-core.md 5.7): names and paths by glob, gitignored files left out, outside of repositories, too.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::overrides::Override;
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;
use wire::ToolResult;

use crate::path::relative;

/// Finds entries below a directory. Blocks.
pub(crate) fn find(
    root: &Path,
    pattern: &str,
    limit: usize,
    names: &super::Names<'_>,
    cancel: &CancellationToken,
) -> Result<ToolResult, String> {
    if !root.is_dir() {
        let words = if root.exists() {
            "Not a directory"
        } else {
            "Path not found"
        };
        return Err(format!("{words}: {}", root.display()));
    }
    // Without a pattern everything is found, as pi's search does.
    let pattern = if pattern.is_empty() { "*" } else { pattern };
    let whole = pattern.contains('/');
    let matcher = matcher(pattern, whole)?;
    let (mut lines, mut more) = (Vec::new(), false);
    for entry in super::walk(root, true, Override::empty()).build() {
        if cancel.is_cancelled() {
            return Err(super::ABORTED.to_owned());
        }
        // What cannot be read is passed over, as a search over many directories must.
        let Ok(entry) = entry else { continue };
        let hit = if whole {
            matcher.is_match(entry.path())
        } else {
            matcher.is_match(entry.file_name())
        };
        if entry.depth() == 0 || !hit || !names.may_tell(entry.path()) {
            continue;
        }
        if lines.len() == limit {
            more = true;
            break;
        }
        let slash = if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            "/"
        } else {
            ""
        };
        lines.push(format!("{}{slash}", relative(entry.path(), root)));
    }
    if lines.is_empty() {
        return Ok(ToolResult::text("No files found matching pattern"));
    }
    let (mut notices, mut details) = (Vec::new(), Map::new());
    if more {
        notices.push(format!(
            "{limit} results limit reached. Use limit={} for more, or refine pattern",
            limit * 2
        ));
        details.insert("resultLimitReached".to_owned(), json!(limit));
    }
    Ok(super::result(&lines, notices, details, None))
}

/// A glob over the name, or over the whole path when it has a slash. Small letters match both cases.
fn matcher(pattern: &str, whole: bool) -> Result<GlobMatcher, String> {
    let anchored = pattern.starts_with('/') || pattern.starts_with("**/") || pattern == "**";
    let glob = if whole && !anchored {
        format!("**/{pattern}")
    } else {
        pattern.to_owned()
    };
    let any_case = !pattern.chars().any(char::is_uppercase);
    GlobBuilder::new(&glob)
        .literal_separator(true)
        .case_insensitive(any_case)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| format!("Invalid glob pattern: {error}"))
}
