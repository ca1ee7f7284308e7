//! Session files seen as a store of sessions ([`crate::SessionStore`]): lines and positions instead of entries and leaves. Used to
//! copy sessions between machines. A session that runs uses [`crate::SessionLog`], which pays for nothing here.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};
use crate::limits::{LOADED_AT_ONCE, MAX_FILE, MAX_LINE, PROBE_LINES};
use crate::medium::{FileMedium, Medium as _, open_to_read};
use crate::session_store::{SessionId, check_lines};
use crate::{list, parse, paths, scan};

/// The session files below a sessions root: one directory per working directory, as [`paths::sessions_root`] has them, or all in
/// the directory itself, as `--session-dir` has them.
#[derive(Debug, Clone)]
pub struct SessionDirectory {
    root: PathBuf,
    is_flat: bool,
}

/// The lines of an open file that are complete.
struct Lines {
    /// How many.
    count: u64,
    /// Bytes up to the end of the last one, its line feed included.
    end: u64,
    /// True if the last one lacks its line feed.
    unterminated: bool,
}

impl SessionDirectory {
    /// Session files below `root`. With `is_flat` they lie in it directly. It need not exist yet.
    #[must_use]
    pub fn new(root: PathBuf, is_flat: bool) -> Self {
        Self { root, is_flat }
    }

    /// Appends lines as [`crate::SessionStore::append`] describes. The file is locked meanwhile and synced before this returns.
    /// At position 0 it is made, named by its header.
    ///
    /// # Errors
    /// [`StoreError::Stale`]; [`StoreError::Locked`] while a process has the session open; [`StoreError::NotASession`] when
    /// the first line is not the header of this session; otherwise as for [`FileMedium`].
    pub fn append(&self, session: &SessionId, lines: &[Vec<u8>], expected: u64) -> Result<u64> {
        check_lines(lines)?;
        let stale = |actual| StoreError::Stale {
            session: session.to_string(),
            expected,
            actual,
        };
        let (mut medium, path) = match self.find(session)? {
            Some(path) => (FileMedium::open(&path)?, path),
            None if expected > 0 => return Err(stale(0)),
            None => {
                let path = self.new_path(session, lines)?;
                match FileMedium::create(&path) {
                    Ok(medium) => (medium, path),
                    // Another writer was faster, which is what its lock or its lines say.
                    Err(StoreError::AlreadyExists { .. }) => (FileMedium::open(&path)?, path),
                    Err(other) => return Err(other),
                }
            }
        };
        let failed = |e| StoreError::io("cannot write", &path, e);
        // The lock is held from here on, so the count stays true but for programs that know no locks.
        let there = whole_lines(&path)?;
        if there.count != expected {
            return Err(stale(there.count));
        }
        let mut bytes = Vec::new();
        if there.unterminated {
            bytes.push(b'\n');
        }
        for line in lines {
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
        }
        let size = medium.size().map_err(failed)?;
        if size + bytes.len() as u64 > MAX_FILE {
            return Err(StoreError::TooLarge { path, bytes: size });
        }
        // The rest of a line whose writer died. No position counts it.
        if size > there.end {
            medium.truncate(there.end).map_err(failed)?;
        }
        if let Err(error) = write_all(&mut medium, &bytes).and_then(|()| medium.sync()) {
            // The first error counts. A remainder that stays is torn and counts as no line.
            drop(medium.truncate(there.end));
            return Err(failed(error));
        }
        Ok(expected + lines.len() as u64)
    }

    /// Returns lines as [`crate::SessionStore::load`] describes, without a lock.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when `from` is beyond the end; [`StoreError::Io`].
    pub fn load(&self, session: &SessionId, from: u64) -> Result<Vec<Vec<u8>>> {
        let Some(path) = self.find(session)? else {
            return beyond(session, from, 0);
        };
        let (mut found, mut count, mut bytes) = (Vec::new(), 0, 0);
        each_line(&path, |line, _| {
            count += 1;
            if count > from {
                bytes += line.len();
                found.push(line.to_vec());
            }
            bytes < LOADED_AT_ONCE
        })?;
        if found.is_empty() {
            return beyond(session, from, count);
        }
        Ok(found)
    }

    /// The ids of all sessions, sorted. Files that are no sessions are left out.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the root cannot be read.
    pub fn list(&self) -> Result<Vec<SessionId>> {
        let mut ids = BTreeSet::new();
        let mut buffer = Vec::new();
        for dir in self.directories()? {
            for path in list::session_files(&dir)? {
                let head = scan::header_of(&path, &mut buffer).ok().flatten();
                ids.extend(head.and_then(|head| SessionId::new(head.header.id).ok()));
            }
        }
        Ok(ids.into_iter().collect())
    }

