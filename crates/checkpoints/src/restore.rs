//! Puts a path into a state. Each directory on the way is opened relative to the one before and no link is followed, so nothing
//! is written elsewhere. A file or link is made under another name and renamed, so the path never holds a part.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

use crate::blobs::Blobs;
use crate::error::{CheckpointError, Result};
use crate::state::FileState;

/// Names that are tried for the new file before it gets its own.
const NAMES: u32 = 64;
/// How a directory on the way is opened. Linux needs no permission to list it.
#[cfg(target_os = "linux")]
const ENTER: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const ENTER: OFlags = OFlags::RDONLY;

/// A directory entry that is about to change.
struct Place {
    dir: OwnedFd,
    name: OsString,
}

/// Puts an absolute path without links above it into a state. Missing directories above it are made.
///
/// # Errors
/// When a directory above it is a link, something is in the way, or the system refuses.
pub(crate) fn restore(path: &Path, state: &FileState, blobs: &Blobs) -> Result<()> {
    let failed = |error| CheckpointError::io("cannot restore", path, error);
    match state {
        FileState::Absent => remove(path).map_err(failed),
        FileState::Unknown { reason } => Err(failed(io::Error::other(reason.clone()))),
        FileState::Directory { .. } => {
            let place = Place::open(path, true).map_err(failed)?;
            place.make_directory().map_err(failed)
        }
        FileState::Link { target } => {
            let place = Place::open(path, true).map_err(failed)?;
            let made = place.make(|name| Ok(rustix::fs::symlinkat(&target.0, &place.dir, name)?));
            made.map_err(failed)
        }
        FileState::File { content, mode, .. } => {
            let bytes = blobs.get(content)?;
            let place = Place::open(path, true).map_err(failed)?;
            place
                .make(|name| place.write(name, &bytes, *mode))
                .map_err(failed)
        }
    }
}

/// Removes a file, a link or a directory; a directory only if it is empty.
///
/// # Errors
/// As for [`restore`].
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let place = match Place::open(path, false) {
        Err(error) if crate::blobs::is_absent(&error) => return Ok(()),
        place => place?,
    };
    let flags = match place.kind()? {
        None => return Ok(()),
        Some(FileType::Directory) => AtFlags::REMOVEDIR,
        Some(_) => AtFlags::empty(),
    };
    Ok(rustix::fs::unlinkat(&place.dir, &place.name, flags)?)
}

/// Removes a directory if it is empty. What else is at the path stays: it took the place of the directory, and nothing restores it.
///
/// # Errors
/// When something stays at the path, or as for [`restore`].
pub(crate) fn remove_directory(path: &Path) -> io::Result<()> {
    let removed = Place::open(path, false)
        .and_then(|place| Ok(rustix::fs::unlinkat(&place.dir, &place.name, AtFlags::REMOVEDIR)?));
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Sets the permission bits of a directory.
///
/// # Errors
/// When it is no directory, or as for [`restore`].
pub(crate) fn set_directory_mode(path: &Path, mode: u32) -> io::Result<()> {
    let place = Place::open(path, false)?;
    if place.kind()? != Some(FileType::Directory) {
        return Err(Errno::NOTDIR.into());
    }
    place.set_directory_mode(Mode::from_raw_mode(mode as RawMode))
}

impl Place {
    fn open(path: &Path, makes_dirs: bool) -> io::Result<Self> {
        let flags = ENTER | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut dir = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL.into());
        };
        for part in above.components() {
            let part = match part {
                Component::RootDir => continue,
                Component::Normal(part) => part,
                _ => return Err(Errno::INVAL.into()),
            };
            dir = match rustix::fs::openat(&dir, part, flags, Mode::empty()) {
                Err(Errno::NOENT) if makes_dirs => {
                    rustix::fs::mkdirat(&dir, part, Mode::from_raw_mode(0o777))?;
                    rustix::fs::openat(&dir, part, flags, Mode::empty())?
                }
                Err(Errno::LOOP | Errno::NOTDIR) => return Err(in_the_way(&dir, part)),
                opened => opened?,
            };
        }
        let name = name.to_owned();
        Ok(Self { dir, name })
    }

    /// What the entry is; none if there is nothing.
    fn kind(&self) -> io::Result<Option<FileType>> {
        match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the permission bits of the directory. A link that has taken its place is not followed.
    #[cfg(target_os = "linux")]
    fn set_directory_mode(&self, mode: Mode) -> io::Result<()> {
        let flags = ENTER | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&self.dir, &self.name, flags, Mode::empty())?;
        // `fchmod` refuses a descriptor of `O_PATH`, and other descriptors need the permission to read the directory.
        let open = format!("/proc/self/fd/{}", dir.as_raw_fd());
        Ok(rustix::fs::chmodat(CWD, open, mode, AtFlags::empty())?)
    }

    /// Sets the permission bits of the directory. A link that has taken its place is not followed.
    #[cfg(not(target_os = "linux"))]
    fn set_directory_mode(&self, mode: Mode) -> io::Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::chmodat(&self.dir, &self.name, mode, flags)?)
    }

    fn make_directory(&self) -> io::Result<()> {
        match self.kind()? {
            Some(FileType::Directory) => return Ok(()),
            Some(_) => rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::empty())?,
            None => {}
        }
        Ok(rustix::fs::mkdirat(
            &self.dir,
            &self.name,
            Mode::from_raw_mode(0o777),
        )?)
    }

    /// Makes something under a free name and gives it the name of the entry.
    fn make(&self, make: impl Fn(&OsStr) -> io::Result<()>) -> io::Result<()> {
        if self.kind()? == Some(FileType::Directory) {
            rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::REMOVEDIR)?;
        }
        for number in 0..NAMES {
            let name = OsString::from(format!(".pinion-restore-{number}"));
            match make(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            let renamed = rustix::fs::renameat(&self.dir, &name, &self.dir, &self.name);
            if renamed.is_err() {
                // The error of the renaming is the one to report.
                let _stays = rustix::fs::unlinkat(&self.dir, &name, AtFlags::empty());
            }
            return Ok(renamed?);
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "files of earlier restores (.pinion-restore-*) are in the way",
        ))
    }

    fn write(&self, name: &OsStr, bytes: &[u8], mode: u32) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.dir, name, flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(made);
        let written = file.write_all(bytes).and_then(|()| {
            let mode = Mode::from_raw_mode(mode as RawMode);
            Ok(rustix::fs::fchmod(&file, mode)?)
        });
        if written.is_err() {
            // The error of the writing is the one to report.
            let _stays = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
        }
        written
    }
}

/// Why a directory cannot be entered: a link, or a file.
fn in_the_way(dir: &OwnedFd, name: &OsStr) -> io::Error {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_link = stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
    let name = name.to_string_lossy();
    if is_link {
        let text = format!("the directory {name} above it is a link now");
        return io::Error::new(io::ErrorKind::PermissionDenied, text);
    }
    let text = format!("{name} above it is not a directory");
    io::Error::new(io::ErrorKind::NotADirectory, text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn link_in_place_of_directory_keeps_target_mode() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let target = root.join("target");
        fs::create_dir(&target).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
        let link = root.join("link");
        symlink(&target, &link).unwrap();
        // As if the link had come after the look at the path.
        let place = Place::open(&link, false).unwrap();
        let _refused_on_linux = place.set_directory_mode(Mode::from_raw_mode(0o777));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&target), 0o700);
        Place::open(&target, false)
            .unwrap()
            .set_directory_mode(Mode::from_raw_mode(0o750))
            .unwrap();
        assert_eq!(mode(&target), 0o750);
    }
}
