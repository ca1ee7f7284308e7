//! MCP servers, as far as all sessions share them: which are configured, and how programs are started and addresses reached
//! for them. What one session does with its servers is in `session::mcp`; the protocol is the crate `mcp`'s business.

mod sources;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::mcp::{AskUser, Expander, HttpClient, Logins, Resolve, Surroundings, Web};
use config::settings::Settings;
use files::Boundaries;
use llm::Client;
use process::Boxed;

pub(crate) use self::sources::{Configured, Origin, of_extension, of_session, read};

/// What the command line and the surroundings say about servers.
#[derive(Debug, Clone)]
pub struct McpSetup {
    /// No servers at all (`--no-mcp`).
    pub off: bool,
    /// Files in addition to the usual ones (`--mcp-config`).
    pub files: Vec<PathBuf>,
    /// True in the dialect of today's oh-my-pi, whose files count, too.
    pub is_omp: bool,
    /// What configurations may refer to.
    pub expand: Expander,
    /// The environment of servers, without the agent's keys.
    pub env: Vec<(OsString, OsString)>,
    /// Where results go that are too long for a model.
    pub tmp_dir: PathBuf,
    /// How far the links of a project lead.
    pub boundaries: Boundaries,
    /// Where logins are kept. The agents of a process share it, so that its end can wait for their refreshes.
    pub logins: Logins,
}

/// The HTTP clients of the models: their proxies and certificates.
#[derive(Debug)]
pub(crate) struct ModelClients(pub(crate) Client);

impl Web for ModelClients {
    fn client(&self, url: &str) -> Boxed<'_, Result<HttpClient, String>> {
        let url = url.to_owned();
        Box::pin(async move { self.0.http(&url).await.map_err(|error| error.to_string()) })
    }

    fn resolving(&self, resolver: Arc<dyn Resolve>) -> Boxed<'_, Result<HttpClient, String>> {
        Box::pin(async move {
            self.0
                .resolving(resolver)
                .await
                .map_err(|error| error.to_string())
        })
    }
}

/// Where logins are kept.
#[must_use]
pub fn logins(agent_dir: &Path) -> Logins {
    Logins::new(agent_dir.join("mcp-auth.json"))
}

/// Where the servers of a session come from.
pub(crate) trait ServerSource {
    /// The servers that are configured for sessions in this directory, and the problems of the files.
    fn servers(&self, cwd: &Path) -> (Vec<Configured>, Vec<String>);

    /// What the connection to a server needs.
    fn surroundings(&self, cwd: &Path, ask: Arc<dyn AskUser>) -> Surroundings;

    /// Returns true if servers are switched off.
    fn is_off(&self) -> bool;

    /// Returns true if a new tool of a server becomes active at once.
    fn activates(&self, tool: &str) -> bool;
}

/// The servers that files configure for sessions in the directory of these settings, with the origin of each, and the errors
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
