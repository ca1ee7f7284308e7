//! Programs and HTTP clients for servers: children of the reaper's, and the clients that models are asked with.

use std::ffi::OsString;

use ::mcp::{Boxed, Child, HttpClient, Pipes, Program, Spawn, Started, Web};
use llm::Client;
use tools::Reaper;
use tools::reaper::{self, Ended, SpawnSpec};

/// Starts programs through the reaper, so that they never outlive the agent.
#[derive(Debug)]
pub(super) struct Starter {
    reaper: Reaper,
    env: Vec<(OsString, OsString)>,
}

impl Starter {
    pub(super) fn new(reaper: Reaper, env: Vec<(OsString, OsString)>) -> Self {
        Self { reaper, env }
    }
}

impl Spawn for Starter {
    fn spawn(&self, program: Program) -> Boxed<'_, Started> {
        Box::pin(async move {
            let mut env = self.env.clone();
            env.retain(|(name, _)| program.env.iter().all(|(own, _)| own != name));
            env.extend(program.env);
            let spec = SpawnSpec {
                program: program.program,
                args: program.args,
                env,
                cwd: program.cwd.into(),
            };
            let started = self.reaper.spawn_piped(spec).await;
            let (child, pipes) = started.map_err(|error| error.to_string())?;
            let child: Box<dyn Child> = Box::new(Process(child));
            let pipes = Pipes {
                input: Box::new(pipes.input),
                output: Box::new(pipes.output),
                errors: Box::new(pipes.errors),
            };
            Ok((child, pipes))
        })
    }
}

/// A child of the reaper's.
struct Process(reaper::Child);

impl Child for Process {
    fn ended(&mut self) -> Boxed<'_, String> {
        Box::pin(async {
            match self.0.ended().await {
                Ended::Code(code) => format!("it exited with code {code}"),
                Ended::Signal(signal) => format!("signal {signal} ended it"),
                Ended::Lost => "it was ended".to_owned(),
            }
        })
    }

    fn kill(&mut self) -> Boxed<'_, ()> {
        Box::pin(async { drop(self.0.kill().await) })
    }
}

/// The clients that models are asked with: their proxies and certificates.
#[derive(Debug)]
pub(super) struct Reached(pub(super) Client);

impl Web for Reached {
    fn client(&self, url: &str) -> Boxed<'_, Result<HttpClient, String>> {
        let url = url.to_owned();
        Box::pin(async move { self.0.http(&url).await.map_err(|error| error.to_string()) })
    }
}
