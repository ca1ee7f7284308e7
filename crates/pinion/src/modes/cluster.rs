//! `pinion sessions`, `pinion worker` and `--attach`: hand over to the program `pinion-cluster`, which has the clients of the engines. So they cost this program nothing.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use config::trust::Trust;

use crate::args::{Args, Mode};
use crate::environment::Environment;
use crate::{sessions, setup};

/// The other program.
const PROGRAM: &str = "pinion-cluster";

/// Replaces this process. Returns only if that fails.
pub(super) fn run(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    let action = args.messages.first().map(String::as_str);
    if !matches!(action, Some("push" | "pull" | "list")) {
        bail!("Use sessions push URL, sessions pull URL or sessions list URL. Help: pinion sessions --help");
    }
    let program = program(env)?;
    let mut command = Command::new(&program);
    command.arg("sessions").args(&args.messages);
    if action != Some("list") {
        let trust = Trust::new(&env.agent_dir, args.approve);
        let (settings, _) = setup::load_settings(args, env, &trust);
        let (dir, is_default) = sessions::session_dir(args, env, settings.session_dir.as_deref());
        match dir {
            // All of the user's sessions, not only those of this directory.
            _ if is_default => command
                .arg("--dir")
                .arg(store::paths::sessions_root(&env.agent_dir)),
            Some(dir) => command.arg("--dir").arg(dir).arg("--flat"),
            None => bail!("--no-session leaves no sessions to copy"),
        };
    }
    replace_process(command)
}

/// `pinion worker`. The other program starts this one again as its agent.
pub(super) fn worker(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    let mut command = Command::new(program(env)?);
    command.arg("worker");
    if let Ok(own) = std::env::current_exe() {
        command.arg("--program").arg(own);
    }
    command.args(&args.messages);
    replace_process(command)
}

/// `--mode rpc --attach URL`.
pub(super) fn attach(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    match (args.mode, args.messages.as_slice()) {
        (Some(Mode::Rpc), [url]) if args.files.is_empty() => {
            let mut command = Command::new(program(env)?);
            command.args(["attach", url]);
            replace_process(command)
        }
        (Some(Mode::Rpc), _) => bail!("--attach takes one URL and no messages"),
        _ => bail!("--attach needs --mode rpc"),
    }
}

/// Replaces this process. Returns only if that fails.
fn replace_process(mut command: Command) -> anyhow::Result<ExitCode> {
    let error = command.exec();
    let program = command.get_program().to_string_lossy().into_owned();
    Err(anyhow::Error::new(error).context(format!("{program} cannot be started")))
}

pub(super) fn program(env: &Environment) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    let path = env.get("PATH").unwrap_or_default();
    let found = std::env::split_paths(path).map(|dir| dir.join(PROGRAM));
    let found = beside.into_iter().chain(found).find(|program| program.is_file());
    found.with_context(|| {
        format!(
            "This command needs the program {PROGRAM} next to pinion or in PATH. Install it from a clone of {}: cargo install \
             --locked --path crates/cluster --features nats,s3",
            env!("CARGO_PKG_REPOSITORY")
        )
    })
}
