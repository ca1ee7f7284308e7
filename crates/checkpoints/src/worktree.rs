//! The working directory as a whole, for calls whose changes no tool reports: what it held at the newest look, and what changed since.
//!
//! Not part of it are what Git ignores by `.gitignore` files, Git's own data (`.git`), other file systems, and the paths that the caller
//! excludes. A file is read again only if its size, mode, inode or time of change differs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use files::{IgnoreFiles, IgnoreRules};
use ignore::WalkBuilder;
use rustix::time::{ClockId, clock_gettime};

use crate::blobs::Blobs;
use crate::error::CheckpointError;
use crate::limits;
use crate::state::FileState;

/// Names the rules that leave paths out.
const RULES: &str = ".gitignore";

/// Where a session works, and what of it its checkpoints never contain.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The working directory, absolute.
    pub root: PathBuf,
    /// Files and directories that are left out, absolute: those of the agent itself.
    pub excluded: Vec<PathBuf>,
}

/// What a working directory holds, from look to look.
#[derive(Debug)]
pub(crate) struct Worktree {
    scope: Scope,
    /// None before the first look, and after a look that could not see the directory.
    seen: Option<Seen>,
    /// Calls that run now.
    running: usize,
}

/// A path that changed between two looks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) path: PathBuf,
    pub(crate) before: FileState,
    pub(crate) after: FileState,
}

/// Why a look does not tell what the directory holds.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    /// The directory cannot be looked through. A call runs all the same: what it changes is unknown for this reason.
    #[error("{0}")]
    Unseen(String),
    /// A content cannot be stored.
    #[error(transparent)]
    Unstored(#[from] CheckpointError),
}

#[derive(Debug, Default)]
struct Seen {
    entries: BTreeMap<PathBuf, Entry>,
    /// What paths without an entry hold since tools reported changes of them. Whether they are part of the directory tells the next look.
    reported: BTreeMap<PathBuf, FileState>,
    /// Directories that could not be listed.
    closed: BTreeSet<PathBuf>,
    /// The rules above the working directory.
    rules_above: Vec<Option<Stamp>>,
    /// Bytes of the contents of all entries.
    bytes: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    stamp: Stamp,
    /// The next look reads the path again, also with an equal stamp: it can change once more without a change of the stamp, as clocks of file
    /// systems tick slowly, or its content could not be stored.
    is_fresh: bool,
    state: FileState,
}

/// What tells that a path has changed without a look at its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    mode: u32,
    size: u64,
    /// Seconds and nanoseconds of the last change.
    changed: (i64, i64),
}

impl Worktree {
    /// Links above the directory are followed once: tools report real paths, too.
    pub(crate) fn new(scope: Scope) -> Self {
        let real = |path: &PathBuf| crate::plan::real_path(path);
        let scope = Scope {
            root: real(&scope.root),
            excluded: scope.excluded.iter().map(real).collect(),
        };
        Self {
            scope,
            seen: None,
            running: 0,
        }
    }

    /// A call begins. The differences are those of calls that run already; without such calls, all changes since the newest look are the work of
    /// others, and belong to no turn.
    ///
    /// # Errors
    /// When the directory cannot be looked through, or a content cannot be stored.
    pub(crate) fn begin(&mut self, blobs: &mut Blobs) -> Result<Vec<Difference>, LookError> {
        let is_first = self.running == 0;
        self.running += 1;
        let differences = self.look(blobs, false)?.filter(|_| !is_first);
        Ok(differences.unwrap_or_default())
    }

    /// A call has ended. None if there was no look before it to compare with. A content that cannot be stored is unknown.
    ///
    /// # Errors
    /// When the directory cannot be looked through.
    pub(crate) fn end(&mut self, blobs: &mut Blobs) -> Result<Option<Vec<Difference>>, LookError> {
        self.running = self.running.saturating_sub(1);
        self.look(blobs, true)
    }

    /// A tool has reported a change: the next look does not find it again. If the path did not hold `before` at the newest look, something
    /// else changed it, too, and the next look finds that.
    pub(crate) fn report(&mut self, path: &Path, before: &FileState, after: &FileState) {
        let Some(seen) = &mut self.seen else { return };
        if before == after || seen.state_of(path).unwrap_or(&FileState::Absent) != before {
            return;
        }
        match seen.entries.get_mut(path) {
            Some(entry) => {
                // The stamp is older than the change.
                entry.is_fresh = true;
                entry.state.clone_from(after);
            }
            None => {
                seen.reported.insert(path.to_path_buf(), after.clone());
            }
        }
    }

    /// A call that has begun does not run.
    pub(crate) fn give_up(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// Forgets the newest look, since what it found was not stored and the next one would not find it again. All changes of the calls that
    /// run are unknown then.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
    }

