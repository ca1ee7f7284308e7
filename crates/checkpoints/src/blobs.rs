//! Contents of files, each stored once under its SHA-256.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::ResolveFlags;
use rustix::fs::{CWD, Mode, OFlags};
#[cfg(target_os = "linux")]
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use crate::error::{CheckpointError, Result};
use crate::limits;
use crate::state::{FileState, StoredPath, hex};

/// Permission bits that are kept and restored.
pub(crate) const MODE: u32 = 0o7777;

/// The contents of one session.
#[derive(Debug)]
pub(crate) struct Blobs {
    dir: PathBuf,
    /// Bytes of all contents.
    bytes: u64,
}

impl Blobs {
    /// The contents in a directory, which need not exist yet.
    pub(crate) fn open(dir: PathBuf) -> Self {
        let found = fs::read_dir(&dir).into_iter().flatten().flatten();
        let sizes = found.filter_map(|entry| entry.metadata().ok().map(|meta| meta.len()));
        let bytes = sizes.sum();
        Self { dir, bytes }
    }

    /// Bytes of all contents.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What a path holds now. The content of a file is stored. Links are not followed. A file that cannot be read is unknown.
    ///
    /// # Errors
    /// When the content cannot be stored.
    pub(crate) fn capture(&mut self, path: &Path) -> Result<FileState> {
        match look(path) {
            Ok(Found::State(state)) => Ok(state),
            Ok(Found::File { bytes, mode }) => Ok(FileState::File {
                content: self.put(&bytes)?,
                size: bytes.len() as u64,
                mode,
            }),
            Err(error) if is_absent(&error) => Ok(FileState::Absent),
            Err(error) => {
                let error = CheckpointError::io("cannot read", path, error);
                Ok(FileState::unknown(error.to_string()))
            }
        }
    }

    /// Stores a content and returns its name.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<String> {
        let name = hex(&Sha256::digest(bytes));
        let path = self.dir.join(&name);
        // After a power failure, a content can have its name and lack bytes.
        let is_whole = |meta: fs::Metadata| meta.len() == bytes.len() as u64;
        if path.symlink_metadata().is_ok_and(is_whole) {
            return Ok(name);
        }
        let failed = |error| CheckpointError::io("cannot store", &path, error);
        make_private_dir(&self.dir).map_err(failed)?;
        // A name is only ever the name of a whole content: after a crash there may be a part in the other file.
        let part = self.dir.join(format!("{name}.part"));
        let written = private_file(&part)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&part, &path));
        if written.is_err() {
            // On a full disk the part would take what others need. The error of the writing is the one to report.
            let _stays = fs::remove_file(&part);
        }
        written.map_err(failed)?;
        self.bytes += bytes.len() as u64;
        Ok(name)
    }

    /// Reads a content.
    ///
    /// # Errors
    /// When it is not there, or is not what its name says.
    pub(crate) fn get(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.dir.join(name);
        let bytes = fs::read(&path).map_err(|error| CheckpointError::io("cannot read", &path, error))?;
        if hex(&Sha256::digest(&bytes)) != name {
            let damaged = io::Error::new(io::ErrorKind::InvalidData, "the content is damaged");
            return Err(CheckpointError::io("cannot read", &path, damaged));
        }
        Ok(bytes)
    }

    /// Removes a content.
    pub(crate) fn remove(&mut self, name: &str) {
        let path = self.dir.join(name);
        let size = path.symlink_metadata().map_or(0, |meta| meta.len());
        // What cannot be removed goes with the next turn that is dropped.
        if fs::remove_file(path).is_ok() {
            self.bytes = self.bytes.saturating_sub(size);
        }
    }

    /// Removes all contents that `keeps` does not name.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !keeps(&name.to_string_lossy()) {
                // What cannot be removed is tried again with the next turn that is dropped.
                let _stays = fs::remove_file(entry.path());
            }
        }
        *self = Self::open(std::mem::take(&mut self.dir));
    }
}

/// What a look at a path finds.
enum Found {
    /// A regular file: its content and its permission bits.
    File { bytes: Vec<u8>, mode: u32 },
    /// Anything else.
    State(FileState),
}

fn look(path: &Path) -> io::Result<Found> {
    let meta = fs::symlink_metadata(path)?;
    let mode = meta.permissions().mode() & MODE;
    if meta.is_symlink() {
        let target = StoredPath(fs::read_link(path)?);
        return Ok(Found::State(FileState::Link { target }));
    }
    if meta.is_dir() {
        return Ok(Found::State(FileState::Directory { mode }));
    }
    if !meta.is_file() {
        return Ok(Found::State(FileState::unknown("not a regular file")));
    }
    let file = open_file(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(Found::State(FileState::unknown("not a regular file")));
    }
    let mut bytes = Vec::new();
    file.take(limits::FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limits::FILE_BYTES {
        let reason = format!("larger than {} bytes", limits::FILE_BYTES);
        return Ok(Found::State(FileState::unknown(reason)));
    }
    let mode = meta.permissions().mode() & MODE;
    Ok(Found::File { bytes, mode })
}

/// Opens a file for reading. Between the look at it and this it may have become a link or a pipe, and a directory above it a link: what
/// is stored here can be restored to a place that others can read.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A kernel or a container without this call.
        Err(Errno::NOSYS | Errno::PERM) => {}
        opened => return Ok(File::from(opened?)),
    }
    Ok(File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
}

/// Returns true if the error says that there is nothing at the path.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Makes a directory that only its owner can read: contents may be secret.
pub(crate) fn make_private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Makes an empty file that only its owner can read.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}
