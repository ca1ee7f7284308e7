//! Opening a large session without the texts of its messages: they are read when the session is first used for more than its state.
//! Until then it has every entry with its place in the tree, and of each message only what its state depends on. A damaged file is
//! read as a whole, as if this module did not exist.

use std::path::Path;

use crate::damage::Damage;
use crate::error::{Result, StoreError};
use crate::forest::Forest;
use crate::limits::DEFERRED_FILE;
use crate::load::Loader;
use crate::log::SessionLog;
use crate::medium::{FileMedium, Medium};
use crate::open;
use crate::texts::Texts;

/// Opens a file like [`SessionLog::open`]. The texts of messages are left out if the file is large and undamaged; then
/// [`load_texts`] reads them. Appending and forking need them. With `must_exist`, an empty file is refused.
///
/// # Errors
/// As [`SessionLog::open`] and [`SessionLog::open_existing`].
pub fn open_deferred(path: &Path, cwd: &str, must_exist: bool) -> Result<SessionLog> {
    let medium = FileMedium::open(path)?;
    let size = medium
        .size()
        .map_err(|e| StoreError::io("cannot read", path, e))?;
    let texts = if size < DEFERRED_FILE {
        Texts::Read
    } else {
        Texts::Deferred
    };
    let log = open::open(Box::new(medium), path, cwd, texts)?;
    if must_exist {
        open::check_begun(&log)?;
    }
    Ok(log)
}

/// Returns true while the texts of messages are missing.
#[must_use]
pub fn lacks_texts(log: &SessionLog) -> bool {
    log.is_deferred
}

/// Reads the texts of messages, if they are missing. The leaf stays where it is.
///
/// # Errors
/// [`StoreError::Changed`] when the file has other entries than when it was opened; [`StoreError::Io`].
pub fn load_texts(log: &mut SessionLog) -> Result<()> {
    if !log.is_deferred {
        return Ok(());
    }
    let (mut forest, mut damage) = (Forest::default(), Damage::default());
    let (mut loader, leaf) = (Loader::default(), log.forest.leaf());
    let tail = log.file.load(&mut loader, &mut forest, &mut damage)?;
    let mut ids = forest.entries().iter().zip(log.forest.entries());
    let is_same = damage.is_none()
        && tail.torn == 0
        && loader.lines == log.lines
        && forest.entries().len() == log.forest.entries().len()
        && ids.all(|(new, old)| new.id == old.id);
    if !is_same {
        return Err(StoreError::Changed {
            path: log.file.name(),
        });
    }
    forest.move_leaf(leaf);
    log.forest = forest;
    log.is_deferred = false;
    Ok(())
}
