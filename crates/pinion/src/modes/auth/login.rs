//! `pinion auth login PROVIDER`: by browser, by device code, or a key from stdin.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use auth::login::{AuthStore, LOGIN_PROVIDERS, Login, LoginError, Step, way};
use llm::{ClientConfig, Connector};
use models::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::input;
use crate::args::Args;
use crate::environment::{Environment, complain, say};
use crate::exit;
use crate::modes::browse::browse;
use crate::modes::runtime;
use crate::setup;

/// Why there is no login here, and what there is.
const ANTHROPIC: &str = "\
Anthropic does not offer the login of its subscriptions to other programs, so Pinion has none and does not pose as one of
Anthropic's. A key works: pinion auth login anthropic --api-key (reads the key from stdin). A token that another program
has put into auth.json is sent as what it is until it expires.";

pub(super) fn run(args: &Args, env: &Environment, provider: &str) -> anyhow::Result<ExitCode> {
    let registry = super::registry(args, env);
    if !registry.provider_ids().any(|known| known == provider) {
        let with_login: Vec<&str> = LOGIN_PROVIDERS.iter().map(|known| known.id).collect();
        bail!(
            "Unknown provider \"{provider}\". With a login: {}; others take --api-key",
            with_login.join(", ")
        );
    }
    if args.auth.domain.is_some() && provider != "github-copilot" {
        bail!("--domain is for github-copilot");
    }
    let runtime = runtime()?;
    let done = if args.auth.key_from_stdin {
        runtime.block_on(store_key(env, provider))
    } else if provider == "anthropic" {
        bail!("{ANTHROPIC}");
    } else if way(provider).is_none() {
        bail!(LoginError::NotOffered(provider.to_owned()));
    } else {
        runtime.block_on(log_in(args, env, provider, &registry))
    };
    // A blocked read of stdin cannot be cancelled, so its thread is not joined.
    runtime.shutdown_background();
    match done {
        Err(LoginError::Cancelled) => {
            complain("Cancelled");
            Ok(ExitCode::from(exit::INTERRUPTED))
        }
        other => {
            say(&other?);
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn store_key(env: &Environment, provider: &str) -> Result<String, LoginError> {
    let key = tokio::select! {
        key = input::key(provider) => key?,
        _ = tokio::signal::ctrl_c() => return Err(LoginError::Cancelled),
    };
    AuthStore::new(env.auth_file()).put_key(provider, &key).await?;
    Ok(format!(
        "Stored the key for {provider} in {}",
        env.auth_file().display()
    ))
}

async fn log_in(
    args: &Args,
    env: &Environment,
    provider: &str,
    registry: &Registry,
) -> Result<String, LoginError> {
    let trust = config::trust::Trust::new(&env.agent_dir, args.approve);
    let (settings, _notes) = setup::load_settings(args, env, &trust);
    let endpoints = setup::endpoints(env);
    let config = ClientConfig {
        proxy: env.proxy(settings.http_proxy.as_deref()),
        ..ClientConfig::default()
    };
    let models: Vec<String> = registry
        .models_of(provider)
        .iter()
        .map(|model| model.id.clone())
        .collect();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    // Registered before the prompt to wait is printed: without a handler SIGINT would end the process without a message.
    let mut interrupted = signal(SignalKind::interrupt()).ok();
    let watch = tokio::spawn(async move {
        if let Some(interrupted) = &mut interrupted
            && interrupted.recv().await.is_some()
        {
            stop.cancel();
        }
    });
    let open = args.open;
    let tell = move |step: Step<'_>| show(step, open);
    let login = Login::new(env.auth_file(), endpoints, Arc::new(Connector::new(config)));
    let lines = Some(input::lines());
    let done = login
        .run(
            provider,
            args.auth.domain.as_deref(),
            &models,
            &tell,
            lines,
            &cancel,
        )
        .await;
    watch.abort();
    done?;
    Ok(format!(
        "Logged in to {provider}. The tokens are in {}",
        env.auth_file().display()
    ))
}

/// Prints the next step for the user.
pub(in crate::modes) fn show(step: Step<'_>, open: bool) {
    match step {
        Step::Visit(address) => {
            say(&format!(
                "Log in here:\n\n{address}\n\nWaiting for the browser. On another machine: paste the address it ends at."
            ));
            if open && let Err(error) = browse(address) {
                complain(&format!("{error:#}"));
            }
        }
        Step::Enter { address, code } => {
            say(&format!("Go to {address} and enter the code {code}"));
            if open && let Err(error) = browse(address) {
                complain(&format!("{error:#}"));
            }
        }
        Step::Note(note) => complain(note),
    }
}