    /// Moves a session's file to the trash next to it, see [`crate::discard`]; false if there is none.
    ///
    /// # Errors
    /// As [`crate::discard`].
    pub fn delete(&self, session: &SessionId) -> Result<bool> {
        match self.find(session)? {
            Some(path) => crate::discard(&path).map(|_| true),
            None => Ok(false),
        }
    }

    /// The file of a session. A file that is named after its session is found without reading the others.
    ///
    /// # Errors
    /// [`StoreError::Io`] when a directory cannot be read.
    pub fn find(&self, session: &SessionId) -> Result<Option<PathBuf>> {
        let mut buffer = Vec::new();
        let mut is_it = |path: &Path| {
            let head = scan::header_of(path, &mut buffer).ok().flatten();
            head.is_some_and(|head| head.header.id == session.as_str())
        };
        let mut others = Vec::new();
        for dir in self.directories()? {
            for path in list::session_files(&dir)? {
                if paths::id_of_file_name(&path) != Some(session.as_str()) {
                    others.push(path);
                } else if is_it(&path) {
                    return Ok(Some(path));
                }
            }
        }
        // Names of our own for this id were looked at. Renamed files and files of other agents remain.
        Ok(others.into_iter().find(|path| is_it(path)))
    }

    fn directories(&self) -> Result<Vec<PathBuf>> {
        if self.is_flat {
            return Ok(vec![self.root.clone()]);
        }
        let is_hidden = |path: &Path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('.'))
        };
        let mut dirs: Vec<PathBuf> = list::entries(&self.root)?
            .into_iter()
            .filter(|path| !is_hidden(path) && path.is_dir())
            .collect();
        dirs.sort();
        Ok(dirs)
    }

    /// Where a new session goes: the place and the name that its header gives it.
    fn new_path(&self, session: &SessionId, lines: &[Vec<u8>]) -> Result<PathBuf> {
        // Other agents write a line or two before the header.
        let header = lines
            .iter()
            .take(PROBE_LINES)
            .find_map(|line| match parse::line(line) {
                parse::Line::Header(found) => Some(found.header),
                _ => None,
            });
        let Some(header) = header.filter(|header| header.id == session.as_str()) else {
            return Err(StoreError::NotASession {
                path: self.root.join(session.encoded()),
            });
        };
        let dir = if self.is_flat {
            self.root.clone()
        } else {
            self.root.join(paths::encode_cwd(&header.cwd))
        };
        Ok(dir.join(paths::file_name(&header.timestamp, &header.id)))
    }
}

fn beyond(session: &SessionId, from: u64, position: u64) -> Result<Vec<Vec<u8>>> {
    if from == position {
        return Ok(Vec::new());
    }
    Err(StoreError::Stale {
        session: session.to_string(),
        expected: from,
        actual: position,
    })
}

/// Calls `each` with every complete line and whether it has its line feed, until it returns false. A last line without line feed
/// counts if it is a whole JSON object: no beginning of an object is one, so nothing can follow it but its line feed.
fn each_line(path: &Path, mut each: impl FnMut(&[u8], bool) -> bool) -> Result<()> {
    let failed = |e| StoreError::io("cannot read", path, e);
    let (file, _) = open_to_read(path)?;
    let mut reader = BufReader::with_capacity(crate::limits::SCAN_CHUNK, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = MAX_LINE as u64 + 1;
        let mut limited = std::io::Read::take(&mut reader, most);
        let read = limited.read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            return Ok(());
        }
        let is_terminated = line.last() == Some(&b'\n');
        if is_terminated {
            line.pop();
        } else if read as u64 == most {
            return Err(StoreError::EntryTooLarge { bytes: read });
        } else if serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&line).is_err() {
            return Ok(());
        }
        if !each(&line, is_terminated) {
            return Ok(());
        }
    }
}

fn whole_lines(path: &Path) -> Result<Lines> {
    let mut lines = Lines {
        count: 0,
        end: 0,
        unterminated: false,
    };
    each_line(path, |line, is_terminated| {
        lines.count += 1;
        lines.end += line.len() as u64 + u64::from(is_terminated);
        lines.unterminated = !is_terminated;
        true
    })?;
    Ok(lines)
}

fn write_all(medium: &mut FileMedium, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match medium.append(bytes) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(taken) => bytes = bytes.get(taken..).unwrap_or_default(),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
