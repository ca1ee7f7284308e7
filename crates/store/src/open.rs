//! Reads the file of a session and repairs it where nothing else helps: old versions, a lost header. Not here: what an open
//! session does.

use std::path::Path;

use crate::damage::Damage;
use crate::error::{Result, StoreError};
use crate::forest::Forest;
use crate::header::{self, HeaderLine};
use crate::limits::{LOAD_BLOCK, MAX_FILE};
use crate::load::{Loader, Tail, Verdict, header_remains};
use crate::log::{SessionLog, json_line};
use crate::log_file::LogFile;
use crate::medium::{FileMedium, Medium};
use crate::migrate;
use crate::texts::{self, Texts};

/// Gives up the lock of a session's file, so that this process can open the file anew. The session must not be written to until its
/// lock is [taken again](lock_again).
pub fn unlock(log: &SessionLog) {
    log.file.unlock();
}

/// Takes the lock of a session's file again.
///
/// # Errors
/// [`StoreError::Locked`] if another writer has the file by now, or [`StoreError::Io`]. Entries wait then, and each attempt to write them
/// tries to take the lock.
pub fn lock_again(log: &mut SessionLog) -> Result<()> {
    log.file.lock()
}

/// Returns true if another writer has the file. Who opens a file that is free learns what else is wrong with it.
#[must_use]
pub fn is_locked(path: &Path) -> bool {
    matches!(FileMedium::open(path), Err(StoreError::Locked { .. }))
}

/// Opens a session; an empty file becomes a new one with the working directory `cwd`. `path` is only used as a name.
pub(crate) fn open(mut medium: Box<dyn Medium>, path: &Path, cwd: &str, texts: Texts) -> Result<SessionLog> {
    let failed = |e| StoreError::io("cannot read", path, e);
    let bytes = medium.size().map_err(failed)?;
    if bytes > MAX_FILE {
        return Err(StoreError::TooLarge {
            path: path.to_path_buf(),
            bytes,
        });
    }
    let head = usize::try_from(bytes).unwrap_or(usize::MAX).min(LOAD_BLOCK);
    let head = medium.read_at(0, head).map_err(failed)?;
    if migrate::is_current(&head) {
        return in_blocks(medium, path, bytes, texts);
    }
    let mut content = medium.read_from(0).map_err(failed)?;
    let mut damage = Damage::default();
    if let Some((version, migrated)) = migrate::to_current(&content) {
        let replaced = medium.replace(&migrated);
        damage.backup = replaced.map_err(|e| StoreError::io("cannot migrate", path, e))?;
        damage.migrated_from = Some(version);
        content = migrated;
    }
    as_a_whole(medium, path, cwd, &content, damage)
}

/// The entries that the lines of a file hold, and the damage to them.
#[derive(Default)]
struct Content {
    forest: Forest,
    lines: u64,
    tail: Tail,
    damage: Damage,
}

impl Content {
    /// Notes how the lines ended and decides what the file is.
    fn judge(&mut self, loader: Loader, tail: Tail, path: &Path) -> Verdict {
        (self.damage.torn_bytes, self.damage.unterminated) = (tail.torn, tail.unterminated);
        (self.lines, self.tail) = (loader.lines, tail);
        self.forest.move_leaf(loader.last);
        loader.verdict(&self.forest, tail, Some(path))
    }

    fn session(self, header: HeaderLine, path: &Path, medium: Box<dyn Medium>) -> SessionLog {
        let HeaderLine { header, title, .. } = header;
        let mut log = SessionLog::bare(header, LogFile::read(path, medium, self.tail));
        (log.title, log.forest) = (title, self.forest);
        (log.lines, log.damage) = (self.lines, self.damage);
        log
    }
}

/// Reads a file of the present version without holding it in memory.
fn in_blocks(medium: Box<dyn Medium>, path: &Path, size: u64, texts: Texts) -> Result<SessionLog> {
    let failed = |e| StoreError::io("cannot read", path, e);
    let (mut content, mut loader) = (Content::default(), Loader::default());
    loader.texts = texts;
    let tail = loader
        .feed_all(medium.as_ref(), size, &mut content.forest, &mut content.damage)
        .map_err(failed)?;
    let is_deferred = loader.without_texts > 0;
    let verdict = content.judge(loader, tail, path);
    if is_deferred
        && !(content.damage.is_none()
            && texts::complete_tail(&mut content.forest, medium.as_ref()).map_err(failed)?)
    {
        return in_blocks(medium, path, size, Texts::Read);
    }
    match verdict {
        Verdict::Session(header) => {
            let mut log = content.session(*header, path, medium);
            log.is_deferred = is_deferred;
            Ok(log)
        }
        // There was a header a moment ago.
        _ => Err(StoreError::Changed {
            path: path.to_path_buf(),
        }),
    }
}

/// Reads a file that must be in memory as a whole, since it may have to be written anew.
fn as_a_whole(
    mut medium: Box<dyn Medium>,
    path: &Path,
    cwd: &str,
    bytes: &[u8],
    damage: Damage,
) -> Result<SessionLog> {
    let mut loader = Loader::default();
    let mut content = Content {
        damage,
        ..Content::default()
    };
    let tail = loader.feed(bytes, 0, &mut content.forest, &mut content.damage);
    match content.judge(loader, tail, path) {
        Verdict::Session(header) => Ok(content.session(*header, path, medium)),
        Verdict::HeaderLost(header) => {
            let mut whole = json_line(&*header)?;
            whole.extend_from_slice(bytes.get(header_remains(bytes)..).unwrap_or_default());
            let replaced = medium.replace(&whole);
            let backup = replaced.map_err(|e| StoreError::io("cannot repair", path, e))?;
            let damage = Damage {
                backup: backup.or(content.damage.backup),
                header_rebuilt: true,
                ..Damage::default()
            };
            as_a_whole(medium, path, cwd, &whole, damage)
        }
        Verdict::Empty => {
            let mut log = SessionLog::unwritten(Some(path.to_path_buf()), header::new_header(cwd, None))?;
            log.file.adopt_empty(medium, bytes.len() as u64);
            log.damage = content.damage;
            Ok(log)
        }
        Verdict::NotASession => Err(StoreError::NotASession {
            path: path.to_path_buf(),
        }),
    }
}

/// Checks that the file contained a session when it was opened.
pub(crate) fn check_begun(log: &SessionLog) -> Result<()> {
    // A header that was cut off by the end of its process is a session that began.
    if !log.file.is_committed() && log.damage.torn_bytes == 0 {
        return Err(StoreError::NotASession {
            path: log.file.name(),
        });
    }
    Ok(())
}
