//! Modes of operation: RPC, one answer as text or JSON lines, the model table, the doctor. Which one is meant is decided here
//! (pi-core.md 7.2); how each works is in its file.

mod acp;
mod auth;
mod browse;
mod cluster;
pub(crate) mod dialect;
mod doctor;
mod export;
mod gateway;
mod list;
mod mcp;
mod models;
mod oneshot;
mod packages;
mod prompts;
mod rpc;
mod schema;
mod text;
mod trust;
mod unusable;
mod web;
mod welcome;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use session::{Eviction, Outbox, Outgoing, Session};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::Receiver;

use crate::args::{Args, Command, Mode};
use crate::environment::{Environment, complain, stdin_is_terminal};
use crate::preflight;
use crate::resources;
use crate::sessions;
use crate::setup::{Setup, build};
use crate::signals;
pub(crate) use welcome::welcome;

/// Does what the command line asks for.
pub(crate) fn run(mut args: Args, env: &Environment) -> anyhow::Result<ExitCode> {
    resources::check()?;
    if let Some(provider) = args.auth.login.clone() {
        return auth::log_in(&args, env, &provider);
    }
    match args.command {
        Some(Command::Doctor) => return Ok(doctor::run(&args, env)),
        Some(Command::Schema) => return schema::run(&args),
        Some(Command::Auth) => return auth::run(&args, env),
        Some(Command::Models) => return models::run(&args, env),
        Some(Command::Sessions) => return cluster::run(&args, env),
        Some(Command::Worker) => return cluster::worker(&args, env),
        Some(Command::Attach) => return cluster::attach(&args, env),
        Some(Command::Gateway) => return gateway::run(&args, env),
        Some(Command::Trust) => return trust::run(&args, env),
        Some(Command::Mcp) => return mcp::run(&args, env),
        Some(command @ (Command::Install | Command::Remove | Command::List | Command::Update)) => {
            return packages::run(command, &args, env);
        }
        // The parser turns `help` into `--help` and `acp` into `--mode acp`; the others need neither settings nor sessions and ran before.
        Some(Command::Acp | Command::Help | Command::Completions | Command::Man) | None => {}
    }
    if args.mode == Some(Mode::Rpc) && !args.files.is_empty() {
        bail!("@file arguments are not supported in RPC mode");
    }
    if args.mode == Some(Mode::Acp) && !args.files.is_empty() {
        bail!("@file arguments are not supported in ACP mode");
    }
    if args.mode == Some(Mode::Web) && !args.files.is_empty() {
        bail!("@file arguments are not supported in RPC/web mode");
    }
    if let Some(source) = &args.export {
        return export::run(source, args.messages.first().map(String::as_str), env);
    }
    // Before anything can print: from here on the protocol's stdout is ours alone.
    let stdout = (args.list_models.is_none())
        .then(serve::take_stdout)
        .transpose()?;
    packages::install_named(&args, env);
    let setup = build(&args, env)?;
    for warning in &setup.warnings {
        complain(&format!("Warning: {warning}"));
    }
    if args.list_models.is_some() {
        let (registry, problems) = runtime()?.block_on(async {
            preflight::check(&mut args, &setup.agent).await?;
            anyhow::Ok(session::extensions::with_extension_models(&setup.agent).await)
        })?;
        for problem in &problems {
            complain(&format!("Warning: {problem}"));
        }
        let search = args.list_models.flatten();
        return list::run(&registry, search.as_deref(), args.json);
    }
    let Some(stdout) = stdout else {
        bail!("stdout is gone")
    };
    match args.mode {
        Some(Mode::Rpc) => rpc::run(args, env, &setup, stdout),
        Some(Mode::Web) => web::run(args, env, &setup, stdout),
        Some(Mode::Acp) => acp::run(args, env, &setup, stdout),
        _ => oneshot::run(args, env, &setup, stdout),
    }
}

/// One thread carries everything: waking a second one for each delta would cost more than the work itself.
fn runtime() -> std::io::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let _entered = runtime.enter();
    signals::survive_file_size_limit()?;
    Ok(runtime)
}

/// Waits until the refreshes of logins under way are stored, of models and of MCP servers. The end of the runtime would drop them, and
/// with them tokens that the provider gives only once.
fn finish_logins(runtime: &Runtime, setup: &Setup) {
    let agent = &setup.agent;
    runtime.block_on(async {
        tokio::join!(agent.client.finish_logins(), agent.mcp.logins.finish());
    });
}

/// Checks the command line against the extensions and opens the session that it means. Nothing is open and no process of an
/// extension is left when it fails.
async fn open(
    args: &mut Args,
    env: &Environment,
    setup: &Setup,
) -> anyhow::Result<(Session, Outbox, Receiver<Outgoing>)> {
    if let Err(error) = preflight::check(args, &setup.agent).await {
        setup.agent.reaper.shutdown().await;
        return Err(error.into());
    }
    let (outbox, outgoing) = session::outbox(session::limits::OUTBOX);
    let dir = setup.agent.session_dir(&env.cwd);
    let opening = sessions::opening(args, env, dir.as_ref(), setup.own_session_dir)?;
    let name = args.name.as_deref();
    let start = async || Session::start_named(Arc::clone(&setup.agent), outbox.clone(), &opening, name);
    let mut session = session::when_closed(start).await?;
    for warning in session.take_warnings() {
        complain(&format!("Warning: {warning}"));
    }
    if !args.mode.is_some_and(Mode::serves_clients)
        && let Err(error) = unusable::check(args, setup, &session).await
    {
        setup.agent.reaper.shutdown().await;
        return Err(error);
    }
    if session.model().provider == unusable::OFFLINE && args.model.is_none() {
        complain(
            "No model is configured: the built-in offline model answers. It is not an AI. Log in with pinion auth login \
             PROVIDER, set the API key of a provider (for example ANTHROPIC_API_KEY), or start a local model server (for \
             example ollama serve).",
        );
    }
    Ok((session, outbox, outgoing))
}

/// Returns how many sessions stay open in addition to the first, and for how long: from the command line, the settings,
/// or `usual`.
fn eviction(args: &Args, setup: &Setup, usual: Eviction) -> Eviction {
    let settings = &setup.agent.settings;
    let most = settings.capacity.max_open_sessions.filter(|most| *most > 0);
    let most = most.and_then(|most| usize::try_from(most).ok());
    let idle = match settings.capacity.session_idle_ms {
        None => usual.idle,
        Some(0) => None,
        Some(ms) => Some(Duration::from_millis(ms)),
    };
    let most = args.max_open_sessions.or(most).unwrap_or(usual.most);
    Eviction {
        most: most.min(session::limits::OPEN_SESSIONS),
        idle,
    }
}

/// Returns true if stdin is not a terminal.
fn is_piped() -> bool {
    !stdin_is_terminal()
}
