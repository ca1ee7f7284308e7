//! Keeps the files of a session as they were before each turn, compares them and restores them.
//!
//! The directory of a session's checkpoints has a journal (`journal`) and the contents of files (`blobs`). A caller reports a file
//! before and after it changes, with the turn that the change belongs to. From the journal follow the changes of a turn (`diff`), and
//! what a rewind has to do (`rewind`), which `restore` carries out. What tools change without a report is found by looks at the working
//! directory before and after their calls (`worktree`). Which turns there are, and who may rewind, is the caller's business.
//! All work blocks: callers use a blocking thread.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod blobs;
mod diff;
mod error;
mod journal;
pub mod limits;
mod plan;
mod restore;
mod rewind;
mod state;
#[cfg(test)]
mod tests;
mod worktree;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wire::changes::{Changes, Checkpoints as Kind, Rewound, UnknownChange};

use crate::blobs::Blobs;
use crate::journal::{History, Journal, Record, Step, StepEvent};
use crate::state::{FileState, StoredPath};
use crate::worktree::{Difference, LookError, Worktree};

pub use crate::error::{CheckpointError, Result};
pub use crate::worktree::Scope;

/// The directory of the checkpoints of the session in this file: next to it, with the ending `checkpoints`.
#[must_use]
pub fn directory_of(session_file: &Path) -> PathBuf {
    session_file.with_extension("checkpoints")
}

/// The checkpoints of one session. Clones share them.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    dir: Arc<Path>,
    /// Where calls are watched that report no changes.
    scope: Option<Arc<Scope>>,
    state: Arc<Mutex<Option<Stored>>>,
}

/// The content of the directory.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) blobs: Blobs,
    pub(crate) journal: Journal,
    pub(crate) history: History,
    /// The working directory, if checkpoints contain all of it.
    pub(crate) worktree: Option<Worktree>,
}

/// What of the changes of a call is not part of a checkpoint of the working directory.
const OUTSIDE: &str = "the tool may have changed files outside of the working directory, files that Git ignores, and, in the background, \
                       files after its end";

/// A change of a file that is under way.
#[derive(Debug)]
#[must_use = "the change is incomplete until it is given to `Turn::end`"]
pub struct Pending {
    id: u64,
    path: PathBuf,
    before: FileState,
}

/// A call under way of a tool that reports no changes.
#[derive(Debug)]
#[must_use = "what the call changes is not known until it is given to `Turn::end_call`"]
pub struct PendingCall {
    /// The step of the call.
    id: u64,
}

/// The turn that changes belong to.
#[derive(Debug, Clone)]
pub struct Turn {
    checkpoints: Checkpoints,
    entry: Arc<str>,
}

impl Checkpoints {
    /// The checkpoints in a directory, which need not exist. Nothing is read yet. With a scope, they contain what changes in it while a call
    /// runs that reports no changes.
    #[must_use]
    pub fn new(dir: &Path, scope: Option<Scope>) -> Self {
        Self {
            dir: dir.into(),
            scope: scope.map(Arc::new),
            state: Arc::default(),
        }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The turn of an answer, by the id of its entry.
    #[must_use]
    pub fn turn(&self, entry: &str) -> Turn {
        Turn {
            checkpoints: self.clone(),
            entry: entry.into(),
        }
    }

    /// Compares the files before and after some turns; without `turns` before and after all changes that are not undone.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn changes(&self, turns: Option<&HashSet<String>>) -> Result<Changes> {
        self.with(|stored| {
            let counts = |step: &&Step| match turns {
                Some(turns) => turns.contains(&step.turn),
                None => !step.is_undone,
            };
            let steps: Vec<&Step> = stored.history.steps.iter().filter(counts).collect();
            let mut files: BTreeMap<&Path, (&FileState, &FileState)> = BTreeMap::new();
            let mut unknown = Vec::new();
            for step in &steps {
                match &step.event {
                    StepEvent::Call(call) => rewind::note_call(&mut unknown, call, &step.turn),
                    StepEvent::Change(change) => {
                        let Some(after) = &change.after else {
                            unknown.push(rewind::interrupted(&change.path, &step.turn));
                            continue;
                        };
                        let first = files.entry(&change.path).or_insert((&change.before, after));
                        first.1 = after;
                    }
                }
            }
            if turns.is_none() {
                unknown.extend(rewind::dropped(stored.history.dropped));
            }
            for (path, states) in &files {
                for state in [states.0, states.1] {
                    unknown.extend(rewind::not_kept(path, state));
                }
            }
            let mut left = limits::DIFFS_BYTES;
            let changed = files.iter().filter(|(_, (before, after))| before != after);
            let files = changed
                .map(|(path, (before, after))| diff::describe(path, before, after, &stored.blobs, &mut left))
                .collect();
            Ok(Changes {
                checkpoints: match self.scope {
                    None => Kind::Files,
                    Some(_) => Kind::Worktree,
                },
                files,
                unknown,
            })
        })
    }

