//! The directory of a worker's files. The agent runs a program that a file in it names, so no other user may change it, or make it first.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use uuid::Uuid;

/// User id of root.
const ROOT: u32 = 0;
/// Permission of the group and of others to change a directory.
const WRITE_OF_OTHERS: u32 = 0o022;

/// Where a worker keeps its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateDir {
    /// In this directory, which stays.
    At(PathBuf),
    /// In a new directory in this one. The worker removes it at its end.
    NewIn(PathBuf),
}

/// The directory of a running worker. A new one is removed when this value goes.
#[derive(Debug)]
pub(super) struct OpenStateDir {
    pub(super) path: PathBuf,
    /// The user of the worker.
    user: u32,
    is_new: bool,
}

impl StateDir {
    /// Makes the directory, or checks that no other user can change the existing one.
    pub(super) fn open(&self) -> Result<OpenStateDir> {
        let user = rustix::process::geteuid().as_raw();
        let (path, is_new) = match self {
            Self::At(dir) => (named(dir, user)?, false),
            Self::NewIn(parent) => (new_in(parent)?, true),
        };
        Ok(OpenStateDir { path, user, is_new })
    }
}

impl OpenStateDir {
    /// Makes a directory in it that only the user of the worker can read and change. Returns its path.
    pub(super) fn private(&self, name: &str) -> Result<PathBuf> {
        private(&self.path.join(name), self.user)
    }
}

impl Drop for OpenStateDir {
    fn drop(&mut self) {
        if self.is_new {
            // What stays can be read by no other user.
            drop(std::fs::remove_dir_all(&self.path));
        }
    }
}

/// Makes a directory with a random name. Fails if it exists, so that no other user can have made it.
fn new_in(parent: &Path) -> Result<PathBuf> {
    // A part of the id, because the path of a socket has about 100 bytes at most.
    let id: String = Uuid::new_v4().simple().to_string().chars().take(12).collect();
    let path = parent.join(format!("pinion-worker-{id}"));
    std::fs::create_dir_all(parent).with_context(|| format!("{} cannot be created", parent.display()))?;
    DirBuilder::new()
        .mode(0o700)
        .create(&path)
        .with_context(|| format!("{} cannot be created", path.display()))?;
    Ok(path)
}

/// Opens the directory of `--state-dir`. Others may read it if they could before: what the worker makes in it is private.
fn named(dir: &Path, user: u32) -> Result<PathBuf> {
    let (path, found) = made(dir)?;
    if found.uid() == ROOT {
        // The volume of a container.
        return Ok(path);
    }
    protect(&path, &found, user)?;
    Ok(path)
}

/// Lets no other user change an existing directory.
fn protect(path: &Path, found: &Metadata, user: u32) -> Result<()> {
    check_owner(path, found, user)?;
    let mode = found.permissions().mode();
    if mode & WRITE_OF_OTHERS != 0 {
        set_mode(path, mode & 0o7777 & !WRITE_OF_OTHERS)?;
    }
    Ok(())
}

/// Makes a directory that only this user can read and change.
fn private(dir: &Path, user: u32) -> Result<PathBuf> {
    let (path, found) = made(dir)?;
    check_owner(&path, &found, user)?;
    set_mode(&path, 0o700)?;
    Ok(path)
}

fn check_owner(path: &Path, found: &Metadata, user: u32) -> Result<()> {
    let owner = found.uid();
    if owner != user {
        bail!(
            "{} belongs to user {owner}, and the worker runs as user {user}. Use a directory of that user: --state-dir DIR",
            path.display()
        );
    }
    Ok(())
}

/// Sets the permissions of a file or directory of the worker.
pub(super) fn set_mode(path: &Path, mode: u32) -> Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("the permissions of {} cannot be set", path.display()))
}

/// Makes a directory if there is none. Returns its path without links, which others could change later, and its metadata.
fn made(dir: &Path) -> Result<(PathBuf, Metadata)> {
    store::paths::ensure_private_dir(dir)?;
    let path = dir
        .canonicalize()
        .with_context(|| format!("{} cannot be opened", dir.display()))?;
    let found = path
        .metadata()
        .with_context(|| format!("{} cannot be opened", path.display()))?;
    Ok((path, found))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::path::Path;

    use super::{StateDir, private, protect};

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_directory_is_private_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        // A temporary directory that does not exist yet.
        let dir = StateDir::NewIn(parent.path().join("tmp"));
        let (first, second) = (dir.open().unwrap(), dir.open().unwrap());
        assert_ne!(first.path, second.path);
        assert_eq!(mode(&first.path), 0o700);
        let sessions = first.private("sessions").unwrap();
        assert_eq!(mode(&sessions), 0o700);
        std::fs::write(sessions.join("a.jsonl"), "").unwrap();
        let path = first.path.clone();
        drop(first);
        assert!(!path.exists() && second.path.exists());
    }

    #[test]
    fn directories_in_named_one_become_private() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("state");
        std::fs::create_dir_all(dir.join("gate")).unwrap();
        std::fs::set_permissions(dir.join("gate"), Permissions::from_mode(0o777)).unwrap();
        let open = StateDir::At(dir.clone()).open().unwrap();
        assert_eq!(mode(&open.private("gate").unwrap()), 0o700);
        drop(open);
        assert!(dir.exists());
        let missing = StateDir::At(dir.join("made")).open().unwrap();
        assert_eq!(mode(&missing.path), 0o700);
    }

    #[test]
    fn named_directory_stays_readable_and_cannot_be_changed_by_others() {
        let dir = tempfile::tempdir().unwrap();
        let owner = dir.path().metadata().unwrap().uid();
        for (before, after) in [(0o775, 0o755), (0o777, 0o755), (0o750, 0o750)] {
            std::fs::set_permissions(dir.path(), Permissions::from_mode(before)).unwrap();
            // Not `named`, which leaves a directory of root as it is, and tests may run as root.
            protect(dir.path(), &dir.path().metadata().unwrap(), owner).unwrap();
            assert_eq!(mode(dir.path()), after);
        }
    }

    #[test]
    fn directory_of_another_user_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let owner = dir.path().metadata().unwrap().uid();
        let error = private(dir.path(), owner + 1).unwrap_err().to_string();
        assert!(error.contains("--state-dir"), "{error}");
        assert_eq!(mode(dir.path()), 0o755);
        private(dir.path(), owner).unwrap();
        assert_eq!(mode(dir.path()), 0o700);
    }
}
