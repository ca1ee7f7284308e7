//! What a rewind has to do: of each path, what it should hold, and what it holds if only the agent has changed it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::journal::{Change, Step, StepEvent};
use crate::limits;
use crate::state::{FileState, StoredPath};

/// The states of a path over the steps that are undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPlan {
    /// What it held before the first of the steps.
    pub(crate) target: FileState,
    /// What it held after the last of them; none if that is not known.
    pub(crate) expected: Option<FileState>,
    /// Something else has changed it between two of the steps.
    pub(crate) has_gap: bool,
    /// Ids of the steps.
    pub(crate) steps: Vec<u64>,
    /// The turn of the first of them.
    pub(crate) turn: String,
    /// Directories that the steps have made.
    pub(crate) dirs: Vec<StoredPath>,
}

/// The steps that a rewind undoes: all that are not undone, after the last one of a turn that stays.
pub(crate) fn undone<'a>(steps: &'a [Step], kept: &HashSet<String>) -> Vec<&'a Step> {
    let stays = |step: &Step| !step.is_undone && kept.contains(&step.turn);
    let begin = steps.iter().rposition(stays).map_or(0, |at| at + 1);
    let after = steps.iter().skip(begin);
    after.filter(|step| !step.is_undone).collect()
}

/// The plan for each path that the steps changed.
pub(crate) fn by_path(steps: &[&Step]) -> BTreeMap<PathBuf, PathPlan> {
    let mut plans: BTreeMap<PathBuf, PathPlan> = BTreeMap::new();
    for step in steps {
        let StepEvent::Change(change) = &step.event else {
            continue;
        };
        match plans.get_mut(&change.path) {
            Some(plan) => plan.follow(change, step.id),
            None => {
                let plan = PathPlan {
                    target: change.before.clone(),
                    expected: change.after.clone(),
                    has_gap: false,
                    steps: vec![step.id],
                    turn: step.turn.clone(),
                    dirs: change.dirs.clone(),
                };
                plans.insert(change.path.clone(), plan);
            }
        }
    }
    plans
}

impl PathPlan {
    fn follow(&mut self, change: &Change, id: u64) {
        self.has_gap |= self.expected.as_ref() != Some(&change.before);
        self.expected.clone_from(&change.after);
        self.steps.push(id);
        for dir in &change.dirs {
            if !self.dirs.contains(dir) {
                self.dirs.push(dir.clone());
            }
        }
    }

    /// Returns true if something other than the steps has changed the path, which holds `now`.
    pub(crate) fn is_changed_by_others(&self, now: &FileState) -> bool {
        self.has_gap || self.expected.as_ref() != Some(now) || matches!(now, FileState::Unknown { .. })
    }
}

/// The path with links resolved, so that it names the file that a change will reach. Links whose target does not exist are followed,
/// too: a change creates the target.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let mut links = limits::LINKS;
    resolve(path, &mut links)
}

fn resolve(path: &Path, links: &mut u32) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_path_buf();
    };
    let parent = resolve(parent, links);
    let here = parent.join(name);
    match here.read_link() {
        Ok(target) if *links > 0 => {
            *links -= 1;
            resolve(&parent.join(target), links)
        }
        _ => here,
    }
}

/// Directories above a path that do not exist, the outermost first.
pub(crate) fn missing_directories(path: &Path) -> Vec<StoredPath> {
    let above = path.ancestors().skip(1);
    let missing = above.take_while(|dir| dir.symlink_metadata().is_err());
    let mut dirs: Vec<StoredPath> = missing.map(StoredPath::from).collect();
    dirs.reverse();
    dirs
}
