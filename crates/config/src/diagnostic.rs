//! Complaints about files that were read on the way. The caller decides where it is shown, and whether it is fatal.

use std::fmt;
use std::path::{Path, PathBuf};

/// A complaint about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file (or the directory) in question.
    pub path: PathBuf,
    /// One sentence without the path, without a full stop.
    pub message: String,
    /// The dotted key whose value protects the user and could not be used; empty for the whole file.
    pub fault: Option<String>,
    /// True if something that the project brings was left out, so that the client learns of it.
    pub is_left_out: bool,
}

impl Diagnostic {
    /// A complaint about `path`.
    pub fn new(path: &Path, message: impl Into<String>) -> Self {
        Self {
            path: path.to_path_buf(),
            message: message.into(),
            fault: None,
            is_left_out: false,
        }
    }

    /// A complaint about a file that cannot be used, or may not.
    pub fn left_out(path: &Path, message: impl Into<String>) -> Self {
        Self {
            is_left_out: true,
            ..Self::new(path, message)
        }
    }

    /// A complaint about a setting that protects the user. It must not be passed over in silence.
    pub fn fault(path: &Path, key: &str, message: impl Into<String>) -> Self {
        Self {
            fault: Some(key.to_owned()),
            ..Self::new(path, message)
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}
