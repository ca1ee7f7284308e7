//! Hooks for the working directory of a session, which belongs to the host: `prepare` before a worker opens the session, `save` before
//! clients see that a run has ended, and before the session leaves the worker in good order.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use store::SessionId;
use tokio::process::Command;

use crate::limits::{WORKSPACE_TEXT, WORKSPACE_WAIT};

/// The executables.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceHooks {
    /// Makes the directory as `save` left it, if it is not there.
    pub prepare: Option<PathBuf>,
    /// Keeps the content of the directory for other workers.
    pub save: Option<PathBuf>,
}

impl WorkspaceHooks {
    /// Runs `prepare`, then checks that the directory exists.
    pub(crate) async fn prepare(&self, session: &SessionId, cwd: &Path) -> Result<()> {
        if let Some(program) = &self.prepare {
            run(program, "prepare", session, cwd).await?;
        }
        if !cwd.is_dir() {
            bail!(
                "the working directory {} of session {session} does not exist on this worker. A session moves only between workers \
                 that see the same path, or that have a hook: --prepare PROGRAM",
                cwd.display()
            );
        }
        Ok(())
    }

    /// Runs `save`.
    pub(crate) async fn save(&self, session: &SessionId, cwd: &Path) -> Result<()> {
        match &self.save {
            Some(program) => run(program, "save", session, cwd).await,
            None => Ok(()),
        }
    }
}

/// Runs one hook to its end. It is killed at its timeout, and when the worker drops the future.
async fn run(program: &Path, hook: &str, session: &SessionId, cwd: &Path) -> Result<()> {
    let output = Command::new(program)
        .env("PINION_HOOK", hook)
        .env("PINION_SESSION", session.as_str())
        .env("PINION_CWD", cwd)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(WORKSPACE_WAIT, output)
        .await
        .with_context(|| {
            format!(
                "the workspace hook {hook} did not end in {} s",
                WORKSPACE_WAIT.as_secs()
            )
        })?
        .with_context(|| format!("{} cannot be started", program.display()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let text: String = text.trim().chars().take(WORKSPACE_TEXT).collect();
        bail!("the workspace hook {hook} failed with {}: {text}", output.status);
    }
    Ok(())
}
