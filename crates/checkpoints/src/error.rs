//! Why checkpoints cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

/// Why checkpoints cannot be read or written, or a file cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file or directory could not be used.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// The attempt, such as `cannot read`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no rewind that could be taken back.
    #[error("There is no rewind to take back")]
    NothingRewound,
}

impl CheckpointError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_path_buf(),
            source,
        }
    }
}

/// The result of work with checkpoints.
pub type Result<T> = std::result::Result<T, CheckpointError>;
