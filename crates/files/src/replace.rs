//! Replacing a file in one step: a reader finds the old content or the new one, never a part of either.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Permission bits of a file that is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The bits of the old file; these bits if there is none.
    Keep(u32),
    /// These bits, whichever the old file has.
    Set(u32),
}

/// New content of a file, complete and on disk in the directory of the file. Dropping an unpublished draft removes it.
#[derive(Debug)]
#[must_use = "a draft that is dropped is removed"]
pub struct Draft {
    path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Writes the new content of the file `target`. Its directory must exist. Only one thread of a process may do so for a file at a
    /// time. Blocks.
    ///
    /// # Errors
    /// If the draft cannot be written. Nothing of it is left then.
    pub fn write(target: &Path, content: &[u8], mode: Mode) -> io::Result<Self> {
        let mut path = target.as_os_str().to_owned();
        path.push(format!(".{}.tmp", std::process::id()));
        let path = PathBuf::from(path);
        // A killed process may have had the same number. A link of this name is removed and not followed.
        let _left = fs::remove_file(&path);
        let old = match mode {
            Mode::Keep(_) => fs::symlink_metadata(target).ok().filter(Metadata::is_file),
            Mode::Set(_) => None,
        };
        let bits = match mode {
            // Closed until it has the bits of the old file, which may be stricter than those for a new one.
            Mode::Keep(_) if old.is_some() => 0o600,
            Mode::Keep(bits) | Mode::Set(bits) => bits,
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(bits)
            .open(&path)?;
        // From here on an error removes the file.
        let draft = Self {
            path,
            target: target.to_path_buf(),
        };
        if let Some(old) = old {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        Ok(draft)
    }

    /// Puts the draft in the place of the file. A link of that name is replaced and not followed.
    ///
    /// # Errors
    /// If the file cannot be replaced. It stays as it was then.
    pub fn publish(self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)?;
        // Otherwise a power failure may undo the rename. The old file would still be whole, so a file system that cannot do this is no
        // error.
        if let Some(dir) = self.target.parent()
            && let Ok(dir) = File::open(dir)
        {
            let _not_everywhere = dir.sync_all();
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // A published draft has another name by now.
        let _gone = fs::remove_file(&self.path);
    }
}

/// Replaces the file `target`, or creates it, as [`Draft::write`] and [`Draft::publish`] do.
///
/// # Errors
/// If the file cannot be written. The old one stays then, and nothing of the new one is left.
pub fn replace(target: &Path, content: &[u8], mode: Mode) -> io::Result<()> {
    Draft::write(target, content, mode)?.publish()
}
