//! Deletes a session without losing it: its file moves into a directory next to it, from where the user can restore it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};
use crate::medium::FileMedium;
use crate::paths::ensure_private_dir;
use crate::scan;

/// The directory of deleted sessions, in the directory of their files. Listings skip it.
pub const TRASH: &str = ".trash";

/// Moves a session file into [`TRASH`] in its directory, under an unused name; returns its new path. It refuses links,
/// files without a session's header, and sessions that are open here or in another process.
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::NotAFile`], [`StoreError::NotASession`], [`StoreError::Locked`] or
/// [`StoreError::Io`]; the file is where it was then.
pub fn discard(path: &Path) -> Result<PathBuf> {
    let not_a_file = || StoreError::NotAFile {
        path: path.to_path_buf(),
    };
    let found = fs::symlink_metadata(path).map_err(|error| StoreError::io("cannot open", path, error))?;
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(not_a_file());
    };
    if !found.is_file() {
        return Err(not_a_file());
    }
    // Held until the file is moved, so that no process opens it in between.
    let _lock = FileMedium::open(path)?;
    if scan::header_of(path, &mut Vec::new())?.is_none() {
        return Err(StoreError::NotASession {
            path: path.to_path_buf(),
        });
    }
    let trash = dir.join(TRASH);
    ensure_private_dir(&trash)?;
    let name = name.to_string_lossy();
    let free = (0_u32..).find_map(|number| {
        let name = match number {
            0 => name.to_string(),
            number => format!("{number}-{name}"),
        };
        let target = trash.join(name);
        target.symlink_metadata().is_err().then_some(target)
    });
    let target = free.ok_or_else(not_a_file)?;
    fs::rename(path, &target).map_err(|error| StoreError::io("cannot move", path, error))?;
    Ok(target)
}
