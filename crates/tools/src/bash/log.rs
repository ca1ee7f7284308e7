//! The file that takes a long output whole. Whether one is needed is decided in `output`.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::limits;

/// A log file with a buffer before it.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    /// None while a write is under way and after a failure.
    file: Option<File>,
    buffer: Vec<u8>,
    written: u64,
}

impl Log {
    /// Creates `pi-bash-<16 hex>.log`, readable by the owner only.
    pub(crate) fn create(dir: &Path) -> std::io::Result<Self> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let path = dir.join(format!("pi-bash-{}.log", name.get(..16).unwrap_or(&name)));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self {
            path,
            file: Some(file),
            buffer: Vec::new(),
            written: 0,
        })
    }

    /// Bytes that the file has or will have. Bytes that were dropped do not count.
    pub(crate) fn length(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds bytes. Beyond [`limits::LOG_MAX`] they are dropped.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = limits::LOG_MAX.saturating_sub(self.length());
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        if self.file.is_some() {
            self.buffer
                .extend_from_slice(bytes.get(..room).unwrap_or_default());
        }
    }

    /// Returns true if the buffer is large enough for a write.
    pub(crate) fn is_due(&self) -> bool {
        self.buffer.len() >= limits::LOG_BUFFER
    }

    /// Writes the buffer without blocking the caller's thread. After a failure (disk full) the log stays as it is.
    pub(crate) async fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let Some(mut file) = self.file.take() else { return };
        let mut buffer = std::mem::take(&mut self.buffer);
        let done = tokio::task::spawn_blocking(move || {
            let ok = file.write_all(&buffer).is_ok();
            let len = if ok { buffer.len() as u64 } else { 0 };
            buffer.clear();
            (ok.then_some(file), buffer, len)
        });
        if let Ok((file, buffer, len)) = done.await {
            (self.file, self.buffer) = (file, buffer);
            self.written += len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failed_write_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::create(dir.path()).unwrap();
        log.push(b"one");
        log.flush().await;
        assert_eq!(log.length(), 3);
        // Opened for reading, so that writing fails as on a full disk.
        log.file = Some(File::open(log.path()).unwrap());
        log.push(b"two");
        log.flush().await;
        log.push(b"three");
        assert_eq!(log.length(), 3);
    }
}
