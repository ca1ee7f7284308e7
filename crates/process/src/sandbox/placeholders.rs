//! Placeholders: empty directories where a later start of the agent would look for code that does not exist yet. A name
//! that does not exist cannot be mounted, so a confined command could create it; a placeholder is mounted read-only
//! like the rest.
//!
//! Several agents may need the same placeholder. Each guardian holds a shared lock on it as long as its commands may
//! run; a guardian that finds no other lock removes it. A placeholder has the sticky bit, so that the next start
//! recognises and removes it if its agent and guardian were killed. Its mount is visible to the command alone
//! (`mounts`).

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, Stat, StatVfsMountFlags};
use rustix::io::Errno;

use super::policy::{GIT_HOOKS, PROJECT_CODE, Policy};
use crate::reaper::SpawnSpec;

/// Mode of a placeholder.
// The sticky bit tells it from a directory of the user (`is_placeholder`).
const MODE: Mode = Mode::from_raw_mode(0o1755);
/// Attempts to lock a placeholder that is being removed, and the time between them.
const ATTEMPTS: (usize, Duration) = (100, Duration::from_millis(5));

/// The placeholders that a guardian holds.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(HashMap<PathBuf, OwnedFd>);

impl Placeholders {
    /// Makes and locks what a command needs; nothing if the command is not confined.
    ///
    /// # Errors
    /// If one cannot be made or locked. The command must not run then.
    pub(crate) fn hold_for(&mut self, spec: &SpawnSpec) -> io::Result<()> {
        let [word, policy, ..] = spec.args.as_slice() else {
            return Ok(());
        };
        if word != super::SANDBOX_ARG {
            return Ok(());
        }
        let policy: Policy = serde_json::from_str(&policy.to_string_lossy())?;
        policy.made().try_for_each(|path| self.hold(path))
    }

    fn hold(&mut self, path: &Path) -> io::Result<()> {
        // Looked at for each command: another program may have removed the directory since.
        if self.0.get(path).is_some_and(|held| is_at(held, path)) {
            return Ok(());
        }
        if let Some(held) = hold(path)? {
            self.0.insert(path.to_path_buf(), held);
        }
        Ok(())
    }

    /// Removes what no other guardian holds. Every command must have ended.
    pub(crate) fn release(self) {
        self.0.iter().for_each(|(path, held)| remove(path, held));
    }
}

/// Removes the placeholders in a directory that no guardian holds.
pub fn clear(dir: &Path) {
    for name in PROJECT_CODE.iter().chain([&GIT_HOOKS]) {
        let path = dir.join(name);
        if let Ok(Some(found)) = open(&path) {
            remove(&path, &found);
        }
    }
}

/// Returns true if no command of the user can make a name, so that it needs no placeholder: its directory is on a read-only file system, or
/// belongs to another user and lets this one make nothing. An owner could change the mode, and root may have the rights for it.
pub(super) fn is_out_of_reach(path: &Path) -> bool {
    let Some(Ok(stat)) = path.parent().map(rustix::fs::stat) else {
        return false;
    };
    let is_owner = stat.st_uid == rustix::process::geteuid().as_raw();
    cannot_be_made(path) && (!is_owner || is_read_only(path))
}

/// Returns true if a name cannot be made as its directory is now. Enough where the guardian has asked [`is_out_of_reach`] before: in
/// another user namespace, owners are not known.
pub(super) fn cannot_be_made(path: &Path) -> bool {
    let making = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let is_denied = |dir: &Path| rustix::fs::access(dir, making) == Err(Errno::ACCESS);
    is_read_only(path) || !rustix::process::geteuid().is_root() && path.parent().is_some_and(is_denied)
}