    /// Restores the files as they were when the newest of the turns in `kept` was complete; with none of them, as they were before
    /// the first turn. `files` says whether files are restored at all, `leaf` is the end of the conversation that [`Self::unrewind`]
    /// returns. Files that others have changed stay as they are, unless `force`.
    ///
    /// # Errors
    /// When the journal cannot be read or written, or what a path holds cannot be stored. What happened to each file is in the result.
    pub fn rewind(
        &self,
        kept: &HashSet<String>,
        files: bool,
        leaf: Option<String>,
        force: bool,
    ) -> Result<Rewound> {
        self.with(|stored| stored.rewind(kept, files, leaf, force))
    }

    /// Takes the newest rewind back, and returns where the conversation ended before it. Files that others have changed since then
    /// stay as they are, unless `force`; they can be restored with another call.
    ///
    /// # Errors
    /// When there is no rewind, the journal cannot be read or written, or what a path holds cannot be stored.
    pub fn unrewind(&self, force: bool) -> Result<(Rewound, Option<String>)> {
        self.with(|stored| stored.unrewind(force))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Stored) -> Result<T>) -> Result<T> {
        let mut state: MutexGuard<'_, Option<Stored>> =
            self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = match &mut *state {
            Some(stored) => stored,
            empty => empty.insert(Stored::open(&self.dir, self.scope.as_deref())?),
        };
        work(stored)
    }
}

impl Turn {
    /// Stores a file that is about to change. `path` must be absolute; links are followed, as the change will do. A file that cannot be
    /// read, is too large or no regular file is noted with the reason.
    ///
    /// # Errors
    /// When the content cannot be stored, or the journal cannot be read or written. The change must not be made then, as it could not
    /// be undone.
    pub fn begin(&self, path: &Path) -> Result<Pending> {
        let path = plan::real_path(path);
        self.checkpoints.with(|stored| {
            let before = stored.blobs.capture(&path)?;
            let id = stored.history.next_id();
            stored.write(Record::Before {
                id,
                turn: self.entry.to_string(),
                before: before.clone(),
                dirs: plan::missing_directories(&path),
                path: StoredPath(path.clone()),
            })?;
            Ok(Pending { id, path, before })
        })
    }

    /// Stores the file after the change.
    ///
    /// # Errors
    /// When the journal cannot be written. The change then counts as interrupted.
    pub fn end(&self, pending: Pending) -> Result<()> {
        self.checkpoints.with(|stored| {
            let Pending { id, path, before } = pending;
            // The file has changed already: a content that cannot be stored is recorded as unknown.
            let after = stored.blobs.capture(&path);
            let after = after.unwrap_or_else(|error| FileState::unknown(error.to_string()));
            let content = after.blob().map(str::to_owned);
            stored.write(Record::After {
                id,
                after: after.clone(),
            })?;
            if let Some(worktree) = &mut stored.worktree {
                worktree.report(&path, &before, &after);
            }
            // A refused change leaves the file as it was: nothing needs its content.
            if let Some(content) = content.filter(|name| !stored.needs().contains(name.as_str())) {
                stored.blobs.remove(&content);
            }
            stored.keep_bounds()
        })
    }

    /// A call of a tool begins that may change anything, and reports no changes. What it does outside of the scope, if there is one, is not
    /// known; a reply of a rewind says so.
    ///
    /// # Errors
    /// When a content cannot be stored, or the journal cannot be read or written. The call must not run then.
    pub fn begin_call(&self, tool: &str) -> Result<PendingCall> {
        self.checkpoints.with(|stored| {
            let looked = match &mut stored.worktree {
                None => None,
                Some(worktree) => Some(worktree.begin(&mut stored.blobs)),
            };
            let noted = stored.note(&self.entry, tool, looked);
            if noted.is_err() {
                stored.give_up_call();
            }
            Ok(PendingCall { id: noted? })
        })
    }

    /// The call has ended: stores what changed in the scope. A content that cannot be stored is recorded as unknown.
    ///
    /// # Errors
    /// When the journal cannot be written. All changes of the call then stay unknown.
    pub fn end_call(&self, call: PendingCall) -> Result<()> {
        self.checkpoints.with(|stored| {
            let Some(worktree) = &mut stored.worktree else {
                return Ok(());
            };
            let id = call.id;
            match worktree.end(&mut stored.blobs) {
                Ok(Some(differences)) => {
                    let mut records = stored.changes(&self.entry, differences);
                    let reason = OUTSIDE.to_owned();
                    records.push(Record::CallEnd { id, reason });
                    stored.write_look(records)?;
                }
                // All changes of the call stay unknown.
                Ok(None) => {}
                Err(error) => {
                    let reason = error.to_string();
                    stored.write(Record::CallEnd { id, reason })?;
                }
            }
            stored.keep_bounds()
        })
    }
}

