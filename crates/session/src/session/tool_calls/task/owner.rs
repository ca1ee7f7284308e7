//! What a session lends to a call of `task`, and how the sub-agent's session is opened and configured.

use std::path::PathBuf;
use std::sync::Arc;

use agent::AccountMember;
use config::resources::AgentDefinition;
use tokio::sync::{mpsc, oneshot};
use wire::state::PermissionMode;
use wire::{Model, RunLimits, ThinkingLevel};

use crate::factory::{Agent, SessionHome};
use crate::outbox::Outbox;
use crate::requests::RequestReceiver;
use crate::session::checkpoints::TurnCheckpoint;
use crate::session::dialogs::Ui;

use agent::TASK_TOOL;

/// What the session lends, as of the moment the call starts.
pub(crate) struct TaskOwner {
    /// The agent of the session.
    pub(crate) agent: Arc<Agent>,
    /// Names of the tools that the session's model may call.
    pub(crate) tools: Vec<String>,
    /// The permission mode.
    pub(crate) mode: PermissionMode,
    /// The model of the run.
    pub(crate) model: Model,
    /// Its thinking level.
    pub(crate) thinking: ThinkingLevel,
    /// Asks the client.
    pub(crate) ui: Ui,
    /// Takes events about sub-agents.
    pub(crate) outbox: Outbox,
    /// The rest of the limits of the run.
    pub(crate) limits: RunLimits,
    /// Whether sub-agents work one after the other, so that no request begins after a limit of tokens or cost is reached.
    pub(crate) one_by_one: bool,
    /// Counts what the session and other sub-agents use from now on. The sub-agent's session takes it.
    pub(crate) account: Option<AccountMember>,
    /// The session file; none if sessions are not kept.
    pub(crate) file: Option<PathBuf>,
    /// Opens sessions.
    pub(crate) open: mpsc::Sender<OpenSubagent>,
}

impl std::fmt::Debug for TaskOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskOwner")
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Asks for the session of a sub-agent.
pub(crate) struct OpenSubagent {
    /// The agent that it works with.
    pub(crate) agent: Arc<Agent>,
    /// Takes its events.
    pub(crate) outbox: Outbox,
    /// Brings its requests; it ends when no more can come.
    pub(crate) requests: RequestReceiver,
    /// Asks the client of the owner.
    pub(crate) ui: Ui,
    /// Counts what it and the others use.
    pub(crate) account: Option<AccountMember>,
    /// The checkpoint of the owner's turn, which gets the changes of the sub-agent.
    pub(crate) checkpoint: Option<TurnCheckpoint>,
    /// Takes the session, or why there is none.
    pub(crate) reply: oneshot::Sender<Result<OpenedSubagent, String>>,
}

/// A sub-agent's session that runs.
pub(crate) struct OpenedSubagent {
    /// Its file; none if sessions are not kept.
    pub(crate) file: Option<String>,
    /// Its model as `provider/id`.
    pub(crate) model: String,
}

impl TaskOwner {
    /// The limit of which nothing is left, if there is one.
    pub(super) fn used_up(&self) -> Option<&'static str> {
        let left = &self.limits;
        if left.max_turns == Some(0) {
            return Some("maxTurns");
        }
        if left.max_tokens == Some(0) {
            return Some("maxTokens");
        }
        // Tool calls are not asked for: without calls left a sub-agent may still answer, as a session may.
        left.max_cost.is_some_and(|cost| cost <= 0.0).then_some("maxCost")
    }

    /// The agent of a sub-agent. It may do no more than the session that it works for: it has a part of its tools, its permission
    /// mode, its extensions with their hooks, and the rest of its limits. It gives no tasks itself, and has no MCP servers.
    pub(super) fn agent_for(&self, definition: &AgentDefinition) -> Arc<Agent> {
        let mut agent = (*self.agent).clone();
        // The record of inputs belongs to the owner's session.
        agent.inputs = None;
        // Documented for users, and so is that it gives no tasks itself (docs/guides/sub-agents.md).
        agent.mcp.off = true;
        let options = &mut agent.options;
        options.extensions.is_subagent = true;
        let wanted = |name: &String| {
            let named = definition.tools.as_ref();
            name != TASK_TOOL && named.is_none_or(|tools| tools.contains(name))
        };
        options.tools = self.tools.iter().filter(|name| wanted(name)).cloned().collect();
        // The owner chooses the tools: others that a session file declares must not come back.
        options.tool_filter.restored = None;
        // Tools that extensions bring later stay out, too.
        options.tool_filter.only.push(options.tools.clone());
        // The mode of the moment when the call began. Later changes come through `SubagentRegister::set_mode`.
        options.permission_mode = Some(self.mode);
        // What the session used before is taken off already: the account counts only from now on.
        options.limits = self.limits;
        options.sessions = match &self.file {
            Some(file) => SessionHome::One(subagents_dir(file)),
            None => SessionHome::Memory,
        };
        let start = &mut options.start;
        match &definition.model {
            // The definition may name a model of any provider.
            Some(model) => (start.provider, start.model) = (None, Some(model.clone())),
            None => {
                start.provider = Some(self.model.provider.clone());
                start.model = Some(self.model.id.clone());
            }
        }
        start.thinking = Some(definition.thinking.unwrap_or(self.thinking));
        let texts = &mut options.resources.append_system_prompt;
        texts.push(ROLE.to_owned());
        if !definition.prompt.trim().is_empty() {
            texts.push(definition.prompt.clone());
        }
        // Agents that are made of it for another directory, or after a reload, keep these options.
        agent.into_subordinate()
    }
}

/// For every sub-agent. The line break keeps it from being taken for the name of a file.
const ROLE: &str = "You work for another agent, which gave you one task and sees only your last message.\nNobody answers questions. \
                    Finish the task, then answer with its result: complete, and as short as possible.";

/// Where the sessions of the sub-agents of a session go.
pub(crate) fn subagents_dir(file: &std::path::Path) -> PathBuf {
    // Next to the file of the session, with which `delete_session` moves it (docs/guides/sub-agents.md).
    file.with_extension("subagents")
}
