//! Where a skill or a template comes from, in the words clients know (`sourceInfo`), and how paths given by people are
//! resolved. Finding and reading files lives elsewhere.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;

/// Who brought a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The user's own directories and settings.
    User,
    /// The working directory, its parents, and the project's settings.
    Project,
    /// The command line.
    Temporary,
}

/// How a resource was found; the `source` of `sourceInfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In one of the usual directories.
    Auto,
    /// Through a settings file.
    Local,
    /// Through a flag.
    Cli,
}

impl Origin {
    /// The word that clients know.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Local => "local",
            Self::Cli => "cli",
        }
    }
}

/// The `sourceInfo` object of `get_commands` (dialects.md 3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// The file.
    pub path: String,
    /// How it was found: the word of an [`Origin`], or the package as it was named.
    pub source: String,
    /// Who brought it.
    pub scope: Scope,
    /// `top-level`, or `package`.
    pub origin: &'static str,
    /// The directory that holds the configuration the resource belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<String>,
}

/// A file or directory named by a settings file or a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraPath {
    /// Absolute.
    pub path: PathBuf,
    /// `Temporary` for flags.
    pub scope: Scope,
}

/// Makes a path given by a person absolute: `~` and `~/x` start at `home`, everything else that is relative at `base`.
/// `.` and `..` are taken out by name; nothing is looked up on disk.
#[must_use]
pub fn resolve_path(text: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    let path = match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_path_buf(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => base.join(text),
    };
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}
