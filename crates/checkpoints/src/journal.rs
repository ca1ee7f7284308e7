//! The journal of a session's checkpoints: one line for each thing that happened, in order. Reading it again gives the history.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::blobs::{make_private_dir, private_file};
use crate::error::{CheckpointError, Result};
use crate::limits;
use crate::state::{FileState, StoredPath};

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(crate) enum Record {
    /// A file is about to change.
    Before {
        id: u64,
        turn: String,
        path: StoredPath,
        before: FileState,
        /// Directories above it that do not exist yet, the outermost first.
        dirs: Vec<StoredPath>,
    },
    /// The file has changed, or not.
    After { id: u64, after: FileState },
    /// A tool ran that may have changed anything.
    Call {
        id: u64,
        turn: String,
        tool: String,
        /// Which changes of it are not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The tool has ended: of its changes, only those of this reason are not known.
    CallEnd { id: u64, reason: String },
    /// Steps are about to be undone.
    Rewind(Rewind),
    /// The newest rewind is complete, but for these steps and files.
    Rewound {
        steps: HashSet<u64>,
        files: Vec<StoredPath>,
    },
    /// The newest rewind was taken back, but for some files.
    Unrewind { kept: Vec<StoredPath> },
    /// Older steps were dropped.
    Dropped { steps: u64 },
    /// Steps of these ids are undone, by rewinds that can no longer be taken back.
    Undone { ids: HashSet<u64> },
}

/// A rewind: the steps that it undid, and what it did to files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rewind {
    /// The end of the conversation before the rewind, if the rewind moved it.
    pub(crate) leaf: Option<String>,
    /// Ids of the undone steps.
    pub(crate) undone: HashSet<u64>,
    /// The files that were changed.
    pub(crate) files: Vec<RewoundFile>,
    /// Directories that may have been removed, the outermost first.
    pub(crate) dirs: Vec<RemovedDirectory>,
}

/// A directory before a rewind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemovedDirectory {
    pub(crate) path: StoredPath,
    /// Permission bits.
    pub(crate) mode: u32,
}

/// A file that a rewind changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RewoundFile {
    pub(crate) path: StoredPath,
    /// What it held before the rewind.
    pub(crate) was: FileState,
    /// What it holds after the rewind.
    pub(crate) is: FileState,
}

/// Something that happened in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) id: u64,
    /// The entry of the answer that made the call.
    pub(crate) turn: String,
    pub(crate) event: StepEvent,
    /// A rewind has undone it.
    pub(crate) is_undone: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepEvent {
    /// A file changed.
    Change(Change),
    /// A tool ran that may have changed anything.
    Call(Call),
}

/// A call of a tool that reports no changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) tool: String,
    /// Which changes of it are not known; none if that is all of them.
    pub(crate) reason: Option<String>,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    pub(crate) before: FileState,
    /// None: the process ended before the change was complete.
    pub(crate) after: Option<FileState>,
    pub(crate) dirs: Vec<StoredPath>,
}

/// All that happened, as far as it is kept.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) steps: Vec<Step>,
    /// Rewinds that can be taken back, the newest last.
    pub(crate) rewinds: Vec<Rewind>,
    /// Number of steps that were dropped.
    pub(crate) dropped: u64,
    /// The newest rewind was begun and is not complete.
    is_rewinding: bool,
    next: u64,
}

impl History {
    /// The id of the next step.
    pub(crate) fn next_id(&self) -> u64 {
        self.next
    }

