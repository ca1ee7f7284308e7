//! What a session log is written on: a locked file, or something else that can fail or forget on purpose in tests. Opening
//! checks live here; what the bytes mean lives in `load`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};
use crate::limits::{BACKUP_NAMES, LOCK_TRIES};
use crate::lock;

/// Whether the file behind a medium is the file at its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Yes.
    Same,
    /// Nothing is at the path any more.
    Missing,
    /// Something else is at the path.
    Replaced,
}

/// Something that bytes can be appended to. [`FileMedium`] is the real one.
pub trait Medium: Send + std::fmt::Debug {
    /// Present size in bytes; more than was appended here when others write too.
    fn size(&self) -> io::Result<u64>;
    /// Compares the open file with the file at the path.
    fn presence(&self) -> io::Result<Presence>;
    /// All bytes from `offset` to the end.
    fn read_from(&self, offset: u64) -> io::Result<Vec<u8>>;
    /// Exactly `len` bytes from `offset`.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;
    /// Appends at the end, wherever that is now, in one system call; gives the number of bytes taken.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts everything after `len` bytes.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
    /// Returns when everything would survive a power failure.
    fn sync(&mut self) -> io::Result<()>;
    /// Replaces the whole content at once, all or nothing; gives where a copy of the old content is.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<Option<PathBuf>>;
    /// Writes the content to the path again after another program removed the file.
    fn restore(&mut self) -> io::Result<()>;
    /// Gives up the lock, so that the file can be opened anew. Only a file has one.
    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }
    /// Takes the lock again.
    ///
    /// # Errors
    /// When another writer has the file by now: nothing is written to it until that writer has left.
    fn lock(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A session file that is open and locked. The lock is `flock` on the file itself: no second file is left behind, it ends with
/// the process however that ends, and programs that know nothing of it can read and append as before (on Unix, where such locks
/// bind only those who ask for them).
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    path: PathBuf,
    read_only: bool,
    /// Another writer took the lock while it was given up.
    lost_lock: bool,
    /// Directories whose entries for the file, or for a directory above it, may not be on the disk yet.
    unsynced_dirs: Vec<PathBuf>,
}