fn is_read_only(path: &Path) -> bool {
    let mount = path.parent().map(rustix::fs::statvfs);
    matches!(mount, Some(Ok(mount)) if mount.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// A locked placeholder; none if something else is at its place, or nothing can be made there.
fn hold(path: &Path) -> io::Result<Option<OwnedFd>> {
    for _ in 0..ATTEMPTS.0 {
        match rustix::fs::mkdir(path, MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::ROFS | Errno::ACCESS) if is_out_of_reach(path) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let found = match open(path) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            // Another guardian removed it after this one had found it.
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        match rustix::fs::flock(&found, FlockOperation::NonBlockingLockShared) {
            Ok(()) if is_at(&found, path) => return Ok(Some(found)),
            // It was removed in between.
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => std::thread::sleep(ATTEMPTS.1),
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::BUSY.into())
}

/// The placeholder at a path; none if something else is there.
fn open(path: &Path) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(found) => {
            let stat = rustix::fs::fstat(&found)?;
            Ok(is_placeholder(&stat).then_some(found))
        }
        Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_placeholder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
        && Mode::from_raw_mode(stat.st_mode).contains(Mode::SVTX)
}

/// Returns true if a path still leads to an open directory.
fn is_at(held: &OwnedFd, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (rustix::fs::fstat(held), rustix::fs::lstat(path)) else {
        return false;
    };
    (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
}

/// Removes a placeholder unless another guardian holds it. A directory with content stays: the user has put a file there.
fn remove(path: &Path, held: &OwnedFd) {
    let locked = rustix::fs::flock(held, FlockOperation::NonBlockingLockExclusive);
    if locked.is_ok() && is_at(held, path) {
        let _ = rustix::fs::rmdir(path);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::path::Path;

    use nix::sched::{CloneFlags, unshare};
    use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind, mount_change, mount_remount};
    use rustix::process::Uid;

    use super::{Placeholders, clear};

    /// The user that a test of root becomes.
    const NOBODY: u32 = 65_534;

    #[test]
    fn placeholder_lasts_until_last_guardian_releases_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".pi");
        let (mut one, mut other) = (Placeholders::default(), Placeholders::default());
        one.hold(&path).unwrap();
        other.hold(&path).unwrap();
        clear(dir.path());
        one.release();
        assert!(path.is_dir());
        clear(dir.path());
        assert!(path.is_dir());
        other.release();
        assert!(!path.exists());
    }

    #[test]
    fn placeholder_of_dead_process_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mut dead = Placeholders::default();
        dead.hold(&path(".mcp.json")).unwrap();
        drop(dead);
        fs::create_dir(path(".omp")).unwrap();
        fs::write(path("mcp.json"), "{}").unwrap();
        fs::create_dir(path(".pi")).unwrap();
        fs::set_permissions(path(".pi"), fs::Permissions::from_mode(0o1755)).unwrap();
        fs::write(path(".pi/settings.json"), "{}").unwrap();
        clear(dir.path());
        assert!(!path(".mcp.json").exists() && path(".omp").is_dir());
        assert!(path("mcp.json").is_file() && path(".pi/settings.json").is_file());
        // What the user has there is not held, and stays.
        let mut living = Placeholders::default();
        living.hold(&path(".omp")).unwrap();
        living.hold(&path("mcp.json")).unwrap();
        living.release();
        assert!(path(".omp").is_dir() && path("mcp.json").is_file());
    }

    #[test]
    fn name_on_read_only_mount_is_not_held() {
        let dir = tempfile::tempdir().unwrap();
        let work = || {
            // For this thread alone, so that no other test sees the mount.
            unshare(CloneFlags::CLONE_NEWNS).ok()?;
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
            mount_bind(dir.path(), dir.path()).unwrap();
            mount_remount(dir.path(), MountFlags::BIND | MountFlags::RDONLY, c"").unwrap();
            let mut living = Placeholders::default();
            living.hold(&dir.path().join(".pi")).unwrap();
            Some(living.0.len())
        };
        match std::thread::scope(|threads| threads.spawn(work).join().unwrap()) {
            Some(held) => assert_eq!(held, 0),
            None => {
                // Not `eprintln!`: the harness hides what a passing test prints.
                let line = b"skipped: only root can mount\n";
                std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
            }
        }
    }

    #[test]
    fn name_in_directory_of_another_user_is_not_held() {
        let own = tempfile::tempdir().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            chown(own.path(), Some(NOBODY), None).unwrap();
        }
        fs::set_permissions(own.path(), fs::Permissions::from_mode(0o555)).unwrap();
        let work = || {
            // Of this thread alone. Root can make names everywhere.
            if is_root {
                rustix::thread::set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
            }
            let mut living = Placeholders::default();
            living.hold(Path::new("/.placeholder-of-a-test")).unwrap();
            assert!(living.0.is_empty());
            // An owner could change the mode of the directory, and then make the name.
            living.hold(&own.path().join(".pi")).unwrap_err();
        };
        std::thread::scope(|threads| threads.spawn(work).join().unwrap());
    }

    #[test]
    fn removed_placeholder_is_recreated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".pi");
        let mut living = Placeholders::default();
        living.hold(&path).unwrap();
        fs::remove_dir(&path).unwrap();
        living.hold(&path).unwrap();
        assert!(path.is_dir());
        living.release();
        assert!(!path.exists());
    }
}
