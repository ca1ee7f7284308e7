//! Opening and reading: regular files only, never waiting, never without a limit.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use crate::{Found, Kind};

/// The beginning of a file, or all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Decoded leniently as UTF-8, without a byte order mark.
    pub text: String,
    /// True when the file is longer than the limit.
    pub cut: bool,
}

/// Opens a regular file. A pipe or device is not waited for, and a terminal does not become the process's own.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Opening some devices does something, and opening a socket has an error of its own.
    regular(&std::fs::metadata(path)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    checked(file)
}

/// The file, if it is a regular one. Between a look at a name and the use of it, the file may have become another.
pub(crate) fn checked(file: File) -> io::Result<File> {
    regular(&file.metadata()?)?;
    Ok(file)
}

fn regular(meta: &Metadata) -> io::Result<()> {
    match found(meta).kind {
        Kind::File => Ok(()),
        Kind::Directory => Err(io::ErrorKind::IsADirectory.into()),
        Kind::Other => Err(not_regular()),
    }
}

pub(crate) fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

pub(crate) fn found(meta: &Metadata) -> Found {
    let kind = match meta {
        meta if meta.is_file() => Kind::File,
        meta if meta.is_dir() => Kind::Directory,
        _ => Kind::Other,
    };
    Found {
        kind,
        mode: meta.permissions().mode(),
    }
}

/// The names in a directory, one more than `limit` at most.
pub(crate) fn list(dir: &Path, limit: usize) -> io::Result<Vec<OsString>> {
    let entries = std::fs::read_dir(dir)?;
    entries
        .map(|entry| entry.map(|entry| entry.file_name()))
        .take(limit.saturating_add(1))
        .collect()
}

pub(crate) fn bytes(file: File, limit: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_cut = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, is_cut))
}

pub(crate) fn text(file: File, limit: u64) -> io::Result<Text> {
    let (bytes, cut) = bytes(file, limit)?;
    Ok(Text {
        text: decode(bytes, cut),
        cut,
    })
}

/// Returns true if the error says that there is no such file. A directory of that name counts as none.
#[must_use]
pub fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

/// The link on the way to a path that leads to nothing. Such a file is missing by mistake, for instance because a disk is not mounted.
#[must_use]
pub fn dangling_link(path: &Path) -> Option<&Path> {
    let there = path.ancestors().find_map(|path| {
        let meta = std::fs::symlink_metadata(path).ok()?;
        Some((path, meta))
    });
    let (path, meta) = there?;
    (meta.is_symlink() && std::fs::metadata(path).is_err()).then_some(path)
}

fn decode(mut bytes: Vec<u8>, cut: bool) -> String {
    // A cut may fall into a character; half of one is not worth a replacement sign.
    if cut
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    let text =
        String::from_utf8(bytes).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned());
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
