//! The log file: made for its owner alone, and otherwise appended to only if it is one already.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use rustix::fs::OFlags;

/// What a line of a log begins with, and bytes of the file that must show a whole one.
const START: (&[u8], u64) = (b"{\"timestamp\":\"", 64 << 10);

/// Opens it. A file that is there keeps its mode.
pub(super) fn open(path: &Path) -> anyhow::Result<File> {
    let what = || format!("The log file {}", path.display());
    let made = OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made.with_context(what),
    }
    let found = path.symlink_metadata().with_context(what)?;
    if found.is_symlink() {
        bail!("{}: it is a symbolic link. Name the file itself", what());
    }
    if !found.is_file() {
        bail!("{}: it is not a regular file", what());
    }
    // It may have become something else meanwhile.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .with_context(what)?;
    if !file.metadata().with_context(what)?.is_file() {
        bail!("{}: it is not a regular file", what());
    }
    if !is_log(&file).with_context(what)? {
        bail!(
            "{}: it has other content than a log of Pinion. Name a new file",
            what()
        );
    }
    Ok(file)
}

/// Returns true if the file is empty or begins with a line of a log.
fn is_log(file: &File) -> std::io::Result<bool> {
    let mut start = Vec::new();
    file.take(START.1).read_to_end(&mut start)?;
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |word: &[u8]| line.windows(word.len()).any(|part| part == word);
    Ok(start.is_empty() || line.starts_with(START.0) && has(b"\"level\":\"") && has(b"\"target\":\""))
}
