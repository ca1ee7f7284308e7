//! Starts commands that go on in the background. Who reads and ends them is not known here.

use std::ffi::OsString;
use std::path::PathBuf;

use process::{Child, SpawnSpec, Terminal, TerminalSize};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::Means;

/// A command for the background.
#[derive(Debug, Clone)]
pub struct BackgroundCommand {
    /// The command line.
    pub command: String,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Variables in addition to those of all commands.
    pub env: Vec<(OsString, OsString)>,
    /// The size of its terminal; none for pipes.
    pub terminal: Option<TerminalSize>,
}

/// A command that was started.
#[derive(Debug)]
pub struct StartedCommand {
    /// The process. Dropping it kills the command.
    pub child: Child,
    /// What it prints on both outputs.
    pub output: Receiver,
    /// What it reads.
    pub input: Sender,
    /// Its terminal, if it has one.
    pub terminal: Option<Terminal>,
}

/// A program that gives its command a terminal of its own session.
const NEW_SESSION: [&str; 2] = ["/usr/bin/setsid", "/bin/setsid"];

/// Starts a command.
///
/// # Errors
/// A text for the model.
pub(crate) async fn start(request: BackgroundCommand, means: &Means<'_>) -> Result<StartedCommand, String> {
    if request.command.contains('\0') {
        return Err("The command must not contain null bytes".to_owned());
    }
    let mut env = request.env;
    if request.terminal.is_some() {
        env.push(("TERM".into(), "xterm-256color".into()));
    }
    let spec = means.shell.spec(&request.command, &request.cwd, &env);
    let mut spec = spec.map_err(|error| error.to_string())?;
    // Before the sandbox: its launcher is `/proc/self/exe`, which another program would take for itself, and the guardian knows confined
    // commands by their first argument.
    if request.terminal.is_some() {
        spec = with_terminal(spec);
    }
    if let Some(guard) = means.guard {
        let policy = guard.policy(&request.cwd)?;
        spec = guard.command(spec, &policy)?;
    }
    let reaper = means.reaper;
    let started = match request.terminal {
        Some(size) => reaper
            .spawn_in_terminal(spec, size)
            .await
            .map(|(child, output, input, terminal)| (child, output, input, Some(terminal))),
        None => reaper
            .spawn_with_input(spec)
            .await
            .map(|(child, output, input)| (child, output, input, None)),
    };
    let (child, output, input, terminal) = started.map_err(|error| error.to_string())?;
    Ok(StartedCommand {
        child,
        output,
        input,
        terminal,
    })
}

/// Makes the terminal the controlling one, so that Ctrl-C and job control work. Without the program for it the command has a
/// terminal nevertheless.
fn with_terminal(spec: SpawnSpec) -> SpawnSpec {
    let found = NEW_SESSION
        .iter()
        .find(|path| std::path::Path::new(path).is_file());
    let Some(program) = found else {
        return spec;
    };
    let options = ["--ctty", "--wait"].map(OsString::from);
    let args = options
        .into_iter()
        .chain([spec.program])
        .chain(spec.args)
        .collect();
    SpawnSpec {
        program: OsString::from(program),
        args,
        ..spec
    }
}
