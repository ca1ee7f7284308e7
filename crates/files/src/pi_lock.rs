//! The lock of pi on a file that both agents write: a directory with the file's name and `.lock`, as `proper-lockfile` makes it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// Pause between two attempts to get the lock.
const POLL: Duration = Duration::from_millis(20);

/// Age after which pi takes a lock from a process that died.
const STALE: Duration = Duration::from_secs(10);

/// The lock of pi on a file. Dropping it releases the lock.
#[derive(Debug)]
pub struct PiLock(PathBuf);

impl PiLock {
    /// Waits for the lock on a file, whose directory must exist. Blocks.
    ///
    /// # Errors
    /// `AlreadyExists` if another process still holds the lock after this time; others if the lock cannot be made.
    pub fn take(file: &Path, wait: Duration) -> io::Result<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let dir = PathBuf::from(name);
        let until = Instant::now() + wait;
        loop {
            match fs::create_dir(&dir) {
                Ok(()) => return Ok(Self(dir)),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => {}
            }
            if is_stale(&dir) {
                let _gone = fs::remove_dir(&dir);
            }
            sleep(POLL);
        }
    }
}

impl Drop for PiLock {
    fn drop(&mut self) {
        let _gone = fs::remove_dir(&self.0);
    }
}

/// Returns true if a process left the directory behind when it died.
fn is_stale(dir: &Path) -> bool {
    let made = fs::metadata(dir).and_then(|meta| meta.modified());
    let age = made
        .ok()
        .and_then(|made| SystemTime::now().duration_since(made).ok());
    age.is_some_and(|age| age > STALE)
}