    /// Takes a record in.
    pub(crate) fn apply(&mut self, record: Record) {
        match record {
            Record::Before {
                id,
                turn,
                path,
                before,
                dirs,
            } => {
                let change = Change {
                    path: path.0,
                    before,
                    after: None,
                    dirs,
                };
                self.push(id, turn, StepEvent::Change(change));
            }
            Record::After { id, after } => self.complete(id, after),
            Record::Call {
                id,
                turn,
                tool,
                reason,
            } => self.push(id, turn, StepEvent::Call(Call { tool, reason })),
            Record::CallEnd { id, reason } => {
                let step = self.steps.iter_mut().rev().find(|step| step.id == id);
                if let Some(StepEvent::Call(call)) = step.map(|step| &mut step.event) {
                    call.reason = Some(reason);
                }
            }
            Record::Rewind(rewind) => {
                self.interrupt();
                self.is_rewinding = true;
                self.mark(&rewind.undone, true);
                if self.rewinds.len() >= limits::REWINDS {
                    self.rewinds.remove(0);
                }
                self.rewinds.push(rewind);
            }
            Record::Rewound { steps, files } => {
                self.is_rewinding = false;
                self.mark(&steps, false);
                if let Some(rewind) = self.rewinds.last_mut() {
                    rewind.undone.retain(|id| !steps.contains(id));
                    rewind.files.retain(|file| !files.contains(&file.path));
                }
            }
            Record::Unrewind { kept } => {
                if let Some(mut rewind) = self.rewinds.pop() {
                    self.mark(&rewind.undone, false);
                    rewind.undone.clear();
                    rewind.files.retain(|file| kept.contains(&file.path));
                    if !rewind.files.is_empty() {
                        self.rewinds.push(rewind);
                    }
                }
            }
            Record::Dropped { steps } => self.dropped += steps,
            Record::Undone { ids } => self.mark(&ids, true),
        }
    }

    /// The end of the process interrupted the newest rewind: its steps count as not undone, so that another rewind completes it. The
    /// files that it has changed can still be taken back.
    fn interrupt(&mut self) {
        if std::mem::take(&mut self.is_rewinding)
            && let Some(rewind) = self.rewinds.last_mut()
        {
            let undone = std::mem::take(&mut rewind.undone);
            self.mark(&undone, false);
        }
    }

    fn push(&mut self, id: u64, turn: String, event: StepEvent) {
        self.next = self.next.max(id + 1);
        self.steps.push(Step {
            id,
            turn,
            event,
            is_undone: false,
        });
    }

    /// A change is complete. A change without effect is forgotten.
    fn complete(&mut self, id: u64, now: FileState) {
        let Some(at) = self.steps.iter().rposition(|step| step.id == id) else {
            return;
        };
        let Some(Step {
            event: StepEvent::Change(change),
            ..
        }) = self.steps.get_mut(at)
        else {
            return;
        };
        if change.before == now && !matches!(now, FileState::Unknown { .. }) {
            self.steps.remove(at);
        } else {
            change.after = Some(now);
        }
    }

    fn mark(&mut self, ids: &HashSet<u64>, is_undone: bool) {
        for step in self.steps.iter_mut().filter(|step| ids.contains(&step.id)) {
            step.is_undone = is_undone;
        }
    }

    /// Drops the oldest rewind; the newest stays. Returns false if there is none to drop.
    pub(crate) fn drop_oldest_rewind(&mut self) -> bool {
        let has_more = self.rewinds.len() > 1;
        if has_more {
            self.rewinds.remove(0);
        }
        has_more
    }

    /// Drops the older half, in whole turns. The newest turn stays. Returns false if nothing was dropped.
    pub(crate) fn drop_older_half(&mut self) -> bool {
        let half = self.steps.len() / 2;
        let Some(turn) = self.steps.get(half).map(|step| step.turn.clone()) else {
            return false;
        };
        let begins = self.steps.iter().position(|step| step.turn == turn).unwrap_or(0);
        let after = |step: &Step| step.turn != turn;
        // A turn that fills more than half goes as well, unless nothing would be left.
        let cut = match begins {
            0 => self.steps.iter().position(after).unwrap_or(0),
            begins => begins,
        };
        self.dropped += cut as u64;
        self.steps.drain(..cut);
        cut > 0
    }

    /// Names of the contents that are needed.
    pub(crate) fn blobs(&self) -> HashSet<&str> {
        let steps = self.steps.iter().filter_map(|step| match &step.event {
            StepEvent::Change(change) => Some([Some(&change.before), change.after.as_ref()]),
            StepEvent::Call(_) => None,
        });
        let files = self.rewinds.iter().flat_map(|rewind| &rewind.files);
        let rewound = files.map(|file| [Some(&file.was), Some(&file.is)]);
        let states = steps.chain(rewound).flatten().flatten();
        states.filter_map(FileState::blob).collect()
    }

