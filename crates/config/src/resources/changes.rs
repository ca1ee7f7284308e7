//! What settings take out of the resources that were found (`!pattern`, `-path`) and back in (`+path`); pi's own `config`
//! command switches single ones off in this way. The same rules choose from a package.

use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::resources::kind::Kind;
use crate::source::Scope;

/// The changes that one settings file makes to the files found of a kind in its scope.
#[derive(Debug, Clone)]
pub struct Changes {
    kind: Kind,
    scope: Scope,
    base: PathBuf,
    rules: Gitignore,
}

impl Changes {
    /// The changes of a list; none when it only names paths. Relative ones start at `base`.
    pub(crate) fn of(kind: Kind, scope: Scope, base: &Path, list: &[String]) -> Option<Self> {
        let changes: Vec<String> = list.iter().filter(|item| is_change(item)).cloned().collect();
        (!changes.is_empty()).then(|| Self {
            kind,
            scope,
            base: base.to_path_buf(),
            rules: rules(base, &changes),
        })
    }

    /// Returns whether the last pattern that matches the file keeps it. Returns nothing if none matches.
    pub(crate) fn verdict(&self, file: &Path) -> Option<bool> {
        says(&self.rules, &self.base, file)
    }
}

/// Returns true if a file that was found there counts.
#[must_use]
pub fn counts(changes: &[Changes], kind: Kind, scope: Scope, path: &Path) -> bool {
    counts_from(changes, kind, scope, None, path)
}

/// Returns true if a file counts whose patterns may also start at `base`: the `.agents` directory of a skill, as in pi.
pub(crate) fn counts_from(
    changes: &[Changes],
    kind: Kind,
    scope: Scope,
    base: Option<&Path>,
    path: &Path,
) -> bool {
    changes
        .iter()
        .filter(|one| one.kind == kind && one.scope == scope)
        .all(|one| {
            let from_base = || says(&one.rules, base?, path);
            one.verdict(path).or_else(from_base) != Some(false)
        })
}

/// Returns true for a change to a list, false for an entry of it.
pub(crate) fn is_change(item: &str) -> bool {
    item.starts_with(['!', '+', '-'])
}

/// Rules for paths below a directory: plain and `+` choose, `!` and `-` leave out, the last match counts. A pattern
/// without a slash fits at any depth.
pub(crate) fn rules(root: &Path, list: &[String]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(root);
    let prefix = format!("{}/", root.display());
    for item in list {
        let (sign, path) = match item.split_at_checked(1) {
            Some(("!" | "-", rest)) => ("!", rest),
            Some(("+", rest)) => ("", rest),
            _ => ("", item.as_str()),
        };
        let path = path.strip_prefix(&prefix).unwrap_or(path);
        let path = path.trim_start_matches("./").trim_start_matches('/');
        let at = if item.starts_with('!') && !path.contains('/') {
            ""
        } else {
            "/"
        };
        // An invalid pattern matches nothing.
        let _added = builder.add_line(None, &format!("{sign}{at}{path}"));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// What the rules say of a file; nothing when none fits it or a directory above it.
pub(crate) fn says(rules: &Gitignore, root: &Path, file: &Path) -> Option<bool> {
    // Settings may name directories elsewhere: patterns for any depth match there, too.
    let path = file.strip_prefix(root).or_else(|_| file.strip_prefix("/")).ok()?;
    match rules.matched_path_or_any_parents(path, false) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}
