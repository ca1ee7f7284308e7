//! The tool with which a model gives tasks to sub-agents. It is off unless the user names it (docs/guides/sub-agents.md).
//!
//! A sub-agent is a session of its own. `owner` is what the session that gives the task lends to it, `work` runs it, `progress`
//! sums up what it does, `register` knows which sub-agents there are. Nothing here names the session.

mod owner;
mod progress;
mod register;
mod work;

use std::sync::{Arc, OnceLock};

use agent::TASK_TOOL;
use config::resources::{AgentDefinition, ResourceOptions, agent_definitions};
use config::{Diagnostic, Scope};
use permissions::Source;
use serde_json::{Map, Value, json};
use tools::{ToolOutcome, validate};
use wire::subagent::AgentSource;
use wire::{ToolCall, ToolSpec};

use crate::strings;

use super::tool::{Access, Definition, Invocation, Place, PreparedCall, Running, Tool};

pub(crate) use self::owner::{OpenSubagent, OpenedSubagent, TaskOwner, subagents_dir};
pub(crate) use self::register::SubagentRegister;
use self::work::{Task, Work};

/// The agent that is always there.
const GENERAL: &str = "general";

const DESCRIPTION: &str = "Gives a task to a sub-agent: an agent with an empty conversation, which works on its own and returns one \
                           text. It sees only the prompt. Several calls in one answer work at the same time.";

/// The tool.
pub(super) struct TaskTool {
    resources: ResourceOptions,
    /// Read when the tool is first needed: most sessions do not have it.
    agents: OnceLock<(Vec<AgentDefinition>, Vec<Diagnostic>)>,
    register: SubagentRegister,
}

impl TaskTool {
    /// The tool with the agents of these resources.
    pub(super) fn new(resources: ResourceOptions, register: SubagentRegister) -> Self {
        Self {
            resources,
            agents: OnceLock::new(),
            register,
        }
    }

    fn loaded(&self) -> &(Vec<AgentDefinition>, Vec<Diagnostic>) {
        self.agents.get_or_init(|| {
            let (mut agents, notes) = agent_definitions(&self.resources);
            // A definition of the user or the project may replace it.
            if !agents.iter().any(|agent| agent.name == GENERAL) {
                agents.insert(0, general());
            }
            (agents, notes)
        })
    }

    /// Agents that could not be read.
    pub(super) fn problems(&self) -> &[Diagnostic] {
        &self.loaded().1
    }

    fn agent(&self, args: &Map<String, Value>) -> Result<&AgentDefinition, String> {
        let name = args.get("agent").and_then(Value::as_str).unwrap_or(GENERAL);
        let agents = &self.loaded().0;
        agents.iter().find(|agent| agent.name == name).ok_or_else(|| {
            let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
            strings::unknown_agent(name, &names)
        })
    }

    fn parameters(&self) -> Value {
        let agents = self.loaded().0.iter();
        let names: Vec<&str> = agents.clone().map(|agent| agent.name.as_str()).collect();
        let list: Vec<String> = agents
            .map(|agent| format!("{}: {}", agent.name, agent.description))
            .collect();
        json!({
            "type": "object",
            "properties": {
                "description": {"type": "string", "description": "The task in three to six words, for people"},
                "prompt": {"type": "string", "description": "The task, with everything that must be known for it, and what to return"},
                "agent": {
                    "type": "string",
                    "enum": names,
                    "description": format!("Who does it; {GENERAL} if left out. {}", list.join("; ")),
                },
            },
            "required": ["description", "prompt"],
        })
    }
}

/// The agent for tasks that need no special one.
fn general() -> AgentDefinition {
    AgentDefinition {
        name: GENERAL.to_owned(),
        description: "works with the same tools as you".to_owned(),
        prompt: String::new(),
        tools: None,
        model: None,
        thinking: None,
        max_turns: None,
        // A file cannot have this place: it is Pinion's own.
        scope: Scope::Temporary,
    }
}

fn source_of(agent: &AgentDefinition) -> AgentSource {
    match agent.scope {
        Scope::User => AgentSource::User,
        Scope::Project => AgentSource::Project,
        Scope::Temporary => AgentSource::Bundled,
    }
}

fn text_of<'a>(args: &'a Map<String, Value>, name: &str) -> &'a str {
    args.get(name).and_then(Value::as_str).unwrap_or_default().trim()
}

impl Tool for TaskTool {
    fn name(&self) -> &str {
        TASK_TOOL
    }

    fn definition(&self) -> Definition {
        Definition {
            spec: ToolSpec {
                name: TASK_TOOL.to_owned(),
                description: DESCRIPTION.to_owned(),
                parameters: self.parameters(),
                prefers_strict: false,
            },
            snippet: Some("Give a task to a sub-agent".to_owned()),
            guidelines: None,
        }
    }

    fn source(&self) -> Source {
        Source::BuiltIn
    }

    /// The calls of the sub-agent are judged one by one.
    fn access(&self, _: &Map<String, Value>, _: Place<'_>) -> Access {
        Access::Nothing
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        let args = validate::validate(TASK_TOOL, &self.parameters(), &call.arguments)?;
        self.agent(&args)?;
        if text_of(&args, "prompt").is_empty() {
            return Err(strings::EMPTY_TASK.to_owned());
        }
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        // Looked up again: hooks may have changed the name of the agent since the call was checked.
        let agent = match self.agent(&call.args) {
            Ok(agent) => agent.clone(),
            Err(error) => return Box::pin(std::future::ready(ToolOutcome::error(error))),
        };
        let Some(owner) = call.environment.task_owner.map(|owner| *owner) else {
            // Only calls that the model makes itself are lent what a sub-agent needs.
            return Box::pin(std::future::ready(ToolOutcome::error(strings::NO_TASKS_HERE)));
        };
        // Before a place is taken: a task that may ask nothing need not wait for one.
        if let Some(limit) = owner.used_up() {
            return Box::pin(std::future::ready(ToolOutcome::error(strings::nothing_left(
                limit,
            ))));
        }
        let task = Task {
            source: source_of(&agent),
            agent,
            description: text_of(&call.args, "description").to_owned(),
            prompt: text_of(&call.args, "prompt").to_owned(),
            call_id: call.id,
            checkpoint: call.environment.checkpoint,
        };
        // Registered before this returns: the owner has the present mode, and a mode that is chosen later must reach the sub-agent.
        let work = Work::new(task, owner, self.register.clone(), call.progress);
        Box::pin(work::carry_out(work, call.cancel))
    }
}
