//! One change at a time per file: edit and write wait for each other, per real path (pi-core.md 5.9).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

type Turn = tokio::sync::Mutex<()>;

/// Files that a call changes, and the calls that wait for them.
#[derive(Debug, Default)]
pub(crate) struct FileQueue {
    files: Mutex<HashMap<PathBuf, Weak<Turn>>>,
}

impl FileQueue {
    /// Waits for the turn on a file; it lasts until the guard is dropped.
    pub(crate) async fn turn(&self, path: &Path) -> OwnedMutexGuard<()> {
        let key = real_path(path);
        let turn = {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            // Entries without a call are removed, so that the map does not grow with the session.
            files.retain(|_, turn| turn.strong_count() > 0);
            let turn = files.get(&key).and_then(Weak::upgrade).unwrap_or_default();
            files.insert(key, Arc::downgrade(&turn));
            turn
        };
        turn.lock_owned().await
    }
}

/// The path with links resolved as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent
            .canonicalize()
            .unwrap_or_else(|_| parent.to_path_buf())
            .join(name),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn file_queue_serialises_same_file_only() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b, link) = (
            dir.path().join("a"),
            dir.path().join("b"),
            dir.path().join("link"),
        );
        std::fs::write(&a, "").unwrap();
        std::os::unix::fs::symlink(&a, &link).unwrap();
        let queue = FileQueue::default();
        let first = queue.turn(&a).await;
        let _other = queue.turn(&b).await;
        let again = queue.turn(&link);
        tokio::pin!(again);
        assert!(futures_pending(again.as_mut()).await);
        drop(first);
        let held = again.await;
        assert_eq!(queue.files.lock().unwrap().len(), 2);
        drop(held);
    }

    async fn futures_pending<F: Future + Unpin>(future: F) -> bool {
        tokio::select! { biased; _ = future => false, () = std::future::ready(()) => true }
    }
}
