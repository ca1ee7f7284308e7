//! The process itself: started through the reaper, so that it never outlives the agent, and spoken with over pipes.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use door::runtime::Runtime;
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
    runtime: &Runtime,
    main: &Path,
) -> Result<(Process, Pipes), DoorError> {
    let mut args = runtime.args.clone();
    args.push(main.into());
    let spec = SpawnSpec {
        program: runtime.program.clone().into(),
        args,
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

    fn kill(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async { drop(self.0.kill().await) })
    }
}
