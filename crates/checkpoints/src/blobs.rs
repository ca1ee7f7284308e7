//! Contents of files, each stored once under its SHA-256.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
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

    /// What a path holds now. The content of a file is stored. Links are not followed.
    pub(crate) fn capture(&mut self, path: &Path) -> FileState {
        match self.look(path) {
            Ok(state) => state,
            Err(CheckpointError::Io { source, .. }) if is_absent(&source) => FileState::Absent,
            Err(error) => FileState::unknown(error.to_string()),
        }
    }

    fn look(&mut self, path: &Path) -> Result<FileState> {
        let failed = |error| CheckpointError::io("cannot read", path, error);
        let meta = fs::symlink_metadata(path).map_err(failed)?;
        let mode = meta.permissions().mode() & MODE;
        if meta.is_symlink() {
            let target = fs::read_link(path).map_err(failed)?;
            return Ok(FileState::Link {
                target: StoredPath(target),
            });
        }
        if meta.is_dir() {
            return Ok(FileState::Directory { mode });
        }
        if !meta.is_file() {
            return Ok(FileState::unknown("not a regular file"));
        }
        // Between the look and the opening the file may have become a link or a pipe.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Ok(FileState::unknown("not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(limits::FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() as u64 > limits::FILE_BYTES {
            let reason = format!("larger than {} bytes", limits::FILE_BYTES);
            return Ok(FileState::unknown(reason));
        }
        Ok(FileState::File {
            content: self.put(&bytes)?,
            size: bytes.len() as u64,
            mode: meta.permissions().mode() & MODE,
        })
    }

    /// Stores a content and returns its name.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<String> {
        let name = hex(&Sha256::digest(bytes));
        let path = self.dir.join(&name);
        if path.symlink_metadata().is_ok() {
            return Ok(name);
        }
        let failed = |error| CheckpointError::io("cannot store", &path, error);
        make_private_dir(&self.dir).map_err(failed)?;
        // A name is only ever the name of a whole content: after a crash there may be a part in the other file.
        let part = self.dir.join(format!("{name}.part"));
        let written = private_file(&part).and_then(|mut file| file.write_all(bytes));
        written.and_then(|()| fs::rename(&part, &path)).map_err(failed)?;
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
