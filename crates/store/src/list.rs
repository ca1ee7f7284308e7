//! Finding sessions on disk (pi-core.md 2.8, 7.4). One file is read by `scan`; there is no index and no cache yet: every call
//! looks at the files as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Result, StoreError};
use crate::limits::SCAN_THREADS;
use crate::scan::{self, SessionSummary};

/// How much a listing reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listing {
    /// Everything but the texts.
    #[default]
    Plain,
    /// The text of all messages too, to search in.
    WithTexts,
}

/// A session that was found by its header alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSession {
    /// The session file.
    pub path: PathBuf,
    /// Session id.
    pub id: String,
    /// Working directory of the session.
    pub cwd: String,
    /// Unix time in milliseconds of the file's last change.
    pub changed: i64,
}

/// The sessions of one directory, newest first. A missing directory has none; files that are no sessions, or cannot be read,
/// are left out.
///
/// # Errors
/// When the directory cannot be read.
pub fn list(dir: &Path, listing: Listing) -> Result<Vec<SessionSummary>> {
    Ok(summaries(&session_files(dir)?, listing))
}

/// The sessions of all directories below a sessions root ([`crate::paths::sessions_root`]), newest first.
///
/// # Errors
/// When the root cannot be read.
pub fn list_all(root: &Path, listing: Listing) -> Result<Vec<SessionSummary>> {
    let mut files = Vec::new();
    for dir in entries(root)?.into_iter().filter(|path| path.is_dir()) {
        // One directory that cannot be read must not hide all others.
        files.extend(session_files(&dir).unwrap_or_default());
    }
    Ok(summaries(&files, listing))
}

/// The session file that was changed last. `cwd` leaves out sessions of other working directories, for directories that
/// hold those of all.
///
/// # Errors
/// When the directory cannot be read.
pub fn most_recent(dir: &Path, cwd: Option<&str>) -> Result<Option<PathBuf>> {
    let found = headers(dir)?
        .into_iter()
        .find(|s| cwd.is_none_or(|cwd| s.cwd.is_empty() || s.cwd == cwd));
    Ok(found.map(|session| session.path))
}

/// The sessions of a directory whose id begins with `prefix`, last changed first.
///
/// # Errors
/// When the directory cannot be read.
pub fn find_by_id_prefix(dir: &Path, prefix: &str) -> Result<Vec<FoundSession>> {
    Ok(headers(dir)?
        .into_iter()
        .filter(|session| session.id.starts_with(prefix))
        .collect())
}

fn headers(dir: &Path) -> Result<Vec<FoundSession>> {
    let files = session_files(dir)?;
    let mut found = in_parallel(&files, |path| {
        let (head, changed) = scan::header_of(path).ok()??;
        Some(FoundSession {
            path: path.to_path_buf(),
            id: head.header.id,
            cwd: head.header.cwd,
            changed,
        })
    });
    // Names begin with the time of creation, so they decide between files changed in the same millisecond.
    found.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| b.path.cmp(&a.path)));
    Ok(found)
}

fn summaries(files: &[PathBuf], listing: Listing) -> Vec<SessionSummary> {
    let mut found = in_parallel(files, |path| {
        scan::summarize(path, listing == Listing::WithTexts).ok()?
    });
    found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.path.cmp(&a.path)));
    found
}

/// Everything in a directory; nothing when there is no such directory.
fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| StoreError::io("cannot read directory", dir, e);
    match fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(failed(e)),
        Ok(entries) => entries
            .map(|entry| entry.map(|e| e.path()).map_err(failed))
            .collect(),
    }
}

fn session_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = entries(dir)?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    Ok(files)
}

/// Runs `work` on every file, a few at a time; the results come in no order.
fn in_parallel<T: Send>(files: &[PathBuf], work: impl Fn(&Path) -> Option<T> + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let run = || {
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(result) = work(path) {
                results
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .push(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..SCAN_THREADS.min(files.len()) {
            scope.spawn(run);
        }
        run();
    });
    results
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
