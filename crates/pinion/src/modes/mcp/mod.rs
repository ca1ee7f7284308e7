//! `pinion mcp list|add|remove|login|logout`: MCP servers from a shell. How servers are reached is the crate `mcp`'s
//! business, which files count is `session::mcp`'s; here are the words for the person.

mod edit;
mod list;
mod login;

use std::process::ExitCode;
use std::sync::Arc;

use ::mcp::config::Reach;
use ::mcp::{AskUser, Login, Question, Reply, ServerConfig};
use anyhow::{Context as _, bail};
use process::Boxed;
use session::Agent;

use crate::args::Args;
use crate::environment::{Environment, complain, say};
use crate::setup::{Setup, build};

const USAGE: &str = "Usage: pinion mcp list [--json]\n       \
                     pinion mcp add NAME [--local] [--env NAME=VALUE] [--cwd DIR] [--timeout SECONDS] -- COMMAND [ARGUMENT ...]\n       \
                     pinion mcp add NAME [--local] --url URL [--header \"NAME: VALUE\"] [--bearer-token-env-var NAME]\n       \
                     pinion mcp remove NAME [--local]\n       \
                     pinion mcp login NAME [--open]\n       pinion mcp logout NAME";

/// Does what the words after `mcp` ask for.
pub(super) fn run(args: &Args, env: &Environment) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = args.messages.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => list::run(&build(args, env)?, args.json),
        ["add", name, command @ ..] => edit::add(args, env, name, command),
        ["remove", name] => edit::remove(args, env, name),
        ["login", name] => login::run(args, &build(args, env)?, name),
        ["logout", name] => logout(&build(args, env)?, name),
        _ => bail!("{USAGE}"),
    }
}

fn logout(setup: &Setup, name: &str) -> anyhow::Result<ExitCode> {
    let agent = &setup.agent;
    let config = find(agent, name)?;
    if !matches!(config.reach, Reach::Http(_)) {
        bail!("{name} is a local program and needs no login");
    }
    let around = agent.mcp_surroundings(&agent.cwd, Arc::new(Nobody));
    let path = around.logins.path().display().to_string();
    if !Login::forget(&config, &around)? {
        bail!("There is no login at {name} in {path}");
    }
    say(&format!("Removed the login at {name} from {path}"));
    Ok(ExitCode::SUCCESS)
}

/// The server of a name.
fn find(agent: &Agent, name: &str) -> anyhow::Result<ServerConfig> {
    let (servers, problems) =
        session::mcp::configured(&agent.mcp, &agent.settings, &agent.agent_dir, &agent.cwd);
    for problem in problems {
        complain(&format!("Warning: {problem}"));
    }
    let found = servers.into_iter().find(|(config, _)| config.is_called(name));
    let (config, _) = found.with_context(|| format!("There is no MCP server \"{name}\""))?;
    Ok(config)
}

/// Cancels every question of a server: in a shell no client can answer.
struct Nobody;

impl AskUser for Nobody {
    fn ask(&self, _: Question) -> Boxed<'static, Reply> {
        Box::pin(std::future::ready(Reply::Cancel))
    }
}
