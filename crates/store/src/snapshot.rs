//! Reading a session without touching it: no lock, no repair, no migration on disk. For exporting a file that another process
//! may be writing. Sessions that are worked on are opened with [`SessionLog::open`].

use std::io;
use std::path::{Path, PathBuf};

use crate::SessionLog;
use crate::error::{Result, StoreError};
use crate::limits::MAX_FILE;
use crate::medium::{Medium, Presence, open_regular};

/// Reads a session file without a lock. Works around damage and old versions in memory; the file stays unchanged, and
/// appending to the result fails.
///
/// # Errors
/// [`StoreError::NoSuchFile`], [`StoreError::NotAFile`], [`StoreError::NotASession`], [`StoreError::TooLarge`] or
/// [`StoreError::Io`]; [`StoreError::Empty`] when the file has no entries.
pub fn open_read_only(path: &Path) -> Result<SessionLog> {
    let (file, _) = open_regular(path).map_err(|error| match error {
        StoreError::Missing { path } => StoreError::NoSuchFile { path },
        other => other,
    })?;
    let failed = |e| StoreError::io("cannot read", path, e);
    let bytes = file.metadata().map_err(failed)?.len();
    if bytes > MAX_FILE {
        return Err(StoreError::TooLarge {
            path: path.to_path_buf(),
            bytes,
        });
    }
    let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default() + 1);
    io::Read::read_to_end(&mut io::Read::take(file, MAX_FILE), &mut content).map_err(failed)?;
    let (log, _) = SessionLog::open_on(Box::new(Snapshot(content)), path, "")?;
    if log.entries().is_empty() {
        return Err(StoreError::Empty);
    }
    Ok(log)
}

/// Bytes that were a file once.
#[derive(Debug)]
struct Snapshot(Vec<u8>);

impl Snapshot {
    fn refuse<T>() -> io::Result<T> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

impl Medium for Snapshot {
    fn size(&self) -> io::Result<u64> {
        Ok(u64::try_from(self.0.len()).unwrap_or(u64::MAX))
    }

    fn presence(&self) -> io::Result<Presence> {
        Ok(Presence::Same)
    }

    fn read_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(self.0.get(from..).unwrap_or_default().to_vec())
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self.0.get(from..from.saturating_add(len));
        bytes
            .map(<[u8]>::to_vec)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn append(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Self::refuse()
    }

    fn truncate(&mut self, _len: u64) -> io::Result<()> {
        Self::refuse()
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// In memory only: a migrated or repaired text stands for the old one from here on.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<Option<PathBuf>> {
        self.0 = bytes.to_vec();
        Ok(None)
    }

    fn restore(&mut self) -> io::Result<()> {
        Self::refuse()
    }
}