impl FileMedium {
    /// Opens and locks an existing regular file; a link to one is followed, anything else refused without opening it. A
    /// file that may not be written is opened for reading; appending to it then fails.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::NotAFile`], [`StoreError::Locked`] or [`StoreError::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |e| StoreError::io("cannot open", path, e);
        let path = fs::canonicalize(path).map_err(failed)?;
        for _ in 0..LOCK_TRIES {
            let (file, read_only) = open_regular(&path)?;
            lock::try_lock(&file, &path)?;
            // Between opening and locking the former owner may have put a new file in its place.
            if presence(&file, &path).map_err(failed)? == Presence::Same {
                return Ok(Self {
                    file,
                    unsynced_dirs: dir_of(&path).map(Path::to_path_buf).into_iter().collect(),
                    path,
                    read_only,
                    lost_lock: false,
                });
            }
        }
        Err(StoreError::Changed { path })
    }

    /// Makes and locks a new file, readable by the owner only (0600), in a directory that is made when missing (0700).
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`] when anything at all is at the path, a dangling link included.
    pub fn create(path: &Path) -> Result<Self> {
        let unsynced_dirs = make_dir_of(path)?;
        let file = create_new(path).map_err(|e| StoreError::io("cannot create", path, e))?;
        if let Err(error) = lock::try_lock(&file, path) {
            // An empty file that stays would refuse the next attempt. A file that another process has locked belongs to it.
            if !matches!(error, StoreError::Locked { .. }) {
                drop(fs::remove_file(path));
            }
            return Err(error);
        }
        Ok(Self {
            file,
            path: path.to_path_buf(),
            read_only: false,
            lost_lock: false,
            unsynced_dirs,
        })
    }

    /// A new locked file next to the old one, put at its path when it is complete and on disk.
    fn publish(&mut self, bytes: &[u8], backup: Option<&Path>) -> io::Result<()> {
        let name = self
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let temporary = self.path.with_file_name(format!(".{name}.new"));
        // A remainder of a killed process. No other process uses it, since the session file is locked.
        if fs::symlink_metadata(&temporary).is_ok() {
            fs::remove_file(&temporary)?;
        }
        let mut file = create_new(&temporary)?;
        let written = (|| {
            file.write_all(bytes)?;
            file.sync_all()?;
            lock::try_lock(&file, &temporary).map_err(io::Error::other)?;
            if let Some(backup) = backup {
                fs::hard_link(&self.path, backup).or_else(|_| copy_new(&self.path, backup))?;
            }
            fs::rename(&temporary, &self.path)
        })();
        if let Err(error) = written {
            // Report the first error; the next attempt removes the remainder.
            drop(fs::remove_file(&temporary));
            return Err(error);
        }
        self.file = file;
        dir_of(&self.path).map_or(Ok(()), sync_dir)
    }

    /// Takes a lost lock again. Lines that the other writer appended are read back like those of any program.
    fn writable(&mut self) -> io::Result<()> {
        if self.read_only {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        if !self.lost_lock {
            return Ok(());
        }
        self.lock().map_err(io::Error::other)?;
        // The other writer may have put a new file in its place.
        if self.presence()? != Presence::Same {
            self.lost_lock = true;
            self.file.unlock()?;
            let path = self.path.clone();
            return Err(io::Error::other(StoreError::Changed { path }));
        }
        Ok(())
    }

    fn backup_name(&self) -> io::Result<PathBuf> {
        let name = self
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        (1..=BACKUP_NAMES)
            .map(|n| {
                if n == 1 {
                    format!("{name}.bak")
                } else {
                    format!("{name}.bak{n}")
                }
            })
            .map(|name| self.path.with_file_name(name))
            .find(|path| fs::symlink_metadata(path).is_err())
            .ok_or_else(|| io::Error::new(io::ErrorKind::AlreadyExists, "too many backups"))
    }
}

/// A process that another thread is starting holds a copy of the descriptor until it runs its program. Closing the file alone
/// would leave the lock to that copy.
impl Drop for FileMedium {
    fn drop(&mut self) {
        // If it stays, opening the file fails with `StoreError::Locked`.
        drop(self.unlock());
    }
}

impl Medium for FileMedium {
    fn size(&self) -> io::Result<u64> {
        self.file.metadata().map(|m| m.len())
    }

    fn presence(&self) -> io::Result<Presence> {
        presence(&self.file, &self.path)
    }

    fn read_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        let expected = self.size()?.saturating_sub(offset);
        let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default() + 1);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writable()?;
        self.file.write(bytes)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.writable()?;
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        for dir in &self.unsynced_dirs {
            sync_dir(dir)?;
        }
        self.unsynced_dirs.clear();
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<Option<PathBuf>> {
        self.writable()?;
        let backup = self.backup_name()?;
        self.publish(bytes, Some(&backup))?;
        Ok(Some(backup))
    }

    fn restore(&mut self) -> io::Result<()> {
        let bytes = self.read_from(0)?;
        // The directory may have gone with the file.
        let unsynced_dirs = make_dir_of(&self.path).map_err(io::Error::other)?;
        let mut file = create_new(&self.path)?;
        // Locked before it is filled: another process must not take a part of the session for all of it.
        let locked = lock::try_lock(&file, &self.path);
        // A file that another process has locked belongs to it.
        let is_ours = !matches!(locked, Err(StoreError::Locked { .. }));
        let filled = locked.map_err(io::Error::other);
        if let Err(error) = filled.and_then(|()| file.write_all(&bytes)) {
            if is_ours {
                drop(fs::remove_file(&self.path));
            }
            return Err(error);
        }
        self.file = file;
        self.lost_lock = false;
        self.unsynced_dirs = unsynced_dirs;
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn lock(&mut self) -> Result<()> {
        let locked = lock::try_lock(&self.file, &self.path);
        self.lost_lock = locked.is_err();
        locked
    }
}

/// Opens a regular file and nothing else. It checks the type before opening (opening a device can have effects), opens
/// without blocking (a FIFO may have replaced the file) and checks the handle again. The second value is true for a
/// read-only file.
pub(crate) fn open_regular(path: &Path) -> Result<(File, bool)> {
    let failed = |e| StoreError::io("cannot open", path, e);
    let not_a_file = || StoreError::NotAFile {
        path: path.to_path_buf(),
    };
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(not_a_file());
    }
    let options = read_options();
    let refused = |e: &io::Error| {
        matches!(
            e.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        )
    };
    let (file, read_only) = match options.clone().append(true).open(path) {
        Err(e) if refused(&e) => (options.open(path).map_err(failed)?, true),
        other => (other.map_err(failed)?, false),
    };
    if file.metadata().map_err(failed)?.is_file() {
        Ok((file, read_only))
    } else {
        Err(not_a_file())
    }
}

/// Opens a regular file for reading only, as carefully as [`open_regular`], and returns its metadata.
pub(crate) fn open_to_read(path: &Path) -> Result<(File, fs::Metadata)> {
    let failed = |e| StoreError::io("cannot open", path, e);
    let not_a_file = || StoreError::NotAFile {
        path: path.to_path_buf(),
    };
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(not_a_file());
    }
    let file = read_options().open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_file() {
        Ok((file, found))
    } else {
        Err(not_a_file())
    }
}

/// For reading; never waits for the other end of a FIFO.
fn read_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default(),
    );
    options
}

/// Makes a file that was not there, readable by the owner only (0600).
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn copy_new(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = create_new(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

#[cfg(unix)]
fn presence(file: &File, path: &Path) -> io::Result<Presence> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => Ok(Presence::Same),
        Ok(_) => Ok(Presence::Replaced),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Presence::Missing),
        Err(e) => Err(e),
    }
}

#[cfg(not(unix))]
fn presence(_file: &File, path: &Path) -> io::Result<Presence> {
    Ok(if path.exists() {
        Presence::Same
    } else {
        Presence::Missing
    })
}

fn dir_of(path: &Path) -> Option<&Path> {
    path.parent().filter(|dir| !dir.as_os_str().is_empty())
}

/// Creates the directory of a file and its missing parents. Returns the directories that got a new entry, or are about to.
fn make_dir_of(path: &Path) -> Result<Vec<PathBuf>> {
    let Some(dir) = dir_of(path) else {
        return Ok(Vec::new());
    };
    let mut changed = vec![dir.to_path_buf()];
    let missing = dir.ancestors().take_while(|dir| !dir.exists());
    changed.extend(missing.filter_map(dir_of).map(Path::to_path_buf));
    crate::paths::ensure_private_dir(dir)?;
    Ok(changed)
}

/// Makes the entries of a directory durable.
fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_file_is_unlocked_despite_copies_of_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let medium = FileMedium::create(&path).unwrap();
        // A child process has one until it runs its program.
        let _copy = medium.file.try_clone().unwrap();
        assert!(matches!(FileMedium::open(&path), Err(StoreError::Locked { .. })));
        drop(medium);
        FileMedium::open(&path).unwrap();
    }
}
