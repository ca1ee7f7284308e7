//! Why a session cannot be exported. Reading the session file has errors of its own ([`store::StoreError`]).

use std::io;
use std::path::PathBuf;

/// Result of writing an export.
pub type Result<T, E = ExportError> = std::result::Result<T, E>;

/// Why an export could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The session has no file (pi-core.md 9).
    #[error("Cannot export in-memory session to HTML")]
    InMemory,
    /// The session has no entries (pi-core.md 9).
    #[error("Nothing to export yet - start a conversation first")]
    NothingToExport,
    /// A directory, link, FIFO, device or socket is at the path.
    #[error("not a regular file: {}", path.display())]
    NotAFile {
        /// The path of the export.
        path: PathBuf,
    },
    /// The folder of the path is missing; worded as pi's clients know it.
    #[error("ENOENT: no such file or directory, open '{}'", path.display())]
    NoFolder {
        /// The path of the export.
        path: PathBuf,
    },
    /// A file that is not an export of the same format is at the path; it was left untouched.
    #[error("not overwritten, since it is not an export: {}", path.display())]
    NotAnExport {
        /// The path of the export.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The failed action, for example `cannot write`.
        action: &'static str,
        /// The path of the export.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