    /// The contents that the newest look refers to.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &str> {
        let states = self.seen.iter().flat_map(|seen| {
            let entries = seen.entries.values().map(|entry| &entry.state);
            entries.chain(seen.reported.values())
        });
        states.filter_map(FileState::blob)
    }

    /// Looks through the directory, at the beginning or the end of a call. None at the first look.
    fn look(&mut self, blobs: &mut Blobs, is_end: bool) -> Result<Option<Vec<Difference>>, LookError> {
        let old = self.seen.take();
        let new = match self.scope.see(old.as_ref(), blobs, is_end) {
            Ok(new) => new,
            Err(error) => {
                if matches!(error, LookError::Unstored(_)) {
                    // This call will not run. Calls that run already are compared with the old look at their end.
                    self.seen = old;
                }
                return Err(error);
            }
        };
        let differences = old.map(|old| differences(&old, &new));
        self.seen = Some(new);
        Ok(differences)
    }
}

impl Scope {
    fn see(&self, old: Option<&Seen>, blobs: &mut Blobs, is_end: bool) -> Result<Seen, LookError> {
        let mut seen = Seen {
            rules_above: self.rules_above(),
            ..Seen::default()
        };
        let scope = self.clone();
        let rules = IgnoreRules::new(&self.root, IgnoreFiles::Git);
        let walk = WalkBuilder::new(&self.root)
            .standard_filters(false)
            .same_file_system(true)
            .filter_entry(move |entry| {
                let path = entry.path();
                entry.file_name() != OsStr::new(".git")
                    && !scope.excludes(path)
                    && !rules.ignores(path, entry.file_type())
            })
            .build();
        for found in walk {
            match found {
                Ok(entry) if entry.depth() == 0 => {}
                Ok(entry) => seen.take_in(entry.path(), old, blobs, is_end)?,
                Err(error) => seen.note_failure(&error, &self.root)?,
            }
        }
        for path in old.iter().flat_map(|old| old.entries.keys()) {
            // Ignored since the last look, below a closed directory, or gone. What lies behind a link is elsewhere.
            if !seen.entries.contains_key(path) && seen.has_directory(path, &self.root) {
                seen.take_in(path, old, blobs, is_end)?;
            }
        }
        Ok(seen)
    }

    /// Returns true for an excluded path. Where sessions are stored in the working directory itself, their files are left out.
    fn excludes(&self, path: &Path) -> bool {
        let is_session = || {
            let ending = path.extension().and_then(OsStr::to_str);
            matches!(ending, Some("jsonl" | "checkpoints"))
                && path
                    .parent()
                    .is_some_and(|dir| self.excluded.iter().any(|one| one == dir))
        };
        self.excluded.iter().any(|one| one == path) || is_session()
    }

    /// The files with rules in the directories above.
    fn rules_above(&self) -> Vec<Option<Stamp>> {
        let above = self.root.ancestors().skip(1);
        above
            .map(|dir| dir.join(RULES).symlink_metadata().ok().as_ref().map(Stamp::of))
            .collect()
    }
}

impl Seen {
    /// What a path holds as far as the look and the reports since then tell; none for a path that neither reached.
    fn state_of(&self, path: &Path) -> Option<&FileState> {
        let seen = self.entries.get(path).map(|entry| &entry.state);
        seen.or_else(|| self.reported.get(path))
    }

    /// Returns true if the path lies directly in the root or in a directory that the look has taken in.
    fn has_directory(&self, path: &Path, root: &Path) -> bool {
        path.parent().is_some_and(|dir| {
            let state = self.entries.get(dir).map(|entry| &entry.state);
            dir == root || matches!(state, Some(FileState::Directory { .. }))
        })
    }

    fn take_in(
        &mut self,
        path: &Path,
        old: Option<&Self>,
        blobs: &mut Blobs,
        is_end: bool,
    ) -> Result<(), LookError> {
        let known = old.and_then(|old| old.entries.get(path));
        let entry = match path.symlink_metadata() {
            Ok(meta) => {
                let stamp = Stamp::of(&meta);
                match known.filter(|known| known.stamp == stamp && !known.is_fresh) {
                    Some(known) => known.clone(),
                    None => match self.state(path, &meta, blobs) {
                        Ok(state) => Entry {
                            stamp,
                            is_fresh: stamp.is_fresh(),
                            state,
                        },
                        // The call has changed the file already, so only this content is lost.
                        Err(error) if is_end => Entry {
                            stamp,
                            is_fresh: true,
                            state: FileState::unknown(error.to_string()),
                        },
                        Err(error) => return Err(error.into()),
                    },
                }
            }
            Err(error) if crate::blobs::is_absent(&error) => return Ok(()),
            // What cannot be looked at any more is as it was, as far as is known.
            Err(_) => match known {
                Some(known) => known.clone(),
                None => return Ok(()),
            },
        };
        if let FileState::File { size, .. } = entry.state {
            self.bytes += size;
        }
        self.entries.insert(path.to_path_buf(), entry);
        if self.entries.len() > limits::TREE_ENTRIES {
            return Err(LookError::Unseen(format!(
                "the working directory has more than {} files that Git does not ignore, so its checkpoints contain only what edit and write change",
                limits::TREE_ENTRIES
            )));
        }
        Ok(())
    }