    /// The records that give this history.
    fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::Dropped { steps: self.dropped }];
        for Step { id, turn, event, .. } in self.steps.iter().cloned() {
            match event {
                StepEvent::Call(Call { tool, reason }) => records.push(Record::Call {
                    id,
                    turn,
                    tool,
                    reason,
                }),
                StepEvent::Change(change) => {
                    records.push(Record::Before {
                        id,
                        turn,
                        path: StoredPath(change.path),
                        before: change.before,
                        dirs: change.dirs,
                    });
                    records.extend(change.after.map(|after| Record::After { id, after }));
                }
            }
        }
        let undone = self.steps.iter().filter(|step| step.is_undone);
        records.push(Record::Undone {
            ids: undone.map(|step| step.id).collect(),
        });
        for rewind in self.rewinds.iter().cloned() {
            records.push(Record::Rewind(rewind));
            records.push(Record::Rewound {
                steps: HashSet::new(),
                files: Vec::new(),
            });
        }
        records
    }
}

/// The file of the journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    /// Length of its whole lines, if a part of a line may follow them that could not be cut off.
    torn_at: Option<u64>,
}

impl Journal {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, torn_at: None }
    }

    /// Reads the history. The journal ends at the first line that cannot be read: a crash may have cut the last one.
    pub(crate) fn read(&self) -> Result<History> {
        let mut history = History::default();
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if crate::blobs::is_absent(&error) => return Ok(history),
            Err(error) => return Err(self.failed("cannot read", error)),
        };
        let mut whole = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let record = line.strip_suffix(b"\n").map(serde_json::from_slice);
            let Some(Ok(record)) = record else { break };
            history.apply(record);
            whole += line.len();
        }
        history.interrupt();
        if whole < bytes.len() {
            let file = OpenOptions::new().write(true).open(&self.path);
            file.and_then(|file| file.set_len(whole as u64))
                .map_err(|error| self.failed("cannot repair", error))?;
        }
        Ok(history)
    }

    /// Appends records, all of them or none.
    pub(crate) fn append(&mut self, records: &[Record]) -> Result<()> {
        let mut lines = Vec::new();
        for record in records {
            let line = line(record).map_err(|error| self.failed("cannot write", error))?;
            lines.extend(line);
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let written = make_private_dir(self.path.parent().unwrap_or(Path::new("")))
            .and_then(|()| options.open(&self.path))
            .and_then(|file| self.write(file, &lines));
        written.map_err(|error| self.failed("cannot write", error))
    }

    /// Writes lines at the end of the file. A part of them is cut off again: the next line would be glued to it, and reading would end
    /// there. As long as it cannot be cut off, nothing is written.
    fn write(&mut self, mut file: File, lines: &[u8]) -> io::Result<()> {
        let mut len = file.metadata()?.len();
        if let Some(whole) = self.torn_at.filter(|whole| *whole < len) {
            file.set_len(whole)?;
            len = whole;
        }
        self.torn_at = None;
        let written = file.write_all(lines);
        if written.is_err() && file.set_len(len).is_err() {
            self.torn_at = Some(len);
        }
        written
    }

    /// Writes the journal anew, after steps were dropped.
    pub(crate) fn rewrite(&mut self, history: &History) -> Result<()> {
        let part = self.path.with_extension("part");
        let written = private_file(&part).and_then(|mut file| {
            history
                .records()
                .iter()
                .try_for_each(|record| file.write_all(&line(record)?))
        });
        written
            .and_then(|()| fs::rename(&part, &self.path))
            .map_err(|error| self.failed("cannot write", error))?;
        // The new file has whole lines only.
        self.torn_at = None;
        Ok(())
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> CheckpointError {
        CheckpointError::io(doing, &self.path, error)
    }
}

fn line(record: &Record) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}
