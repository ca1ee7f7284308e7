//! The lock on `auth.json`: a file lock of the system, which ends with its process, and pi's own, a directory
//! (pi-core.md 8.4), so that pi and this agent do not refresh the same token. `file` reads and writes under it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::time::{Instant, sleep};

use super::LoginError;
use super::limits::{LOCK, LOCK_POLL, PI_LOCK_STALE};

/// Holds both locks until it is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    _ours: File,
    /// Pi's directory, if it could be made.
    theirs: Option<PathBuf>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(dir) = &self.theirs {
            let _gone = fs::remove_dir(dir);
        }
    }
}

/// Waits for the lock on `path`. Dropping the wait gives it up.
pub(super) async fn lock(path: &Path) -> Result<Guard, LoginError> {
    let until = Instant::now() + LOCK;
    let ours = open(&beside(path, ".pinion-lock")).map_err(|error| LoginError::File {
        path: path.display().to_string(),
        reason: error.to_string(),
    })?;
    let late = || LoginError::Locked(path.display().to_string());
    loop {
        match ours.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {}
            // A file system without locks: pi's directory has to do.
            Err(TryLockError::Error(_)) => break,
        }
        if Instant::now() >= until {
            return Err(late());
        }
        sleep(LOCK_POLL).await;
    }
    let dir = beside(path, ".lock");
    loop {
        match fs::create_dir(&dir) {
            Ok(()) => {
                return Ok(Guard {
                    _ours: ours,
                    theirs: Some(dir),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => {
                return Ok(Guard {
                    _ours: ours,
                    theirs: None,
                });
            }
        }
        if is_stale(&dir) {
            let _gone = fs::remove_dir(&dir);
        }
        if Instant::now() >= until {
            return Err(late());
        }
        sleep(LOCK_POLL).await;
    }
}

/// `path` with something after its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The file that the system's lock is on; it stays.
fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Returns true if the directory was left behind by a pi that died.
fn is_stale(dir: &Path) -> bool {
    let age = fs::metadata(dir)
        .and_then(|meta| meta.modified())
        .ok()
        .and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_some_and(|age| age > PI_LOCK_STALE)
}
