//! `--mode rpc`: commands on stdin, responses and events on stdout, until stdin ends or a signal comes.

use std::fs::File;
use std::process::ExitCode;

use serve::{Connection, Encoder, Sink, Spoken, StdinOptions, StdoutWriter, WantedUi};
use session::{Eviction, SessionManager};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::args::Args;
use crate::environment::{Environment, complain};
use crate::exit;
use crate::setup::Setup;
use crate::signals::Signals;

use super::{dialect, eviction, finish_logins, open, runtime};

/// Runs it to its end.
pub(crate) fn run(
    mut args: Args,
    env: &Environment,
    setup: &Setup,
    stdout: File,
) -> anyhow::Result<ExitCode> {
    let runtime = runtime()?;
    // One thread carries all sessions.
    let sessions = LocalSet::new();
    let code = sessions.block_on(&runtime, async {
        let (session, outbox, outgoing) = open(&mut args, env, setup).await?;
        if args.foreign.no_ui {
            outbox.render_nothing();
        }
        let (dialect, warning) = dialect::of(&args, env);
        if let Some(warning) = warning {
            complain(&format!("Warning: {warning}"));
        }
        let spoken = Spoken::new(dialect);
        spoken.choose_ui(WantedUi {
            titles: env.is_on("PI_RPC_EMIT_TITLE").then_some(true),
            cancels: None,
        });
        let connection = Connection::new(Encoder::speaking(spoken.clone()), &setup.agent.version);
        let (lanes, joining) = mpsc::channel(session::limits::JOINING);
        let sink = Sink::open(stdout)?;
        let mut writer = StdoutWriter::spawn_for_many(outgoing, joining, connection, sink);
        let (slot, requests) = session::request_queue();
        serve::stdin::spawn(serve::stdio::open_stdin()?, slot, spoken, StdinOptions::default())?;
        let mut signals = Signals::listen()?;
        // Hosts of many sessions know best how long they need them.
        let eviction = eviction(&args, setup, Eviction::default());
        let manager = SessionManager::new(session, outbox, lanes, setup.agent_for()).eviction(eviction);
        let code = tokio::select! {
            () = manager.run(requests) => exit::SUCCESS,
            code = signals.next() => code,
            outcome = writer.ended() => {
                if let Err(error) = outcome {
                    complain(&format!("stdout: {error}"));
                }
                return Ok(ExitCode::FAILURE);
            }
        };
        // After a signal or the end of input: end children first, so that the events of their end are still written.
        tracing::debug!("processes of tools are ended");
        setup.agent.reaper.shutdown().await;
        let _stuck = writer.close(serve::limits::CLOSE_WAIT).await;
        anyhow::Ok(ExitCode::from(code))
    });
    finish_logins(&runtime, setup);
    let code = code?;
    runtime.shutdown_background();
    Ok(code)
}
