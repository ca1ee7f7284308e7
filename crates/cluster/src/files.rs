//! Session files as a store: [`store::SessionDirectory`] on blocking threads.

use std::time::Instant;

use store::{Result, SessionDirectory, SessionId, SessionStore, StoreError, StoreFuture, Watch};

use crate::limits::{FILE_WATCH_PAUSE, LOCK_PAUSE, LOCK_WAIT};

/// Session files as a store.
#[derive(Debug, Clone)]
pub struct FileStore {
    directory: SessionDirectory,
}

impl FileStore {
    /// A store of the session files of a directory.
    #[must_use]
    pub fn new(directory: SessionDirectory) -> Self {
        Self { directory }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SessionDirectory) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let directory = self.directory.clone();
        let done = tokio::task::spawn_blocking(move || work(&directory)).await;
        done.unwrap_or_else(|error| {
            Err(StoreError::Engine {
                action: "use the session files",
                reason: error.to_string(),
            })
        })
    }
}

impl SessionStore for FileStore {
    /// Waits up to [`LOCK_WAIT`] while another process has the file open.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        lines: &'a [Vec<u8>],
        expected: u64,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let begin = Instant::now();
            loop {
                let (id, copy) = (session.clone(), lines.to_vec());
                match self.blocking(move |dir| dir.append(&id, &copy, expected)).await {
                    Err(StoreError::Locked { .. }) if begin.elapsed() < LOCK_WAIT => {
                        tokio::time::sleep(LOCK_PAUSE).await;
                    }
                    other => return other,
                }
            }
        })
    }

    fn load<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, Vec<Vec<u8>>> {
        let id = session.clone();
        Box::pin(self.blocking(move |dir| dir.load(&id, from)))
    }

    fn list(&self) -> StoreFuture<'_, Vec<SessionId>> {
        Box::pin(self.blocking(SessionDirectory::list))
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        let id = session.clone();
        Box::pin(self.blocking(move |dir| dir.delete(&id)))
    }

    fn watch<'a>(&'a self, session: &'a SessionId, from: u64) -> StoreFuture<'a, Box<dyn Watch>> {
        Box::pin(async move {
            let mut watch = FileWatch {
                files: self.clone(),
                session: session.clone(),
                position: from,
                size: None,
            };
            // An error of the position comes now, and not from the first wait.
            watch.check().await?;
            Ok(Box::new(watch) as Box<dyn Watch>)
        })
    }
}

/// A session file that is looked at again and again.
struct FileWatch {
    files: FileStore,
    session: SessionId,
    position: u64,
    /// Size of the file when all its lines were seen; none while there may be more.
    size: Option<u64>,
}

impl FileWatch {
    async fn check(&mut self) -> Result<()> {
        let (session, from) = (self.session.clone(), self.position);
        self.files
            .blocking(move |dir| dir.load(&session, from))
            .await
            .map(drop)
    }

    /// Reads on if the file has another size than before.
    async fn look(&mut self) -> Result<Vec<Vec<u8>>> {
        let (session, from, known) = (self.session.clone(), self.position, self.size);
        let read = move |dir: &SessionDirectory| {
            // Before the lines, so that lines written in between count as a change.
            let path = dir.find(&session)?;
            let size = path
                .and_then(|path| path.metadata().ok())
                .map(|found| found.len());
            if size.is_some() && size == known {
                return Ok((Vec::new(), size));
            }
            Ok((dir.load(&session, from)?, size))
        };
        let (lines, size) = self.files.blocking(read).await?;
        self.size = if lines.is_empty() { size } else { None };
        self.position += lines.len() as u64;
        Ok(lines)
    }
}

impl Watch for FileWatch {
    fn next(&mut self) -> StoreFuture<'_, Vec<Vec<u8>>> {
        Box::pin(async move {
            loop {
                let lines = self.look().await?;
                if !lines.is_empty() {
                    return Ok(lines);
                }
                tokio::time::sleep(FILE_WATCH_PAUSE).await;
            }
        })
    }
}
