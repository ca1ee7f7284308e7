//! Commands as children of the agent itself: for systems without a guardian, and for tests. Kills reach process groups.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::streams::Streams;
use super::{Ended, SpawnSpec, kill_group};
use crate::error::ChildError;

/// The groups that still run; they are killed when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Direct {
    running: Arc<Mutex<HashSet<u32>>>,
}

impl Direct {
    /// Starts a command and watches for its end.
    pub(super) fn spawn(
        &self,
        spec: &SpawnSpec,
        streams: Streams,
    ) -> Result<(u32, watch::Receiver<Option<Ended>>), ChildError> {
        let failed = |source| ChildError::Spawn {
            program: spec.program.to_string_lossy().into_owned(),
            source,
        };
        let command = streams.command(spec).map_err(failed)?;
        let mut child = tokio::process::Command::from(command).spawn().map_err(failed)?;
        // Known until the child is waited for; 0 would kill nothing (`kill_group`).
        let pid = child.id().unwrap_or_default();
        let (tell, ended) = watch::channel(None);
        let running = Arc::clone(&self.running);
        running.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
        tokio::spawn(async move {
            use std::os::unix::process::ExitStatusExt as _;
            let end = match child.wait().await {
                Ok(status) => status
                    .code()
                    .map(Ended::Code)
                    .or_else(|| status.signal().map(Ended::Signal))
                    .unwrap_or(Ended::Lost),
                Err(_) => Ended::Lost,
            };
            // Before the end is reported: a shutdown after it must not kill a group whose number is free again.
            running
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&pid);
            // The caller may have dropped its child.
            let _ = tell.send(Some(end));
        });
        Ok((pid, ended))
    }

    /// Kills the groups of all commands that still run.
    pub(super) fn shutdown(&self) {
        for pid in self.running.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            kill_group(*pid);
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.shutdown();
    }
}