    fn state(&self, path: &Path, meta: &Metadata, blobs: &mut Blobs) -> Result<FileState, CheckpointError> {
        if meta.is_file() && self.bytes + meta.len() > limits::TREE_BYTES {
            return Ok(FileState::unknown(format!(
                "the working directory has more than {} bytes",
                limits::TREE_BYTES
            )));
        }
        blobs.capture(path)
    }

    /// A directory that cannot be listed. Its content is as it was.
    fn note_failure(&mut self, error: &ignore::Error, root: &Path) -> Result<(), LookError> {
        match path_of(error) {
            Some(path) if path != root => {
                self.closed.insert(path.to_path_buf());
                Ok(())
            }
            _ => Err(LookError::Unseen(format!(
                "the working directory cannot be listed: {error}"
            ))),
        }
    }

    fn is_closed(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|dir| self.closed.contains(dir))
    }
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            mode: meta.mode(),
            size: if meta.is_dir() { 0 } else { meta.size() },
            // Every file made in a directory changes its time, and has an entry of its own.
            changed: if meta.is_dir() {
                (0, 0)
            } else {
                (meta.ctime(), meta.ctime_nsec())
            },
        }
    }

    /// Returns true if the change is so recent that another one may get the same time.
    fn is_fresh(&self) -> bool {
        let now = clock_gettime(ClockId::Realtime);
        let nanos = |(seconds, nanos): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        nanos(self.changed) + limits::TREE_FRESH_NANOS > nanos((now.tv_sec, now.tv_nsec))
    }
}

/// The differences of two looks, in the order of paths.
fn differences(old: &Seen, new: &Seen) -> Vec<Difference> {
    // Whether the next look reads a path again says nothing about a change.
    let is_changed = |path: &Path| match (old.entries.get(path), new.entries.get(path)) {
        (Some(old), Some(new)) => (old.stamp, &old.state) != (new.stamp, &new.state),
        (old, new) => old.is_some() || new.is_some(),
    };
    let mut rules = old.entries.keys().chain(new.entries.keys());
    let has_new_rules = old.rules_above != new.rules_above
        || rules.any(|path| path.file_name() == Some(OsStr::new(RULES)) && is_changed(path));
    // A path that the old look did not reach may have been there.
    let before = |path: &Path| match old.state_of(path) {
        Some(state) => state.clone(),
        None if has_new_rules => {
            FileState::unknown("the rules of .gitignore changed, so that it may have been there before")
        }
        None if old.is_closed(path) => FileState::unknown("its directory could not be listed before"),
        None => FileState::Absent,
    };
    let paths: BTreeSet<&PathBuf> = old.entries.keys().chain(new.entries.keys()).collect();
    let changed = paths
        .into_iter()
        .filter(|path| match (old.entries.get(*path), new.entries.get(*path)) {
            (Some(old), Some(new)) if matches!(new.state, FileState::Unknown { .. }) => {
                old.stamp != new.stamp
            }
            _ => old.state_of(path) != new.state_of(path),
        });
    changed
        .map(|path| Difference {
            path: path.clone(),
            before: before(path),
            after: new
                .entries
                .get(path)
                .map_or(FileState::Absent, |entry| entry.state.clone()),
        })
        .collect()
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(inode: u64, is_fresh: bool) -> Entry {
        let stamp = Stamp {
            device: 1,
            inode,
            mode: 0o644,
            size: 1,
            changed: (1, 0),
        };
        let state = FileState::File {
            content: inode.to_string(),
            size: 1,
            mode: 0o644,
        };
        Entry {
            stamp,
            is_fresh,
            state,
        }
    }

    #[test]
    fn rules_read_again_are_no_change() {
        let mut looks = [true, false].map(|is_fresh| Seen {
            entries: BTreeMap::from([(PathBuf::from("/w/.gitignore"), entry(1, is_fresh))]),
            ..Seen::default()
        });
        looks[1].entries.insert(PathBuf::from("/w/new"), entry(2, true));
        let found = differences(&looks[0], &looks[1]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].before, FileState::Absent);
    }
}
