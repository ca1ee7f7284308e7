//! Commands of the `bash` tool in a terminal of the client.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::drive::Stop;
use super::output::Collector;
use crate::client::{CallClient, ClientCommand, ClientExit, ClientProcess};
use crate::config::ToolContext;
use crate::limits;
use process::{Ended, SpawnSpec};

/// Runs a command to its end. `None` if the client does not know the session. `spec` is what would run here; of its environment the client gets the variables of the call, as
/// terminals have an environment of their own.
///
/// # Errors
/// The text for the model, when the command could not be started.
pub(super) async fn run(
    client: CallClient<'_>,
    spec: &SpawnSpec,
    limit: Option<Duration>,
    ctx: &ToolContext,
    mut collector: Collector,
) -> Result<Option<(Collector, Stop)>, String> {
    let command = command(spec, ctx)?;
    let Some(process) = client.start(command, &ctx.cancel).await? else {
        return Ok(None);
    };
    let deadline = limit.map(|limit| Instant::now() + limit.min(limits::TIMEOUT_MAX));
    let stop = tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => Stop::Aborted,
        () = until(deadline) => Stop::TimedOut,
        exit = process.ended() => exit.map_or(Stop::Unknown, ended),
    };
    if matches!(stop, Stop::Aborted | Stop::TimedOut) {
        // A client that does not answer must not keep the call; the terminal is released in any case.
        let _ended = timeout(limits::CLIENT_KILL_WAIT, kill(&*process)).await;
    }
    let wait = match stop {
        Stop::Aborted => limits::CLIENT_KILL_WAIT,
        _ => limits::CLIENT_WAIT,
    };
    match timeout(wait, process.output()).await {
        Ok(Ok(output)) => {
            if output.truncated {
                collector.push(b"[The beginning of the output is lost]\n");
            }
            collector.push(output.text.as_bytes());
        }
        _ => collector.push(b"[The client did not return the output]\n"),
    }
    collector.flush(true).await;
    Ok(Some((collector, stop)))
}

async fn kill(process: &dyn ClientProcess) {
    let _killed = process.kill().await;
    let _ended = process.ended().await;
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

fn command(spec: &SpawnSpec, ctx: &ToolContext) -> Result<ClientCommand, String> {
    let env = ctx.env.iter();
    let env = env.map(|(name, value)| Ok((text(name)?, text(value)?)));
    Ok(ClientCommand {
        program: text(&spec.program)?,
        args: spec.args.iter().map(|arg| text(arg)).collect::<Result<_, _>>()?,
        env: env.collect::<Result<_, String>>()?,
        cwd: Path::new(&spec.cwd).to_path_buf(),
        output_limit: limits::CLIENT_OUTPUT,
    })
}

fn text(text: &OsStr) -> Result<String, String> {
    let text = text.to_str().map(str::to_owned);
    text.ok_or_else(|| "The command is not valid UTF-8".to_owned())
}

fn ended(exit: ClientExit) -> Stop {
    let signal = exit.signal.as_deref().and_then(super::tool::signal_number);
    match (exit.code, signal) {
        (Some(code), _) => Stop::Ended(Ended::Code(code)),
        (None, Some(number)) => Stop::Ended(Ended::Signal(number)),
        (None, None) => Stop::Unknown,
    }
}
