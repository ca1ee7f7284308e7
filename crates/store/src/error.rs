//! The crate's one error type. Damage inside a session file is not an error; see `damage`.

use std::io;
use std::path::{Path, PathBuf};

/// Result of everything here.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a session could not be opened, written or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no file at the path.
    #[error("session file not found: {}", path.display())]
    Missing {
        /// The path asked for.
        path: PathBuf,
    },
    /// A file that should be new is there already.
    #[error("file exists already: {}", path.display())]
    AlreadyExists {
        /// The path asked for.
        path: PathBuf,
    },
    /// A directory, FIFO, device or socket.
    #[error("not a regular file: {}", path.display())]
    NotAFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// Something else than a session; it was left untouched.
    #[error("Session file is not a valid pi session: {}", path.display())]
    NotASession {
        /// The path asked for.
        path: PathBuf,
    },
    /// Another writer has the session open.
    #[error("session is open in another process{}: {}", pid.map(|p| format!(" (pid {p})")).unwrap_or_default(), path.display())]
    Locked {
        /// The session file.
        path: PathBuf,
        /// The other process, where the system tells; it can be this process too.
        pid: Option<u32>,
    },
    /// Another program shortened or replaced the file; nothing was written. Open it again to continue.
    #[error("session file was changed by another program: {}", path.display())]
    Changed {
        /// The session file.
        path: PathBuf,
    },
    /// The file may be read but not written.
    #[error("session file is read-only: {}", path.display())]
    ReadOnly {
        /// The session file.
        path: PathBuf,
    },
    /// The file is larger than [`crate::limits::MAX_FILE`].
    #[error("session file too large ({bytes} bytes): {}", path.display())]
    TooLarge {
        /// The session file.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The entry is larger than [`crate::limits::MAX_LINE`]; it was not kept.
    #[error("session entry too large ({bytes} bytes)")]
    EntryTooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// No entry has this id.
    #[error("Entry {id} not found")]
    NoEntry {
        /// The id asked for.
        id: String,
    },
    /// A session file that is only read has no entries. Worded as pi's clients know it: they export the file (pi-core.md 9).
    #[error("Nothing to export yet - start a conversation first")]
    Empty,
    /// There is no session file to read (pi-core.md 9).
    #[error("File not found: {}", path.display())]
    NoSuchFile {
        /// The path asked for.
        path: PathBuf,
    },
    /// A writer's position is not the session's: another writer appended, or the session was deleted. The store refused.
    #[error(
        "session {session} is at position {actual}, not {expected}: another process continued or deleted it"
    )]
    Stale {
        /// The session's id.
        session: String,
        /// The position that the writer took for the session's.
        expected: u64,
        /// The session's position.
        actual: u64,
    },
    /// A store did not say whether it took an append, and did not answer when asked about it.
    #[error("session {session} may or may not have been stored from position {expected} on: {reason}")]
    Unconfirmed {
        /// The session's id.
        session: String,
        /// Where the lines begin if they were stored.
        expected: u64,
        /// What happened last.
        reason: String,
    },
    /// The engine of a store failed or could not be reached.
    #[error("cannot {action}: {reason}")]
    Engine {
        /// The failed action, for example `append to the session`.
        action: &'static str,
        /// What the engine or its client said.
        reason: String,
    },
    /// What a store has for a session is not a session's lines.
    #[error("session {session} is damaged in its store at position {position}: {reason}")]
    Damaged {
        /// The session's id.
        session: String,
        /// The first position that cannot be read.
        position: u64,
        /// The fault.
        reason: String,
    },
    /// A store takes no session of this id.
    #[error(
        "not a session id: it must have 1 to {} bytes and no control characters: {id:?}",
        crate::limits::STORED_ID
    )]
    BadId {
        /// The id.
        id: String,
    },
    /// An append to a store with no lines, or with a line feed in a line.
    #[error("an append needs at least one line, and no line may contain a line feed")]
    BadLine,
    /// An entry could not be written as JSON.
    #[error("session entry cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// The system refused; no entry of the failed call was kept.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The failed action, for example `cannot write`.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StoreError {
    /// Wraps a system error; the kinds with a name of their own here get it.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path },
            io::ErrorKind::AlreadyExists => Self::AlreadyExists { path },
            _ => Self::Io { action, path, source },
        }
    }
}
