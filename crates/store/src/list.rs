//! Finding sessions on disk (pi-core.md 2.8, 7.4). One file is read by `scan`; what a listing remembers is in `cache`.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cache::{Cache, Row};
use crate::error::{Result, StoreError};
use crate::limits::{EMPTY_SESSION, SCAN_THREADS};
use crate::medium::open_to_read;
use crate::scan::{self, SessionSummary};

/// How much a listing reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listing<'a> {
    /// Everything but the texts.
    #[default]
    Plain,
    /// Keeps the results of earlier listings in this file, for example `<agent dir>/cache/sessions`. The file and its
    /// directory are created when missing (0600, 0700). The file may be deleted, damaged, read-only or shared with
    /// other processes: the result is the same, only slower.
    Cached(&'a Path),
    /// The text of all messages too, to search in. Reads and parses everything.
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
pub fn list(dir: &Path, listing: Listing<'_>) -> Result<Vec<SessionSummary>> {
    let files = session_files(dir)?;
    Ok(summaries(&files, listing, |path| path.parent() == Some(dir)))
}

/// The sessions of all directories below a sessions root ([`crate::paths::sessions_root`]), newest first.
///
/// # Errors
/// When the root cannot be read.
pub fn list_all(root: &Path, listing: Listing<'_>) -> Result<Vec<SessionSummary>> {
    let mut files = Vec::new();
    let is_hidden = |path: &Path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'))
    };
    let dirs = entries(root)?.into_iter();
    for dir in dirs.filter(|path| !is_hidden(path) && path.is_dir()) {
        // One directory that cannot be read must not hide all others.
        files.extend(session_files(&dir).unwrap_or_default());
    }
    Ok(summaries(&files, listing, |path| path.starts_with(root)))
}

/// The session file that was changed last, or one without messages if there is no other. `cwd` leaves out sessions of other working directories, for directories that
/// hold those of all. Reads no more headers than it must.
///
/// # Errors
/// When the directory cannot be read.
pub fn most_recent(dir: &Path, cwd: Option<&str>) -> Result<Option<PathBuf>> {
    let mut files = in_parallel(&session_files(dir)?, |path, _| {
        Some((changed(path)?, path.to_path_buf()))
    });
    files.sort_unstable_by(|a, b| b.cmp(a));
    let mut buffer = Vec::new();
    let mut fits = |path: &Path| {
        scan::header_of(path, &mut buffer).is_ok_and(|head| {
            head.is_some_and(|head| {
                cwd.is_none_or(|cwd| head.header.cwd.is_empty() || head.header.cwd == cwd)
            })
        })
    };
    let mut empty = None;
    for (_, path) in files {
        if !fits(&path) {
            continue;
        }
        if !is_empty(&path) {
            return Ok(Some(path));
        }
        empty.get_or_insert(path);
    }
    Ok(empty)
}

/// Returns true for a session without messages, which an editor may have left behind. Reads short files only.
fn is_empty(path: &Path) -> bool {
    let is_short = fs::metadata(path).is_ok_and(|found| found.len() <= EMPTY_SESSION);
    is_short
        && scan::summarize(path, false).is_ok_and(|found| found.is_some_and(|found| found.message_count == 0))
}

/// The working directory that a session file names; none when it does not, or is no session.
#[must_use]
pub fn working_directory(path: &Path) -> Option<String> {
    let header = scan::header_of(path, &mut Vec::new()).ok()??.header;
    Some(header.cwd).filter(|cwd| !cwd.is_empty())
}

