//! `pinion auth login|logout|status`: logins and stored keys. `llm::login` gets and stores tokens; here are the texts for
//! the user and the input from the terminal.

pub(super) mod input;
pub(super) mod login;
mod status;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use auth::login::AuthStore;
use models::Registry;
use models::local::LocalSources;

use crate::args::Args;
use crate::environment::{Environment, say, say_exactly};
use crate::modes::runtime;
use crate::setup;

const USAGE: &str = "Usage: pinion auth login PROVIDER [--open] [--domain DOMAIN] [--api-key]\n       \
                     pinion auth logout PROVIDER\n       pinion auth status [--json]";

/// Does what the words after `auth` ask for.
pub(super) fn run(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = args.messages.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["login", provider] => login::run(args, env, provider),
        // The next word may be a key, so the error does not repeat it.
        ["login", _, ..] if args.auth.key_from_stdin => {
            bail!(
                "--api-key takes no key here, others could see it in the process list. Give the key on stdin"
            )
        }
        ["logout", provider] => logout(args, env, provider),
        ["status"] => {
            let report = status::report(&registry(args, env), env, args.json);
            if args.json {
                say_exactly(&report);
            } else {
                say(&report);
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("{USAGE}"),
    }
}

/// Logs in to a provider and opens its page in a browser (`--login`).
pub(super) fn log_in(args: &Args, env: &Environment, provider: &str) -> anyhow::Result<ExitCode> {
    let args = Args {
        open: true,
        ..args.clone()
    };
    login::run(&args, env, provider)
}

/// Models and keys. Nothing here needs the value of a `!command`, so none is run.
fn registry(args: &Args, env: &Environment) -> Registry {
    setup::load_registry(args, env, Arc::new(|_| None), LocalSources::default())
}

fn logout(args: &Args, env: &Environment, provider: &str) -> anyhow::Result<ExitCode> {
    let store = AuthStore::new(env.auth_file());
    let removed = runtime()?.block_on(store.remove(provider))?;
    let path = env.auth_file();
    if !removed {
        bail!("Nothing is stored for {provider} in {}", path.display());
    }
    say(&format!(
        "Removed what was stored for {provider} in {}",
        path.display()
    ));
    let rest = registry(args, env);
    if let Some(source) = rest.key_source(provider) {
        let from = super::doctor::keys::from(&source);
        say(&format!("It can still be used: there is a key from {from}"));
    }
    Ok(ExitCode::SUCCESS)
}
