//! `acp` and `--mode acp`: the Agent Client Protocol on stdin and stdout, until stdin ends or a signal comes.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use acp::{Accounts, Host, LoggingOut, Provider};
use auth::login::{AuthStore, LOGIN_PROVIDERS};
use serve::Sink;
use serve::queues::SessionQueues;
use session::{Eviction, SessionManager};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::args::Args;
use crate::environment::{Environment, complain};
use crate::exit;
use crate::setup::Setup;
use crate::signals::Signals;

use super::browse::browse;
use super::{eviction, finish_logins, open, runtime};

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
        let (lanes, joining) = mpsc::channel(session::limits::JOINING);
        let (slot, requests) = session::request_queue();
        let queues = SessionQueues::new(outgoing, Some(joining));
        let (input, sink) = (serve::stdio::open_stdin()?, Sink::open(stdout)?);
        let host = Host {
            version: setup.agent.version.clone(),
            accounts: Arc::new(Logins {
                auth_file: env.auth_file(),
            }),
            port: setup.client.clone().unwrap_or_default(),
            is_gateway: false,
        };
        let mut client = tokio::spawn(async move { acp::run(input, slot, queues, sink, host).await });
        let mut signals = Signals::listen()?;
        let eviction = eviction(&args, setup, Eviction::default());
        let manager = SessionManager::new(session, outbox, lanes, setup.agent_for())
            .eviction(eviction)
            .storing_empty_sessions();
        let code = tokio::select! {
            () = manager.run(requests) => exit::SUCCESS,
            code = signals.next() => code,
            outcome = &mut client => {
                if let Ok(Err(error)) = outcome {
                    complain(&format!("stdout: {error}"));
                }
                return Ok(ExitCode::FAILURE);
            }
        };
        // End children first, so that the events of their end are still written.
        setup.agent.reaper.shutdown().await;
        let _stuck = tokio::time::timeout(serve::limits::CLOSE_WAIT, client).await;
        anyhow::Ok(ExitCode::from(code))
    });
    finish_logins(&runtime, setup);
    let code = code?;
    runtime.shutdown_background();
    Ok(code)
}

/// Logins of this process.
struct Logins {
    auth_file: PathBuf,
}

impl Accounts for Logins {
    fn providers(&self) -> Vec<Provider> {
        let providers = LOGIN_PROVIDERS.iter().map(|known| Provider {
            id: known.id.to_owned(),
            name: known.name.to_owned(),
        });
        providers.collect()
    }

    fn needs_login(&self, error: &str) -> bool {
        models::needs_credentials(error)
    }

    fn terminal_args(&self, provider: &str) -> Vec<String> {
        ["--login", provider].map(str::to_owned).into()
    }

    fn open_page(&self, url: &str) -> Result<(), String> {
        browse(url).map_err(|error| format!("{error:#}"))
    }

    fn log_out(&self) -> LoggingOut {
        let store = AuthStore::new(self.auth_file.clone());
        let providers = self.providers();
        Box::pin(async move {
            for provider in providers {
                let removed = store.remove_login(&provider.id).await;
                removed.map_err(|error| error.to_string())?;
            }
            Ok(())
        })
    }
}
