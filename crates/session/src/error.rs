//! What can keep a session from beginning.

use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session file.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// A session's working directory is gone (behaviour.md 1.7).
    #[error(
        "Stored session working directory does not exist: {}\nSession file: {}\nCurrent working directory: {}",
        stored.display(), file.display(), current.display()
    )]
    MissingCwd {
        /// What the session says.
        stored: PathBuf,
        /// The session file.
        file: PathBuf,
        /// Where we are.
        current: PathBuf,
    },
    /// Entries that are in memory only would be lost.
    #[error("{0}")]
    Unstored(String),
    /// The choice of a model.
    #[error(transparent)]
    Registry(#[from] models::RegistryError),
}
