//! What was wrong with a file that was read on the way. Never fatal; the caller decides where it is shown.

use std::fmt;
use std::path::{Path, PathBuf};

/// A complaint about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file (or the directory) in question.
    pub path: PathBuf,
    /// One sentence without the path, without a full stop.
    pub message: String,
}

impl Diagnostic {
    /// A complaint about `path`.
    pub fn new(path: &Path, message: impl Into<String>) -> Self {
        Self {
            path: path.to_path_buf(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}
