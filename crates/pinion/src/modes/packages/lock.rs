//! The lock of package commands: one at a time for an agent directory. pi does not know it; `Staged::swap` notices what pi
//! installs meanwhile.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::limits::{LOCK, LOCK_POLL};
use super::programs::Cancelled;
use crate::environment::complain;

/// Waits for the lock, which is held until the file is dropped or the process ends.
///
/// # Errors
/// If the lock file cannot be created, the wait takes too long or is cancelled.
pub(super) async fn take(agent_dir: &Path, cancel: &CancellationToken) -> anyhow::Result<File> {
    std::fs::create_dir_all(agent_dir).with_context(|| agent_dir.display().to_string())?;
    let path = agent_dir.join("packages.pinion-lock");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    let until = Instant::now() + LOCK;
    let mut is_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error).with_context(|| path.display().to_string()),
        }
        if Instant::now() >= until {
            bail!("Another package command is still running; nothing was changed");
        }
        if !std::mem::replace(&mut is_told, true) {
            complain("Waiting for another package command to end");
        }
        tokio::select! {
            () = sleep(LOCK_POLL) => {}
            () = cancel.cancelled() => return Err(Cancelled.into()),
        }
    }
}
