//! A stand-in for the agent in the reaper's tests: with `__guardian` it is a guardian, with `run COMMAND...` it starts shell
//! commands and waits until it is killed or its standard input ends.

use std::ffi::OsString;
use std::io::Read as _;
use std::process::ExitCode;

use pinion_process::{GuardianLaunch, Reaper, SpawnSpec, guardian};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("__guardian") => guardian::main(args.next().and_then(|level| level.parse().ok())),
        Some("run") => block_on(run(args.collect())),
        _ => ExitCode::FAILURE,
    }
}

fn block_on(work: impl Future<Output = ()>) -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            runtime.block_on(work);
            // Dropping the runtime would wait for the thread that reads standard input.
            runtime.shutdown_background();
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

async fn run(commands: Vec<String>) {
    let reaper = Reaper::new(GuardianLaunch::default());
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for command in commands {
        let spec = SpawnSpec {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), command.into()],
            env: env.clone(),
            cwd: "/".into(),
        };
        let reaper = reaper.clone();
        tokio::spawn(async move {
            if let Ok((mut child, _output)) = reaper.spawn(spec).await {
                child.ended().await;
            }
        });
    }
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let _ = end.await;
}
