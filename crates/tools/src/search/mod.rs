//! The tools that look around: grep, find, ls. They search in this process and read only.

mod collation;
pub(crate) mod complete;
pub(crate) mod find;
pub(crate) mod grep;
pub(crate) mod ls;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use files::{IgnoreFiles, IgnoreRules};
use ignore::WalkBuilder;
use ignore::overrides::Override;
use serde_json::{Map, Value};
use wire::ToolResult;

use crate::limits::{self, MAX_BYTES};
use crate::text::format_size;
use crate::text::truncate::{self, Totals};
use process::real_path;
use process::sandbox::{Access, Policy};

/// Text for the model when a search was aborted.
pub(crate) const ABORTED: &str = "Operation aborted";

/// Which names below a directory may be told. What the sandbox keeps from being read is not named either.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    policy: Option<&'a Policy>,
    root: &'a Path,
    real: PathBuf,
}

impl<'a> Names<'a> {
    /// The names below `root`; all of them without a policy.
    pub(crate) fn new(policy: Option<&'a Policy>, root: &'a Path) -> Self {
        let real = policy.map(|_| real_path(root)).unwrap_or_default();
        Self { policy, root, real }
    }

    /// Returns true if a path below the root may be named. No part below the root is a link.
    pub(crate) fn may_tell(&self, path: &Path) -> bool {
        let Some(policy) = self.policy else { return true };
        let below = path.strip_prefix(self.root).unwrap_or(path);
        policy.access(&self.real.join(below)) > Access::None
    }
}

/// Returns true if a directory lies in a repository. There, rules of Git end where the repository begins: a `.gitignore` in the home
/// directory, which often leaves out everything, says nothing about projects below.
fn is_in_repository(dir: &Path) -> bool {
    real_path(dir)
        .ancestors()
        .any(|above| above.join(".git").exists())
}

/// A walk in name order that sees hidden files, but not inside `.git`. What a glob of the caller names, no rule leaves out.
fn walk(root: &Path, gitignore_everywhere: bool, globs: Override) -> WalkBuilder {
    let rules = IgnoreRules::new(
        root,
        IgnoreFiles::All {
            require_git: !gitignore_everywhere || is_in_repository(root),
        },
    );
    let named = globs.clone();
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false)
        .overrides(globs)
        .follow_links(false)
        .max_depth(Some(limits::WALK_DEPTH))
        .sort_by_file_name(OsStr::cmp)
        .filter_entry(move |entry| {
            let (path, kind) = (entry.path(), entry.file_type());
            let is_named = || {
                let is_dir = kind.is_some_and(|kind| kind.is_dir());
                named.matched(path, is_dir).is_whitelist()
            };
            entry.file_name() != ".git" && (is_named() || !rules.ignores(path, kind))
        });
    walk
}

/// Cuts the lines to the byte limit and puts the notices under them (pi-core.md 5.7).
fn result(
    lines: &[String],
    mut notices: Vec<String>,
    mut details: Map<String, Value>,
    late: Option<(&str, &str)>,
) -> ToolResult {
    let text = lines.join("\n");
    let cut = truncate::head(&text, Totals::of(&text), usize::MAX);
    if cut.truncated {
        notices.push(format!("{} limit reached", format_size(MAX_BYTES as u64)));
        details.insert("truncation".to_owned(), cut.to_value());
    }
    if let Some((notice, key)) = late {
        notices.push(notice.to_owned());
        details.insert(key.to_owned(), Value::Bool(true));
    }
    let mut text = cut.content;
    if !notices.is_empty() {
        text = format!("{text}\n\n[{}]", notices.join(". "));
    }
    let mut result = ToolResult::text(text);
    result.details = (!details.is_empty()).then_some(Value::Object(details));
    result
}
