//! Completion of file paths: the best match comes first, and the search ends in time. Gitignored files are left out as by
//! `find`. The search goes level by level, so that a large tree still shows its upper part.

use std::path::Path;
use std::time::Instant;

use ignore::overrides::Override;
use tokio_util::sync::CancellationToken;

use crate::limits::{COMPLETE_NEAR, COMPLETE_SCAN_MAX};
use crate::path::relative;

/// A file or directory that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitting {
    /// Its path from the root on, with `/`.
    pub path: String,
    /// True for a directory.
    pub is_directory: bool,
}

/// The result of a completion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completed {
    /// The best first.
    pub files: Vec<Fitting>,
    /// There may be more.
    pub truncated: bool,
}

/// Where something comes in the list: how well it fits, then how deep or long it is.
type Place = (u8, usize);

/// Finds what fits below `root`, `limit` of it at most, until `until` or a cancel. Blocks.
#[must_use]
pub fn complete(
    root: &Path,
    query: &str,
    limit: usize,
    until: Instant,
    cancel: &CancellationToken,
) -> Completed {
    let query = Query::new(query);
    let mut found: Vec<(Place, Fitting)> = Vec::new();
    let (mut looked, mut truncated) = (0_usize, false);
    let walk = || super::walk(root, true, Override::empty());
    let near = walk().max_depth(Some(COMPLETE_NEAR)).build();
    let all = walk().build();
    let deep = all.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.depth() > COMPLETE_NEAR));
    for entry in near.chain(deep) {
        looked += 1;
        if cancel.is_cancelled() || looked > COMPLETE_SCAN_MAX || Instant::now() >= until {
            truncated = true;
            break;
        }
        // What cannot be read is passed over, as a search over many directories must.
        let Ok(entry) = entry else { continue };
        if entry.depth() == 0 {
            continue;
        }
        let path = relative(entry.path(), root);
        let Some(rank) = query.rank(&path) else { continue };
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let length = if query.is_empty() {
            entry.depth()
        } else {
            path.len()
        };
        found.push(((rank, length), Fitting { path, is_directory }));
        if found.len() > limit.saturating_mul(8).max(1024) {
            truncated |= keep(&mut found, limit);
        }
    }
    truncated |= keep(&mut found, limit);
    Completed {
        files: found.into_iter().map(|(_, fitting)| fitting).collect(),
        truncated,
    }
}

/// Keeps the best. True when some had to go.
fn keep(found: &mut Vec<(Place, Fitting)>, limit: usize) -> bool {
    found.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.path.cmp(&other.path)));
    let is_too_much = found.len() > limit;
    found.truncate(limit);
    is_too_much
}

/// The typed text.
struct Query {
    text: String,
    any_case: bool,
}

impl Query {
    fn new(text: &str) -> Self {
        let text = text.strip_prefix("./").unwrap_or(text);
        Self {
            text: text.to_owned(),
            any_case: !text.chars().any(char::is_uppercase),
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// How well a path fits, 0 being best: it is the name, begins it, is in it, is in the path, or its letters are there in their
    /// order. A query with a slash is about paths.
    fn rank(&self, path: &str) -> Option<u8> {
        let lower;
        let path = if self.any_case {
            lower = path.to_lowercase();
            lower.as_str()
        } else {
            path
        };
        let text = self.text.as_str();
        let name = match path.rsplit_once('/') {
            Some((_, name)) if !text.contains('/') => name,
            _ => path,
        };
        match () {
            () if text.is_empty() || name == text => Some(0),
            () if name.starts_with(text) => Some(1),
            () if name.contains(text) => Some(2),
            () if path.contains(text) => Some(3),
            () => is_subsequence(text, path).then_some(4),
        }
    }
}

fn is_subsequence(text: &str, path: &str) -> bool {
    let mut path = path.chars();
    text.chars().all(|wanted| path.any(|letter| letter == wanted))
}
