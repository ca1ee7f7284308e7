//! Carries out rewinds and takes them back.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use wire::changes::{KeptFile, KeptReason, RestoredFile, Rewound, UnknownChange};

use crate::blobs::MODE;
use crate::diff::status;
use crate::error::{CheckpointError, Result};
use crate::journal::{Call, Record, RemovedDirectory, Rewind, RewoundFile, StepEvent};
use crate::plan::PathPlan;
use crate::state::{FileState, StoredPath};
use crate::{Stored, plan, restore, unknown};

/// What one path should hold, and what it holds.
struct Wish {
    path: PathBuf,
    now: FileState,
    target: FileState,
}

impl Stored {
    /// See `Checkpoints::rewind`.
    pub(crate) fn rewind(
        &mut self,
        kept: &HashSet<String>,
        files: bool,
        leaf: Option<String>,
        force: bool,
    ) -> Result<Rewound> {
        let mut reply = Rewound::default();
        let mut rewind = Rewind {
            leaf,
            undone: HashSet::new(),
            files: Vec::new(),
            dirs: Vec::new(),
        };
        if files {
            let steps = plan::undone(&self.history.steps, kept);
            for step in &steps {
                if let StepEvent::Call(call) = &step.event {
                    note_call(&mut reply.unknown, call, &step.turn);
                    rewind.undone.insert(step.id);
                }
            }
            let mut plans = plan::by_path(&steps);
            if kept.is_empty() {
                reply.unknown.extend(dropped(self.history.dropped));
            }
            let (mut wishes, mut link) = (Vec::new(), None);
            for (path, plan) in &plans {
                let now = self.capture_in_order(path, &mut link)?;
                if let FileState::Unknown { reason } = &plan.target {
                    reply
                        .unknown
                        .push(unknown(path, reason.clone(), Some(&plan.turn)));
                } else if now != plan.target && plan.is_changed_by_others(&now) && !force {
                    reply.kept.push(changed(path));
                } else {
                    let (path, target) = (path.clone(), plan.target.clone());
                    wishes.push(Wish { path, now, target });
                }
            }
            for wish in &wishes {
                let Some(plan) = plans.get(&wish.path) else {
                    continue;
                };
                rewind.undone.extend(&plan.steps);
                if wish.now != wish.target {
                    rewind.files.push(RewoundFile {
                        path: StoredPath(wish.path.clone()),
                        was: wish.now.clone(),
                        is: wish.target.clone(),
                    });
                }
                if wish.target == FileState::Absent {
                    note_directories(&plan.dirs, &mut rewind.dirs);
                }
            }
            return self.carry_out_rewind(rewind, &wishes, &mut plans, reply);
        }
        self.carry_out_rewind(rewind, &[], &mut BTreeMap::new(), reply)
    }

    /// Writes what a rewind is about to do, does it, and writes what failed: whenever the process ends, the journal tells which files may
    /// have changed.
    fn carry_out_rewind(
        &mut self,
        rewind: Rewind,
        wishes: &[Wish],
        plans: &mut BTreeMap<PathBuf, PathPlan>,
        mut reply: Rewound,
    ) -> Result<Rewound> {
        self.write(Record::Rewind(rewind))?;
        let failed = self.carry_out(wishes, &mut reply);
        let mut steps = HashSet::new();
        for wish in wishes {
            let Some(plan) = plans.remove(&wish.path) else {
                continue;
            };
            if failed.contains(&wish.path) {
                steps.extend(plan.steps);
            } else if wish.target == FileState::Absent {
                remove_directories(&plan.dirs);
            }
        }
        let files = failed.into_iter().map(StoredPath).collect();
        self.write(Record::Rewound { steps, files })?;
        self.keep_bounds()?;
        Ok(reply)
    }

    /// See `Checkpoints::unrewind`.
    pub(crate) fn unrewind(&mut self, force: bool) -> Result<(Rewound, Option<String>)> {
        let Some(rewind) = self.history.rewinds.last().cloned() else {
            return Err(CheckpointError::NothingRewound);
        };
        let mut reply = Rewound::default();
        let mut kept: Vec<StoredPath> = Vec::new();
        let (mut wishes, mut link) = (Vec::new(), None);
        for file in rewind.files {
            let path = file.path.0;
            let now = self.capture_in_order(&path, &mut link)?;
            if let Some(note) = not_kept(&path, &file.was) {
                reply.unknown.push(note);
            } else if now != file.was && now != file.is && !force {
                reply.kept.push(changed(&path));
                kept.push(StoredPath(path));
            } else {
                let target = file.was;
                wishes.push(Wish { path, now, target });
            }
        }
        self.make_directories(&rewind.dirs);
        kept.extend(self.carry_out(&wishes, &mut reply).into_iter().map(StoredPath));
        for RemovedDirectory { path, mode } in rewind.dirs.iter().rev() {
            // A directory that was not needed again is not there.
            let _absent = restore::set_directory_mode(&path.0, *mode);
        }
        self.write(Record::Unrewind { kept })?;
        self.keep_bounds()?;
        Ok((reply, rewind.leaf))
    }

    /// What a path holds before anything is restored. If its content cannot be stored, nothing will be, and the contents that were stored
    /// so far go: on a full disk, others need the room.
    fn capture(&mut self, path: &Path) -> Result<FileState> {
        let captured = self.blobs.capture(path);
        if captured.is_err() {
            self.remove_unneeded();
        }
        captured
    }

