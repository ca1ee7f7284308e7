//! Directories that are prepared under a temporary name and put in place in one step, so that a failed or killed installation changes
//! nothing. `npm` and `git` fill them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use files::{Root, Text};
use rustix::fs::{CWD, RenameFlags};

use super::limits::{COPIED_DEPTH, MANIFEST_BYTES};

/// A directory that takes the place of another one. Dropping it removes the directory that is not in place: the prepared one before
/// the swap, the replaced one after it.
#[derive(Debug)]
pub(super) struct Staged {
    target: PathBuf,
    dir: PathBuf,
    /// What identified the target when it was copied.
    before: Vec<Option<Text>>,
    /// The outermost directory that had to be created for the prepared one.
    made: PathBuf,
    /// The outermost directory that the swap created for the target.
    created: Option<PathBuf>,
}

impl Staged {
    /// Starts with an empty place: `dir` does not exist. What an earlier process left there is removed.
    ///
    /// # Errors
    /// If leftovers cannot be removed.
    pub(super) fn empty(target: &Path, dir: PathBuf) -> anyhow::Result<Self> {
        clear(&dir).with_context(|| format!("Cannot remove {}", dir.display()))?;
        Ok(Self {
            before: state(target),
            target: target.to_path_buf(),
            made: outermost_missing(&dir).unwrap_or_else(|| dir.clone()),
            dir,
            created: None,
        })
    }

    /// Starts with a copy of the target, or with an empty directory if there is none. Files that no package manager changes in
    /// place are shared with the target, unless `whole`: scripts of packages may change any file.
    ///
    /// # Errors
    /// If the target cannot be copied.
    pub(super) fn copy(target: &Path, dir: PathBuf, whole: bool) -> anyhow::Result<Self> {
        let staged = Self::empty(target, dir)?;
        let copied = match target.exists() {
            true => copy(target, &staged.dir, whole),
            false => fs::create_dir_all(&staged.dir),
        };
        copied.with_context(|| format!("Cannot copy {}", target.display()))?;
        Ok(staged)
    }

    /// The directory to prepare.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Exchanges the prepared directory and its target.
    ///
    /// # Errors
    /// If another program changed the target since the copy, or the directories cannot be renamed.
    pub(super) fn swap(&mut self) -> anyhow::Result<()> {
        if state(&self.target) != self.before {
            bail!(
                "Another program changed {}; nothing was installed. Try again",
                self.target.display()
            );
        }
        let parent = self.target.parent().unwrap_or(&self.target);
        self.created = outermost_missing(parent);
        fs::create_dir_all(parent)
            .and_then(|()| exchange(&self.dir, &self.target))
            .with_context(|| format!("Cannot replace {}", self.target.display()))
    }

    /// Takes a swap back.
    pub(super) fn undo(&mut self) {
        if self.dir.exists() {
            let _back = exchange(&self.dir, &self.target);
        } else {
            let _back = fs::rename(&self.target, &self.dir);
        }
        if let Some(created) = self.created.take() {
            remove_empty(self.target.parent().unwrap_or(&created), &created);
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _left = clear(&self.dir);
        remove_empty(self.dir.parent().unwrap_or(&self.made), &self.made);
    }
}

fn outermost_missing(dir: &Path) -> Option<PathBuf> {
    let missing = dir.ancestors().take_while(|dir| !dir.exists()).last();
    missing.map(Path::to_path_buf)
}

/// Removes a directory and its parents up to and with `last` as long as they are empty.
pub(super) fn remove_empty(dir: &Path, last: &Path) {
    for dir in dir.ancestors().take_while(|dir| dir.starts_with(last)) {
        if fs::remove_dir(dir).is_err() {
            break;
        }
    }
}

fn clear(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The files that every installation in a directory changes.
fn state(dir: &Path) -> Vec<Option<Text>> {
    let names = [
        "package.json",
        "package-lock.json",
        "pnpm-lock.yaml",
        "bun.lock",
        ".git/HEAD",
        ".git/ORIG_HEAD",
    ];
    // A package may bring a link to a device in place of a file.
    let small = |path: PathBuf| Root::user().read(&path, MANIFEST_BYTES).ok();
    names.iter().map(|name| small(dir.join(name))).collect()
}

/// Exchanges two directories; if the second does not exist, the first takes its place.
fn exchange(dir: &Path, target: &Path) -> io::Result<()> {
    if target.symlink_metadata().is_err() {
        return fs::rename(dir, target);
    }
    if rustix::fs::renameat_with(CWD, dir, CWD, target, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    // Some file systems cannot exchange names.
    let mut aside = dir.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    clear(&aside)?;
    fs::rename(target, &aside)?;
    if let Err(error) = fs::rename(dir, target) {
        fs::rename(&aside, target)?;
        return Err(error);
    }
    fs::rename(&aside, dir)
}

fn copy(from: &Path, to: &Path, whole: bool) -> io::Result<()> {
    let mut left = vec![(from.to_path_buf(), to.to_path_buf(), 1_usize)];
    while let Some((from, to, depth)) = left.pop() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let (source, place) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                left.push((source, place, depth + 1));
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&source)?, &place)?;
            } else if kind.is_file() {
                let is_shared = !whole && depth > COPIED_DEPTH && fs::hard_link(&source, &place).is_ok();
                if !is_shared {
                    fs::copy(&source, &place)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn staged_directory_replaces_target_and_back() {
        let root = tempfile::tempdir().unwrap();
        let (target, dir) = (root.path().join("a/b/npm"), root.path().join("new"));
        fs::create_dir_all(target.join("node_modules/x/lib/deep")).unwrap();
        fs::write(target.join("node_modules/x/lib/deep/y"), "old").unwrap();
        fs::write(target.join("package.json"), "{}").unwrap();
        let mut staged = Staged::copy(&target, dir.clone(), false).unwrap();
        assert_eq!(text(&dir.join("node_modules/x/lib/deep/y")), "old");
        fs::write(dir.join("package.json"), "{1}").unwrap();
        assert_eq!(text(&target.join("package.json")), "{}");
        staged.swap().unwrap();
        assert_eq!(text(&target.join("package.json")), "{1}");
        staged.undo();
        assert_eq!(text(&target.join("package.json")), "{}");
        drop(staged);
        assert!(!dir.exists());
    }

    #[test]
    fn staged_directory_leaves_no_parents_behind() {
        let root = tempfile::tempdir().unwrap();
        let (target, dir) = (root.path().join("git/h/u/r"), root.path().join("new"));
        let mut staged = Staged::copy(&target, dir, false).unwrap();
        staged.swap().unwrap();
        assert!(target.is_dir());
        staged.undo();
        assert!(!root.path().join("git").exists());
    }

    #[test]
    fn target_changed_meanwhile_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let (target, dir) = (root.path().join("npm"), root.path().join("new"));
        fs::create_dir(&target).unwrap();
        let mut staged = Staged::copy(&target, dir, false).unwrap();
        fs::write(target.join("package.json"), "{}").unwrap();
        assert!(staged.swap().unwrap_err().to_string().contains("Try again"));
        drop(staged);
        assert_eq!(text(&target.join("package.json")), "{}");
    }
}
