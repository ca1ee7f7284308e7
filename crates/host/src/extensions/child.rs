//! The process itself: started through the reaper, so that it never outlives the agent, and spoken with over pipes.

use std::ffi::OsString;
use std::future::Future;
use std::pin::Pin;

use door::{DoorError, Pipes};
use tools::Reaper;
use tools::reaper::{Child, Ended, SpawnSpec};

use super::Launch;

/// Starts it.
///
/// # Errors
/// When it cannot be started.
pub(super) async fn spawn(
    reaper: &Reaper,
    launch: &Launch,
    mut command: Vec<OsString>,
) -> Result<(Process, Pipes), DoorError> {
    if command.is_empty() {
        return Err(DoorError::Start("there is no command".to_owned()));
    }
    let spec = SpawnSpec {
        program: command.remove(0),
        args: command,
        env: launch.env.clone(),
        cwd: launch.cwd.clone().into(),
    };
    let (child, pipes) = reaper
        .spawn_piped(spec)
        .await
        .map_err(|error| DoorError::Start(error.to_string()))?;
    let pipes = Pipes {
        input: Box::new(pipes.input),
        output: Box::new(pipes.output),
        errors: Box::new(pipes.errors),
    };
    Ok((Process(child), pipes))
}

/// A child of the reaper's.
pub(super) struct Process(Child);

impl door::Child for Process {
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async {
            match self.0.ended().await {
                Ended::Code(code) => format!("it exited with code {code}"),
                Ended::Signal(signal) => format!("signal {signal} ended it"),
                Ended::Lost => "it was ended".to_owned(),
            }
        })
    }

    #[cfg(target_os = "linux")]
    fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kilobytes << 10)
    }

    fn kill(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async { drop(self.0.kill().await) })
    }
}