/// Checks that the file contains a session. Changes nothing and needs no lock.
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::NotAFile`], [`StoreError::NotASession`] or [`StoreError::Io`].
pub fn check_session(path: &Path) -> Result<()> {
    let header = scan::header_of(path, &mut Vec::new())?;
    header.map(drop).ok_or_else(|| StoreError::NotASession {
        path: path.to_path_buf(),
    })
}

/// The sessions of a directory whose id begins with `prefix`, last changed first.
///
/// # Errors
/// When the directory cannot be read.
pub fn find_by_id_prefix(dir: &Path, prefix: &str) -> Result<Vec<FoundSession>> {
    let mut found = in_parallel(&session_files(dir)?, |path, buffer| {
        let header = scan::header_of(path, buffer).ok()??.header;
        if !header.id.starts_with(prefix) {
            return None;
        }
        Some(FoundSession {
            path: path.to_path_buf(),
            id: header.id,
            cwd: header.cwd,
            changed: changed(path)?,
        })
    });
    // Names begin with the time of creation, so they decide between files changed in the same millisecond.
    found.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| b.path.cmp(&a.path)));
    Ok(found)
}

/// Unix time in milliseconds of a file's last change; none if it is no regular file.
fn changed(path: &Path) -> Option<i64> {
    let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(scan::changed(&found))
}

/// `inside` says which paths of the cache would have been among the files, were they still there.
fn summaries(files: &[PathBuf], listing: Listing<'_>, inside: impl Fn(&Path) -> bool) -> Vec<SessionSummary> {
    let mut found = match listing {
        Listing::Plain | Listing::WithTexts => in_parallel(files, |path, buffer| {
            let (file, found) = open_to_read(path).ok()?;
            let scanned = scan::scan(&file, path, None, listing == Listing::WithTexts, buffer).ok()??;
            Some(scanned.finish(scan::changed(&found)))
        }),
        Listing::Cached(cache) => remembered(files, cache, inside),
    };
    found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| b.path.cmp(&a.path)));
    found
}

fn remembered(files: &[PathBuf], path: &Path, inside: impl Fn(&Path) -> bool) -> Vec<SessionSummary> {
    let cache = Cache::load(path);
    let found = in_parallel(files, |path, buffer| with_cache(path, cache.row(path), buffer));
    let (found, new): (Vec<SessionSummary>, Vec<Option<Row>>) = found.into_iter().unzip();
    let there: HashSet<&Path> = files.iter().map(PathBuf::as_path).collect();
    cache.update(path, new.into_iter().flatten().collect(), |path| {
        inside(path) && !there.contains(path)
    });
    found
}

/// Returns the summary of one session, and its cache row if that is new.
fn with_cache(path: &Path, row: Option<&Row>, buffer: &mut Vec<u8>) -> Option<(SessionSummary, Option<Row>)> {
    if let Some(row) = row
        && let Ok(found) = fs::metadata(path)
        && let Some(known) = row.unchanged(&found)
    {
        return Some((known.finish(scan::changed(&found)), None));
    }
    let (file, found) = open_to_read(path).ok()?;
    let known = row.and_then(|row| row.grown(&file, &found));
    let scanned = scan::scan(&file, path, known, false, buffer).ok()??;
    let row = Row::new(path, &file, &found, &scanned);
    Some((scanned.finish(scan::changed(&found)), row))
}

/// Everything in a directory; nothing when there is no such directory.
pub(crate) fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| StoreError::io("cannot read directory", dir, e);
    match fs::read_dir(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(failed(e)),
        Ok(entries) => entries
            .map(|entry| entry.map(|e| e.path()).map_err(failed))
            .collect(),
    }
}

/// The files of a directory that may be sessions, by their names; none when there is no such directory.
pub(crate) fn session_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = entries(dir)?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    Ok(files)
}

/// Runs `work` on every file, a few at a time, each with a buffer to read into; the results come in no order.
fn in_parallel<T: Send>(files: &[PathBuf], work: impl Fn(&Path, &mut Vec<u8>) -> Option<T> + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(files.len()));
    let run = || {
        let (mut buffer, mut mine) = (Vec::new(), Vec::new());
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            mine.extend(work(path, &mut buffer));
        }
        results
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .append(&mut mine);
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
