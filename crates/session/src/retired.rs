//! The state of an evicted session that is kept, so that it can continue later as if nothing had happened. Which sessions are evicted is
//! decided in the manager.

use std::path::PathBuf;

use agent::LoopSettings;
use wire::reply::OpenSession;
use wire::state::{Durability, PermissionMode};
use wire::{Model, ThinkingLevel};

use crate::strings;

/// An evicted session.
#[derive(Debug)]
pub(crate) struct Retired {
    /// What it was, for a list of open sessions.
    pub(crate) described: OpenSession,
    /// Its file; `None` if it has no messages.
    pub(crate) file: Option<PathBuf>,
    /// Its working directory.
    pub(crate) cwd: PathBuf,
    pub(crate) choices: ClientChoices,
}

/// What a client chose for a session and no file says.
#[derive(Debug)]
pub(crate) struct ClientChoices {
    pub(crate) settings: LoopSettings,
    pub(crate) auto_compaction: bool,
    pub(crate) permission_mode: Option<PermissionMode>,
    pub(crate) durability: Durability,
    pub(crate) chosen: (Option<Model>, Option<ThinkingLevel>),
    /// Shell commands so far, so that no two have the same name.
    pub(crate) shells: u64,
    /// The client wants to learn of changes of MCP servers.
    pub(crate) mcp_subscribed: bool,
}

impl Retired {
    /// The error when the session cannot be opened again.
    pub(crate) fn lost(&self, handle: &str, error: &str) -> String {
        strings::cannot_go_on(handle, self.described.session_file.as_deref(), error)
    }
}