    /// Captures paths in their order, in which a path follows those above it. `link` is the newest path that is a link: a path below it
    /// holds nothing, as the target of the link lies elsewhere.
    fn capture_in_order(&mut self, path: &Path, link: &mut Option<PathBuf>) -> Result<FileState> {
        if link.as_ref().is_some_and(|link| path.starts_with(link)) {
            return Ok(FileState::Absent);
        }
        let now = self.capture(path)?;
        *link = matches!(now, FileState::Link { .. }).then(|| path.to_path_buf());
        Ok(now)
    }

    /// Makes the directories that a rewind removed. If one cannot be made, restoring a file in it says why.
    fn make_directories(&self, dirs: &[RemovedDirectory]) {
        for RemovedDirectory { path, mode } in dirs {
            if path.0.symlink_metadata().is_err() {
                let state = FileState::Directory { mode: *mode };
                let _stays_away = restore::restore(&path.0, &state, &self.blobs);
            }
        }
    }

    /// Gives each path what it should hold. Returns the paths for which that failed.
    fn carry_out(&mut self, wishes: &[Wish], reply: &mut Rewound) -> HashSet<PathBuf> {
        let mut failures: BTreeMap<&Path, String> = BTreeMap::new();
        let open: Vec<&Wish> = wishes.iter().filter(|wish| wish.now != wish.target).collect();
        let is_directory = |state: &FileState| matches!(state, FileState::Directory { .. });
        // A directory that is to be emptied or filled may have lost the permission for it.
        for wish in &open {
            if let FileState::Directory { mode } = wish.now
                && mode & 0o700 != 0o700
            {
                // What it prevents fails below, with a reason.
                let _stays = restore::set_directory_mode(&wish.path, mode | 0o700);
            }
        }
        // What goes, the innermost first: a directory is removed once it is empty. The order of paths has parents first.
        let goes = |wish: &&&Wish| {
            wish.now != FileState::Absent && is_directory(&wish.now) != is_directory(&wish.target)
                || wish.target == FileState::Absent
        };
        for wish in open.iter().filter(goes).rev() {
            if let Err(error) = restore::remove(&wish.path) {
                failures.insert(&wish.path, error.to_string());
            }
        }
        for wish in open.iter().filter(|wish| wish.target != FileState::Absent) {
            if let Err(error) = restore::restore(&wish.path, &wish.target, &self.blobs) {
                failures.entry(&wish.path).or_insert(error.to_string());
            }
        }
        // Permissions of directories come last, as they may forbid to write into them.
        for wish in open.iter().rev() {
            if let FileState::Directory { mode } = wish.target
                && let Err(error) = restore::set_directory_mode(&wish.path, mode)
            {
                failures.entry(&wish.path).or_insert(error.to_string());
            }
        }
        for wish in open {
            let path = wish.path.to_string_lossy().into_owned();
            match failures.get(wish.path.as_path()) {
                None => reply.restored.push(RestoredFile {
                    path,
                    status: status(&wish.now, &wish.target),
                }),
                Some(error) => reply.kept.push(KeptFile {
                    path,
                    reason: KeptReason::Failed,
                    message: error.clone(),
                }),
            }
        }
        failures.into_keys().map(Path::to_path_buf).collect()
    }
}

/// Adds directories that exist, with their permission bits.
fn note_directories(dirs: &[StoredPath], noted: &mut Vec<RemovedDirectory>) {
    for dir in dirs {
        let meta = dir.0.symlink_metadata().ok().filter(std::fs::Metadata::is_dir);
        let is_noted = noted.iter().any(|other| other.path == *dir);
        if let Some(meta) = meta.filter(|_| !is_noted) {
            let mode = meta.permissions().mode() & MODE;
            let path = dir.clone();
            noted.push(RemovedDirectory { path, mode });
        }
    }
}

/// Removes directories that a tool made for a file, as far as they are empty.
fn remove_directories(dirs: &[StoredPath]) {
    for dir in dirs.iter().rev() {
        if restore::remove_directory(&dir.0).is_err() {
            break;
        }
    }
}

fn changed(path: &Path) -> KeptFile {
    KeptFile {
        path: path.to_string_lossy().into_owned(),
        reason: KeptReason::Changed,
        message: "changed by something other than the agent's tools; force restores it".to_owned(),
    }
}

/// Adds a call whose changes are not known, once for each tool and turn.
pub(crate) fn note_call(notes: &mut Vec<UnknownChange>, call: &Call, turn: &str) {
    let all = "the tool may have changed files that the checkpoint does not contain";
    let note = UnknownChange {
        reason: call.reason.as_deref().unwrap_or(all).to_owned(),
        path: None,
        tool_name: Some(call.tool.clone()),
        entry_id: Some(turn.to_owned()),
    };
    if !notes.contains(&note) {
        notes.push(note);
    }
}

/// The note on a change that the end of the process interrupted.
pub(crate) fn interrupted(path: &Path, turn: &str) -> UnknownChange {
    unknown(path, "the process ended during the change", Some(turn))
}

/// The note on a state whose content is not kept.
pub(crate) fn not_kept(path: &Path, state: &FileState) -> Option<UnknownChange> {
    match state {
        FileState::Unknown { reason } => Some(unknown(path, reason.clone(), None)),
        _ => None,
    }
}

/// The note on steps that were dropped.
pub(crate) fn dropped(steps: u64) -> Option<UnknownChange> {
    (steps > 0).then(|| UnknownChange {
        reason: format!(
            "the checkpoints of the {steps} oldest changes were dropped to stay within the limits"
        ),
        path: None,
        tool_name: None,
        entry_id: None,
    })
}
