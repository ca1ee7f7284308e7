//! MCP servers, as far as all sessions share them: which are configured, and how programs are started and addresses reached
//! for them. What one session does with its servers is in `session::mcp`; the protocol is the crate `mcp`'s business.

mod around;
mod sources;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::mcp::{AskUser, Expander, Logins, Surroundings};
use config::settings::Settings;
use files::Boundaries;

use crate::agent::Agent;

pub(crate) use self::sources::{Configured, Origin, find, of_session};

/// What the command line and the surroundings say about servers.
#[derive(Debug, Clone)]
pub struct McpSetup {
    /// No servers at all (`--no-mcp`).
    pub off: bool,
    /// Files besides the usual ones (`--mcp-config`).
    pub files: Vec<PathBuf>,
    /// What configurations may refer to.
    pub expand: Expander,
    /// The environment of servers, without the agent's keys.
    pub env: Vec<(OsString, OsString)>,
    /// Where results go that are too long for a model.
    pub tmp_dir: PathBuf,
    /// How far the links of a project lead.
    pub boundaries: Boundaries,
}

/// Where logins are kept.
#[must_use]
pub fn logins(agent_dir: &Path) -> Logins {
    Logins::new(agent_dir.join("mcp-auth.json"))
}

/// What connections need of this agent.
pub fn surroundings(agent: &Agent, cwd: &Path, ask: Arc<dyn AskUser>) -> Surroundings {
    Surroundings {
        spawn: Arc::new(around::Starter::new(agent.reaper.clone(), agent.mcp.env.clone())),
        web: Arc::new(around::Reached(agent.client.clone())),
        expand: agent.mcp.expand.clone(),
        ask,
        logins: logins(&agent.agent_dir),
        cwd: cwd.to_path_buf(),
        version: agent.version.clone(),
    }
}

/// The servers that files configure for sessions in the directory of these settings, with who wants each, and what is wrong
/// with the files.
#[must_use]
pub fn configured(
    setup: &McpSetup,
    settings: &Settings,
    agent_dir: &Path,
    cwd: &Path,
) -> (Vec<(::mcp::ServerConfig, &'static str)>, Vec<String>) {
    let (servers, problems) = sources::read(setup, settings, agent_dir, Some(cwd));
    let servers = servers
        .into_iter()
        .map(|found| (found.config, found.origin.as_str()));
    (servers.collect(), problems)
}
