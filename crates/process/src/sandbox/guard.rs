//! The sandbox of a toolbox: its policy for each call, its directory for temporary files, and how tools are put into it.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::hint::Outcome;
use super::{Policy, Sandbox, hint};
use crate::reaper::SpawnSpec;

/// What a file tool is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Read a file, or look through a directory.
    Read,
    /// Change a file.
    Edit,
    /// Change a file, or make it with its directories.
    Write,
}

/// A sandbox with its directory for temporary files, which is made when it is first needed and removed with this.
#[derive(Debug)]
pub struct Guard {
    sandbox: Sandbox,
    tmp_dir: PathBuf,
    own: Mutex<Option<PathBuf>>,
}

impl Guard {
    /// Its temporary files lie in a directory of its own below `tmp_dir`.
    pub fn new(sandbox: Sandbox, tmp_dir: &Path) -> Self {
        Self {
            sandbox,
            tmp_dir: tmp_dir.to_path_buf(),
            own: Mutex::default(),
        }
    }

    /// Returns true if the sandbox covers the user's own commands.
    pub fn is_for_users(&self) -> bool {
        self.sandbox.user_commands
    }

    /// Returns true if commands may use the network.
    pub fn allows_network(&self) -> bool {
        self.sandbox.network
    }

    fn temp(&self) -> Result<PathBuf, String> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        // Systems remove temporary directories that nothing has used for days. Another user can make one with that name afterwards.
        if let Some(path) = own.as_ref().filter(|path| is_own_directory(path)) {
            return Ok(path.clone());
        }
        let path = self
            .tmp_dir
            .join(format!("pinion-{}", uuid::Uuid::new_v4().simple()));
        // It fails if the directory exists, so that no other user can have prepared it. After an error the next call tries again.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| format!("The sandbox has no directory for temporary files: {error}"))?;
        Ok(own.insert(path).clone())
    }

    /// What holds for a call in `cwd`.
    ///
    /// # Errors
    /// When there is no sandbox to be had; nothing must run then.
    pub fn policy(&self, cwd: &Path) -> Result<Policy, String> {
        if cfg!(not(target_os = "linux")) {
            return Err("The sandbox is there on Linux only. Nothing was run.".to_owned());
        }
        Ok(Policy::of(&self.sandbox, cwd, &self.temp()?))
    }

    /// A command, confined.
    ///
    /// # Errors
    /// As [`Self::policy`].
    pub fn command(&self, spec: SpawnSpec, policy: &Policy) -> Result<SpawnSpec, String> {
        self.sandbox.confine(spec, policy, &self.temp()?)
    }

    /// A line for the model about the sandbox, if it may have been in the way of a command that printed `text`.
    pub fn hint(&self, policy: &Policy, text: &str, outcome: Outcome) -> Option<String> {
        hint::hint(policy, text, outcome)
    }

    /// What the sandbox forbids in `cwd`, for the system prompt.
    ///
    /// # Errors
    /// As [`Self::policy`].
    pub fn rules(&self, cwd: &Path) -> Result<String, String> {
        Ok(hint::rules(&self.policy(cwd)?))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = own {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// Returns true if a directory of this user is at a path.
fn is_own_directory(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw())
}

/// Checks that a file tool may reach a path, as [`file_tool`] does before its work.
///
/// # Errors
/// The text for the model when it may not.
pub fn check_file(policy: Option<&Policy>, aim: Aim, path: &Path) -> Result<(), String> {
    match policy {
        #[cfg(target_os = "linux")]
        Some(policy) => super::files::check(policy, aim, path),
        #[cfg(not(target_os = "linux"))]
        Some(_) => Err(format!("No sandbox for {} ({aim:?})", path.display())),
        None => Ok(()),
    }
}

/// Does the work of a file tool, inside of a policy if there is one. Blocks.
///
/// # Errors
/// Those of the work, and the text for the model when it may not be done.
pub fn file_tool<T: Send>(
    policy: Option<&Policy>,
    aim: Aim,
    path: &Path,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    match policy {
        #[cfg(target_os = "linux")]
        Some(policy) => super::files::run(policy, aim, path, work),
        #[cfg(not(target_os = "linux"))]
        Some(_) => Err(format!("No sandbox for {} ({aim:?})", path.display())),
        None => work(),
    }
}
