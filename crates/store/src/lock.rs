//! One writer per session file. Why the lock is on the file itself is said at [`crate::FileMedium`].

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Result, StoreError};

/// Locks a file or says who has it.
pub(crate) fn try_lock(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked {
            path: path.to_path_buf(),
            pid: holder(file),
        }),
        // Some network file systems know no locks: better a session without one than no session.
        Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(e)) => Err(StoreError::io("cannot lock", path, e)),
    }
}

/// The process that holds a lock on the file, as Linux tells in `/proc/locks`.
#[cfg(target_os = "linux")]
fn holder(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    table.lines().find_map(|line| {
        // "1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF"
        let mut words = line.split_ascii_whitespace().skip(1);
        let (kind, _, _, pid, place) = (
            words.next()?,
            words.next()?,
            words.next()?,
            words.next()?,
            words.next()?,
        );
        (kind == "FLOCK" && place.ends_with(&inode))
            .then(|| pid.parse().ok())
            .flatten()
    })
}

#[cfg(not(target_os = "linux"))]
fn holder(_file: &File) -> Option<u32> {
    None
}
