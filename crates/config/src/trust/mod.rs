//! Who decided whether a project is trusted, and what that comes to: the command line, the client, an extension of the user,
//! the stored decisions, the user's default, in this order (pi 1.5 security docs; pi-1.5-delta.md 6).
//!
//! The file of stored decisions is `store`'s business, what a project brings is `brought`'s, and what of its settings counts
//! is `settings::trust`'s. Nothing that a project or a model says makes a project trusted.

mod access;
mod brought;
mod limits;
mod sandboxed;
mod store;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::diagnostic::Diagnostic;

pub use access::{ProjectAccess, ProjectTrust};
pub use brought::{Brought, Project, Texts, held_back};
use sandboxed::SandboxedDirs;
pub(crate) use store::take_lock;
pub use store::{Stored, TrustFile, real};

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedBy {
    /// `--approve` or `--no-approve`.
    CommandLine,
    /// The client, for this process.
    Client,
    /// An extension of the user, for this process.
    Extension,
    /// A stored decision for this directory or one above.
    Stored(PathBuf),
    /// The user's `defaultProjectTrust`.
    Setting,
    /// No decision was made.
    Nobody,
}

impl DecidedBy {
    /// One word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::CommandLine => "command-line",
            Self::Client => "client",
            Self::Extension => "extension",
            Self::Stored(_) => "stored",
            Self::Setting => "setting",
            Self::Nobody => "nobody",
        }
    }
}

/// The decision about a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What the project may decide.
    pub access: ProjectAccess,
    /// Who says so.
    pub by: DecidedBy,
}

/// A directory for which a wider decision does not count, because confined commands could write it.
fn undecided(cwd: &Path, notes: &mut Vec<Diagnostic>) -> Decision {
    let brings_code = [".pi", ".omp", ".xcsh", ".mcp.json"];
    if brings_code
        .iter()
        .any(|name| cwd.join(name).symlink_metadata().is_ok())
    {
        let message = "not trusted: commands in the sandbox could write here. Check what it brings, then run: pinion trust";
        notes.push(Diagnostic::new(cwd, message));
    }
    Decision {
        access: ProjectAccess::Data,
        by: DecidedBy::Nobody,
    }
}

/// The decisions of a process. Shared by all its sessions.
#[derive(Debug)]
pub struct Trust {
    file: TrustFile,
    sandboxed: SandboxedDirs,
    /// `--approve` is true, `--no-approve` false.
    command_line: Option<bool>,
    /// The decisions since the process began, by real path.
    decided: Mutex<HashMap<PathBuf, (bool, DecidedBy)>>,
}

impl Trust {
    /// The decisions kept in this agent directory; the command line's counts for every project.
    #[must_use]
    pub fn new(agent_dir: &Path, command_line: Option<bool>) -> Self {
        Self {
            file: TrustFile::new(agent_dir),
            sandboxed: SandboxedDirs::new(agent_dir),
            command_line,
            decided: Mutex::default(),
        }
    }

    /// The stored decisions.
    #[must_use]
    pub fn file(&self) -> &TrustFile {
        &self.file
    }

    /// Notes that confined commands may write these directories: decisions above no longer cover what lies in them.
    ///
    /// # Errors
    /// If that cannot be stored.
    pub fn note_sandboxed<'a>(&self, dirs: impl Iterator<Item = &'a Path>) -> std::io::Result<()> {
        self.sandboxed.add(dirs)
    }

    /// What holds for a project. `default` is the user's setting, if there is one. A broken file of decisions decides nothing, but it may
    /// have a decision against this project: then the user's setting does not trust it.
    pub fn decide(
        &self,
        cwd: &Path,
        mut default: Option<ProjectTrust>,
        notes: &mut Vec<Diagnostic>,
    ) -> Decision {
        let plain = |trusted: bool, by: DecidedBy| Decision {
            access: if trusted {
                ProjectAccess::Full
            } else {
                ProjectAccess::None
            },
            by,
        };
        // The user of the client has seen the command line, and decided later.
        if let Some((trusted, by)) = self.lock().get(&real(cwd)).cloned() {
            return plain(trusted, by);
        }
        if let Some(trusted) = self.command_line {
            return plain(trusted, DecidedBy::CommandLine);
        }
        match self.file.nearest(cwd) {
            Ok(Some(stored)) if stored.trusted && stored.path != real(cwd) && self.sandboxed.hold(cwd) => {
                return undecided(cwd, notes);
            }
            Ok(Some(stored)) => return plain(stored.trusted, DecidedBy::Stored(stored.path)),
            Ok(None) => {}
            Err(problem) => {
                notes.push(problem);
                default = default.filter(|default| *default != ProjectTrust::Always);
            }
        }
        let by = |by| match default {
            Some(_) => by,
            None => DecidedBy::Nobody,
        };
        match default.unwrap_or_default() {
            ProjectTrust::Always if self.sandboxed.hold(cwd) => undecided(cwd, notes),
            ProjectTrust::Always => plain(true, by(DecidedBy::Setting)),
            ProjectTrust::Never => plain(false, by(DecidedBy::Setting)),
            ProjectTrust::Ask => Decision {
                access: ProjectAccess::Data,
                by: by(DecidedBy::Setting),
            },
        }
    }

    /// Returns true while an extension of the user may still decide: the command line, the client and other extensions have not.
    #[must_use]
    pub fn is_open(&self, cwd: &Path) -> bool {
        self.command_line.is_none() && !self.lock().contains_key(&real(cwd))
    }

    /// Decides for the rest of the process; nothing takes the decision back.
    pub fn set(&self, cwd: &Path, trusted: Option<bool>, by: DecidedBy) {
        let mut decided = self.lock();
        match trusted {
            Some(trusted) => drop(decided.insert(real(cwd), (trusted, by))),
            None => drop(decided.remove(&real(cwd))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, (bool, DecidedBy)>> {
        // Each change is one insertion: a panic elsewhere leaves nothing half done.
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
