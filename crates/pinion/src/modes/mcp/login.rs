//! `pinion mcp login NAME`: by a page in a browser, as `pinion auth login` does it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::mcp::config::Reach;
use ::mcp::{Login, ServerConfig};
use anyhow::{Context as _, bail};
use auth::login::{Callback, Step, pasted};
use tokio_util::sync::CancellationToken;

use super::Nobody;
use crate::args::Args;
use crate::environment::{complain, say};
use crate::exit;
use crate::modes::auth::{input, login};
use crate::modes::runtime;
use crate::setup::Setup;

/// Where the browser ends.
const PATH: &str = "/callback";

/// How long a person may take.
const WAIT: Duration = Duration::from_secs(15 * 60);

pub(super) fn run(args: &Args, setup: &Setup, name: &str) -> anyhow::Result<ExitCode> {
    let config = super::find(&setup.agent, name)?;
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = tokio::time::timeout(WAIT, log_in(setup, &config, args.open)) => done.context("The login timed out")?,
            _ = tokio::signal::ctrl_c() => Ok(false),
        }
    });
    // A blocked read of stdin cannot be cancelled, so its thread is not joined.
    runtime.shutdown_background();
    if !done? {
        complain("Cancelled");
        return Ok(ExitCode::from(exit::INTERRUPTED));
    }
    let path = &setup.agent.mcp.logins;
    say(&format!(
        "Logged in at {name}. The tokens are in {}",
        path.path().display()
    ));
    Ok(ExitCode::SUCCESS)
}

async fn log_in(setup: &Setup, config: &ServerConfig, open: bool) -> anyhow::Result<bool> {
    let Reach::Http(http) = &config.reach else {
        bail!("{} is a local program and needs no login", config.name);
    };
    let callback = Callback::bind("127.0.0.1", http.oauth.callback_port.unwrap_or(0)).await;
    let callback = callback.context("Cannot listen for the browser")?;
    let base = format!("http://127.0.0.1:{}", callback.port());
    let agent = &setup.agent;
    let around = agent.mcp_surroundings(&agent.cwd, Arc::new(Nobody));
    let started = Login::begin(config, &around, &format!("{base}{PATH}")).await?;
    login::show(Step::Visit(started.address()), open);
    let state = started.state();
    let mut lines = input::lines();
    let visited = loop {
        tokio::select! {
            target = callback.wait_target(PATH, &state) => break format!("{base}{}", target?),
            Some(line) = lines.recv() => match pasted(&line, &state) {
                // The whole address may hold more than the code.
                Ok(_) if line.trim().starts_with("http") => break line.trim().to_owned(),
                Ok(code) => break format!("{base}{PATH}?code={code}&state={state}"),
                Err(error) => complain(&error.to_string()),
            },
        }
    };
    started.finish(&visited, &CancellationToken::new()).await?;
    Ok(true)
}
