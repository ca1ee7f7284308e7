//! File tools in the sandbox: the work is done by a thread of its own that Landlock confines to what the call may touch. So a
//! link that changes between the look at a path and its use opens nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use super::guard::Aim;
use super::hint;
use super::landlock::{Reach, confine};
use super::launcher::COMPLAINT;
use super::policy::{Access, Policy};
use crate::path::real_path;

/// Checks that the path is open to `aim`.
///
/// # Errors
/// The text for the model when it is not.
pub(crate) fn check(policy: &Policy, aim: Aim, path: &Path) -> Result<(), String> {
    reach(&for_tools(policy), aim, path).map(drop)
}

/// The process that carries out the call has secrets of its own below `/proc`.
fn for_tools(policy: &Policy) -> Policy {
    policy.clone().without(Path::new("/proc"))
}

/// The path without links, if it is open to `aim`.
fn reach(policy: &Policy, aim: Aim, path: &Path) -> Result<PathBuf, String> {
    let real = real_path(path);
    let wanted = if aim == Aim::Read {
        Access::Read
    } else {
        Access::Write
    };
    if policy.access(&real) < wanted {
        return Err(hint::refused(policy, &real, wanted));
    }
    Ok(real)
}

/// Does `work` with a path, confined to what `aim` means there. Blocks.
///
/// # Errors
/// Those of the work, and the text for the model when the path is not open to it.
pub(crate) fn run<T: Send>(
    policy: &Policy,
    aim: Aim,
    path: &Path,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    let policy = &for_tools(policy);
    let real = reach(policy, aim, path)?;
    // Opened before the thread is confined, which then may write to this file and nothing else.
    let file = match aim {
        Aim::Read => None,
        Aim::Edit => open(&real).ok(),
        Aim::Write => open(&real).or_else(|_| make(&real)).ok(),
    };
    let open = match (&file, aim) {
        (Some(file), _) => Reach::File(file),
        // Nothing that could be written: the work finds out why.
        (None, _) => Reach::Reading(policy),
    };
    std::thread::scope(|threads| {
        let thread = std::thread::Builder::new().spawn_scoped(threads, || {
            confine(&open).map_err(|why| format!("{COMPLAINT}{why}"))?;
            work()
        });
        let done = thread
            .map_err(|error| format!("The tool failed: {error}"))?
            .join();
        // A panic of the work ends this thread only.
        done.unwrap_or_else(|_| Err("The tool failed".to_owned()))
    })
}

/// The regular file at a path without links.
fn open(real: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    // Only content: a device or a pipe leads to something that no rule about paths covers.
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::RegularFile {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// Makes an empty file with its directories, following no link on the way.
fn make(real: &Path) -> io::Result<OwnedFd> {
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let enter = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = rustix::fs::openat(CWD, "/", enter, Mode::empty())?;
    for part in parent.components() {
        let Component::Normal(part) = part else { continue };
        let there = rustix::fs::openat(&dir, part, enter, Mode::empty());
        dir = match there {
            Err(rustix::io::Errno::NOENT) => {
                rustix::fs::mkdirat(&dir, part, Mode::from_raw_mode(0o777))?;
                rustix::fs::openat(&dir, part, enter, Mode::empty())?
            }
            other => other?,
        };
    }
    // EXCL: a link that appeared at the name since it was looked at is not followed.
    let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(
        &dir,
        name,
        create,
        Mode::from_raw_mode(0o666),
    )?)
}
