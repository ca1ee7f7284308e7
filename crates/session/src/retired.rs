//! The state of an evicted session that is kept, so that it can continue later as if nothing had happened. Which sessions are evicted is
//! decided in the manager.

use std::path::PathBuf;

use agent::{LoopSettings, SessionUse};
use wire::reply::OpenSession;
use wire::state::{Durability, PermissionMode};
use wire::subagent::SubagentLevel;
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
    /// What counts for the limits. Without it, an eviction would give a session the whole of its limits again.
    pub(crate) used: SessionUse,
    pub(crate) auto_compaction: bool,
    // The consents of the user are not kept: they are asked for again (GUARANTEES.md, 49).
    pub(crate) permission_mode: Option<PermissionMode>,
    pub(crate) durability: Durability,
    pub(crate) chosen: (Option<Model>, Option<ThinkingLevel>),
    /// The model and the level of the next run. The file may name others: the command line chose when the session was first opened, and
    /// would again. `None` while the model is not known.
    pub(crate) selected: Option<(Model, ThinkingLevel)>,
    /// Shell commands so far, so that no two have the same name.
    pub(crate) shells: u64,
    /// The client wants to learn of changes of MCP servers.
    pub(crate) mcp_subscribed: bool,
    /// Names of the fallback models.
    pub(crate) fallbacks: Vec<String>,
    /// The active tools, if a client chose them.
    pub(crate) tools: Option<ToolChoice>,
    /// Whether ends of background processes wake the session.
    pub(crate) process_wakeups: bool,
    /// How much clients want to know of sub-agents.
    pub(crate) subagents: SubagentLevel,
}

/// The tools that a client chose.
#[derive(Debug)]
pub(crate) struct ToolChoice {
    /// Names of the active tools.
    pub(crate) active: Vec<String>,
    /// Names of tools that do not become active when they are registered.
    pub(crate) declined: Vec<String>,
}

impl Retired {
    /// The error when the session cannot be opened again.
    pub(crate) fn lost(&self, handle: &str, error: &str) -> String {
        strings::cannot_go_on(handle, self.described.session_file.as_deref(), error)
    }
}