impl Stored {
    fn open(dir: &Path, scope: Option<&Scope>) -> Result<Self> {
        let journal = Journal::new(dir.join("journal.jsonl"));
        Ok(Self {
            history: journal.read()?,
            journal,
            blobs: Blobs::open(dir.join("contents")),
            worktree: scope.cloned().map(Worktree::new),
        })
    }

    /// Writes that a call runs, with what calls have changed that ran already. Until its end, all changes of the call are unknown: the
    /// process may end first. Returns the step of the call.
    fn note(
        &mut self,
        turn: &str,
        tool: &str,
        looked: Option<std::result::Result<Vec<Difference>, LookError>>,
    ) -> Result<u64> {
        let (differences, reason) = match looked {
            None => (Vec::new(), None),
            Some(Ok(differences)) => (differences, None),
            Some(Err(LookError::Unseen(reason))) => (Vec::new(), Some(reason)),
            Some(Err(LookError::Unstored(error))) => return Err(error),
        };
        let mut records = self.changes(turn, differences);
        let id = self.history.next_id() + records.len() as u64;
        records.push(Record::Call {
            id,
            turn: turn.to_owned(),
            tool: tool.to_owned(),
            reason,
        });
        self.write_look(records)?;
        self.keep_bounds()?;
        Ok(id)
    }

    /// Writes the changes that a look has found, and the record of the call that it was made for.
    fn write_look(&mut self, records: Vec<Record>) -> Result<()> {
        let has_found = records.len() > 1;
        let written = self.write_all(records);
        if written.is_err()
            && has_found
            && let Some(worktree) = &mut self.worktree
        {
            worktree.forget();
        }
        written
    }

    /// The records of complete changes.
    fn changes(&self, turn: &str, differences: Vec<Difference>) -> Vec<Record> {
        let ids = self.history.next_id()..;
        let changes = ids
            .zip(differences)
            .flat_map(|(id, Difference { path, before, after })| {
                let before = Record::Before {
                    id,
                    turn: turn.to_owned(),
                    before,
                    // Directories have paths of their own.
                    dirs: Vec::new(),
                    path: StoredPath(path),
                };
                [before, Record::After { id, after }]
            });
        changes.collect()
    }

    /// The call that has just begun does not run. Contents that were stored for it alone go: on a full disk, others need the room.
    fn give_up_call(&mut self) {
        if let Some(worktree) = &mut self.worktree {
            worktree.give_up();
            self.remove_unneeded();
        }
    }

    /// Names of the contents that are needed.
    fn needs(&self) -> HashSet<&str> {
        let mut needed = self.history.blobs();
        needed.extend(self.worktree.iter().flat_map(Worktree::blobs));
        needed
    }

    /// Writes a record and takes it into the history.
    pub(crate) fn write(&mut self, record: Record) -> Result<()> {
        self.write_all(vec![record])
    }

    /// Writes records and takes them into the history.
    fn write_all(&mut self, records: Vec<Record>) -> Result<()> {
        self.journal.append(&records)?;
        for record in records {
            self.history.apply(record);
        }
        Ok(())
    }

    /// Drops the oldest turns, and then the oldest rewinds, if there is more than the limits allow.
    pub(crate) fn keep_bounds(&mut self) -> Result<()> {
        if self.blobs.bytes() > limits::STORE_BYTES {
            // Contents that only an older look at the working directory needed may be all that is too much.
            self.remove_unneeded();
        }
        while self.history.steps.len() > limits::STEPS || self.blobs.bytes() > limits::STORE_BYTES {
            if !self.history.drop_older_half() && !self.history.drop_oldest_rewind() {
                break;
            }
            self.journal.rewrite(&self.history)?;
            self.remove_unneeded();
        }
        Ok(())
    }

    /// Removes the contents that are not needed.
    fn remove_unneeded(&mut self) {
        let needed: HashSet<String> = self.needs().into_iter().map(str::to_owned).collect();
        self.blobs.retain(|name| needed.contains(name));
    }
}

/// A gap in the knowledge of a path, for clients.
pub(crate) fn unknown(path: &Path, reason: impl Into<String>, turn: Option<&str>) -> UnknownChange {
    UnknownChange {
        reason: reason.into(),
        path: Some(path.to_string_lossy().into_owned()),
        tool_name: None,
        entry_id: turn.map(str::to_owned),
    }
}
