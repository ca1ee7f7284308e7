//! The tools of a session, in layers: who brought them decides which tool runs when two have one name, and in which order the
//! model sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::{TASK_TOOL, output, todo};
use serde_json::{Map, Value};
use tools::OutputSchema;
use tools::nearest::unknown_tool;
use wire::tool::{ActiveTools, Tools};
use wire::{Dialect, ToolCall, ToolSpec};

use crate::factory::Agent;
use crate::retired::ToolChoice;

use super::background::{BackgroundBash, PROCESS_TOOL, ProcessTool, Processes};
use super::built_in::built_in_tools;
use super::fetch::FetchTool;
use super::result::ResultTool;
use super::task::{SubagentRegister, TaskTool};
use super::todo::{TodoTool, TodoWrite, TodoWrites};
use super::tool::Tool;

/// Who brought a tool. The order is that of the lists that the model sees; providers cache the beginning of a request, so it
/// must not change from one request to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// The agent.
    BuiltIn,
    /// The agent, if the user names the tool: the todo list, web pages, sub-agents, background processes.
    Optional,
    /// Extensions.
    Extension,
    /// MCP servers.
    Mcp,
    /// The client.
    Client,
}

impl Layer {
    /// The order in which a called name is looked up. Extensions come first, since they may replace a built-in tool.
    const LOOKUP: [Self; 5] = [
        Self::Extension,
        Self::Mcp,
        Self::Optional,
        Self::Client,
        Self::BuiltIn,
    ];

    /// The layers whose tools extensions see and switch on and off.
    pub(crate) const CHOSEN_BY_EXTENSIONS: [Self; 3] = [Self::BuiltIn, Self::Extension, Self::Mcp];

    /// Whether a tool of an extension takes the place of one of this layer in lists, too. Tools of servers and clients stay
    /// listed as well: their owners see that the name is taken.
    const fn is_replaceable(self) -> bool {
        matches!(self, Self::BuiltIn | Self::Optional)
    }
}

/// Who chose the active tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ChosenBy {
    /// The command line and the settings.
    #[default]
    Options,
    /// An extension, or the stored session. The choice ends with the session.
    Session,
    /// A client. The choice stays in other sessions, and no stored session changes it.
    Client,
}

/// All tools that a session has, and which of them the model may call.
#[derive(Default)]
pub(crate) struct ToolRegistry {
    layers: BTreeMap<Layer, Vec<Arc<dyn Tool>>>,
    /// Names of the active tools. A name may have no tool yet: the command line names tools before an extension brings them.
    active: Vec<String>,
    /// Names of tools that do not become active when they are registered, because the stored session has switched them off.
    declined: Vec<String>,
    /// Who chose the active tools.
    chosen_by: ChosenBy,
    /// Writes to the todo list that calls of its tool have made.
    todo: TodoWrites,
    /// The sub-agents that work for the session.
    subagents: SubagentRegister,
    /// The processes in the background of the session.
    processes: Processes,
    /// Takes the result of the current prompt, if that has a schema.
    result: Option<Arc<dyn Tool>>,
    /// Whether the run waits for a result. Only then does the tool for it exist.
    wants_result: bool,
    /// What could not be read of the tools.
    problems: Vec<String>,
    /// Errors of arguments have the words of this dialect.
    dialect: Dialect,
}

impl ToolRegistry {
    /// The tools that every session has, of which those named by `active` are active.
    pub(crate) fn new(active: Vec<String>) -> Self {
        let mut registry = Self {
            active,
            ..Self::default()
        };
        registry.set(Layer::BuiltIn, registry.built_in_tools());
        let todo = TodoTool::new(registry.todo.clone());
        registry.set(Layer::Optional, vec![Arc::new(todo)]);
        registry
    }

    /// The tools of a session of this agent.
    pub(crate) fn of_agent(agent: &Agent) -> Self {
        let mut registry = Self::new(agent.options.tools.clone());
        // The built-in tools are made once more, since the words of their errors depend on the dialect.
        registry.dialect = agent.options.dialect;
        registry.set(Layer::BuiltIn, registry.built_in_tools());
        let tools = registry.layers.entry(Layer::Optional).or_default();
        // Present even if it is off: settings that are read again may name it.
        tools.push(Arc::new(FetchTool::new(agent)));
        let subagents = SubagentRegister::new(agent.settings.tools.parallel_subagents);
        let task = Arc::new(TaskTool::new(agent.options.resources.clone(), subagents.clone()));
        tools.push(Arc::clone(&task) as Arc<dyn Tool>);
        registry.subagents = subagents;
        // Only if it is named: with it, the definition of `bash` has further arguments.
        if registry.is_active(PROCESS_TOOL) {
            registry.add_processes();
        }
        // Only then, since the list of problems reads the files of all agents.
        if registry.is_active(TASK_TOOL) {
            registry.problems = task.problems().iter().map(ToString::to_string).collect();
        }
        registry
    }

    /// The built-in tools as the agent has them, which know nothing of the client. `bash` starts processes in the background if
    /// there is a tool that watches them.
    pub(crate) fn built_in_tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = built_in_tools(self.dialect);
        let is_wrapped = |tool: &&mut Arc<dyn Tool>| tool.name() == "bash";
        if self.has(Layer::Optional, PROCESS_TOOL)
            && let Some(bash) = tools.iter_mut().find(is_wrapped)
        {
            *bash = Arc::new(BackgroundBash::new(Arc::clone(bash), self.processes.clone()));
        }
        tools
    }

    /// Lets `bash` start processes in the background.
    fn add_processes(&mut self) {
        let processes = ProcessTool::new(self.processes.clone());
        let tools = self.layers.entry(Layer::Optional).or_default();
        tools.push(Arc::new(processes));
        self.set(Layer::BuiltIn, self.built_in_tools());
    }

    /// The processes in the background of the session.
    pub(crate) fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Takes what could not be read of the tools.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// The sub-agents that work for the session.
    pub(crate) fn subagents(&self) -> &SubagentRegister {
        &self.subagents
    }

    /// A prompt begins: its run gives a result that fits this schema, or none.
    pub(crate) fn set_output(&mut self, schema: Option<Arc<OutputSchema>>) {
        self.result = schema.map(|schema| Arc::new(ResultTool::new(schema)) as Arc<dyn Tool>);
        // The machine says when the run waits for it (`want_result`).
        self.wants_result = false;
    }

    /// Says whether the run waits for a result now.
    pub(crate) fn want_result(&mut self, wants_result: bool) {
        self.wants_result = wants_result;
    }

    fn result_tool(&self) -> Option<&Arc<dyn Tool>> {
        self.result.as_ref().filter(|_| self.wants_result)
    }

    /// Returns true if a tool exists whose name the tool for results has.
    pub(crate) fn hides_result_tool(&self) -> bool {
        self.layers.keys().any(|layer| self.has(*layer, output::TOOL))
    }

    /// Takes the writes to the todo list that calls have made, in order.
    pub(crate) fn take_todo_writes(&self) -> Vec<TodoWrite> {
        self.todo.take()
    }

    /// Replaces the tools of a layer; tools that are there before and after stay as active as they were. Of the others, a name
    /// that goes stays active if `keeps` says so, and a new tool becomes active if `activates` and the tool itself do.
    pub(crate) fn replace(
        &mut self,
        layer: Layer,
        tools: Vec<Arc<dyn Tool>>,
        keeps: impl Fn(&str) -> bool,
        activates: impl Fn(&str) -> bool,
    ) {
        let old = self.names(layer);
        self.set(layer, tools);
        let new = self.names(layer);
        // Names that the layer never had belong to other layers, or to tools that come later.
        self.active
            .retain(|name| !old.contains(name) || new.contains(name) || keeps(name));
        for name in new {
            let is_new = !old.contains(&name) && !self.is_active(&name);
            let is_wanted = self.starts_active(layer, &name) && !self.declined.contains(&name);
            if is_new && is_wanted && activates(&name) {
                self.active.push(name);
            }
        }
    }

    fn starts_active(&self, layer: Layer, name: &str) -> bool {
        let mut tools = self.layer(layer).iter();
        tools.any(|tool| tool.name() == name && tool.starts_active())
    }

    /// Replaces the tools of a layer. Active tools stay active by name.
    pub(crate) fn set(&mut self, layer: Layer, tools: Vec<Arc<dyn Tool>>) {
        self.layers.insert(layer, tools);
    }

    /// The tools of a layer, in their order.
    pub(crate) fn layer(&self, layer: Layer) -> &[Arc<dyn Tool>] {
        self.layers.get(&layer).map_or(&[], Vec::as_slice)
    }

    /// Names of the tools of a layer.
    pub(crate) fn names(&self, layer: Layer) -> Vec<String> {
        let tools = self.layer(layer).iter();
        tools.map(|tool| tool.name().to_owned()).collect()
    }

    /// Returns true if a layer has a tool of this name.
    pub(crate) fn has(&self, layer: Layer, name: &str) -> bool {
        self.layer(layer).iter().any(|tool| tool.name() == name)
    }

    /// The tool that runs when the model calls `name`.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        // Inactive tools count, too: tools of extensions may call them (`Driver::prepare`).
        let tools = Layer::LOOKUP.iter().flat_map(|layer| self.layer(*layer));
        // First, so that a tool of this name that comes during the run cannot take the result.
        let tools = self.result_tool().into_iter().chain(tools);
        tools.into_iter().find(|tool| tool.name() == name)
    }

    /// The arguments that an active tool takes for those of a call, if the conversation shows them instead after the turn.
    pub(crate) fn repaired(&self, call: &ToolCall) -> Option<Map<String, Value>> {
        // The call of an inactive tool is refused, so the conversation keeps its arguments as they are.
        let tool = self.find(&call.name).filter(|_| self.is_active(&call.name))?;
        tool.repaired(call)
    }

    /// The tools of some layers as they are listed: without the tools that an extension replaces.
    pub(crate) fn listed(&self, layers: &[Layer]) -> impl Iterator<Item = &Arc<dyn Tool>> {
        layers.iter().flat_map(|layer| {
            let is_replaced =
                |tool: &Arc<dyn Tool>| layer.is_replaceable() && self.has(Layer::Extension, tool.name());
            self.layer(*layer).iter().filter(move |tool| !is_replaced(tool))
        })
    }

    /// Names of the active tools, in the order in which they became active.
    pub(crate) fn active_names(&self) -> &[String] {
        &self.active
    }

    /// Returns true if the model may call a tool of this name.
    pub(crate) fn is_active(&self, name: &str) -> bool {
        // Apart from the list, which clients and extensions replace: the run needs this tool in any case.
        let is_result = self.result_tool().is_some_and(|tool| tool.name() == name);
        is_result || self.active.iter().any(|active| active == name)
    }

    /// Makes these names the active ones.
    pub(crate) fn activate(&mut self, names: Vec<String>, chosen_by: ChosenBy) {
        self.active = names;
        self.chosen_by = chosen_by;
    }

    /// Keeps these names from becoming active when they are registered.
    pub(crate) fn decline(&mut self, names: Vec<String>) {
        self.declined = names;
    }

    /// The active tools, in the order in which the model sees them.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        const ALL: [Layer; 5] = [
            Layer::BuiltIn,
            Layer::Optional,
            Layer::Extension,
            Layer::Mcp,
            Layer::Client,
        ];
        self.listed(&ALL).filter(|tool| self.is_active(tool.name()))
    }

    /// The error for a call of a tool that does not exist or is not active (pi-core.md 1.5), with the nearest active tools.
    pub(crate) fn not_found(&self, name: &str) -> String {
        unknown_tool(name, self.active().map(|tool| tool.name()))
    }

    /// The definitions of the active tools, in the order in which the model sees them.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        // Last: a tool that comes and goes with a run must not move the tools that providers have cached.
        let tools = self.active().chain(self.result_tool());
        tools.map(|tool| tool.definition().spec).collect()
    }

    /// Returns true if the model may call the tool that writes the todo list.
    pub(crate) fn has_todo_tool(&self) -> bool {
        self.is_active(todo::TOOL)
    }

    /// The reply of `get_tools`.
    pub(crate) fn listing(&self) -> Tools {
        let listed = |layers| self.listed(layers).map(|tool| tool.definition().spec);
        // These are no choice of the client: they are listed where they are active.
        let optional = self.layer(Layer::Optional).iter();
        let optional = optional
            .filter(|tool| self.is_active(tool.name()))
            .map(|tool| tool.definition().spec);
        Tools {
            active_tool_names: self.active_listing().active_tool_names,
            all_tools: listed(&Layer::CHOSEN_BY_EXTENSIONS)
                .chain(optional)
                .chain(listed(&[Layer::Client]))
                .collect(),
        }
    }

    /// The names of the active tools in the order of the model's list.
    pub(crate) fn active_listing(&self) -> ActiveTools {
        ActiveTools {
            active_tool_names: self.active().map(|tool| tool.name().to_owned()).collect(),
        }
    }

    /// Makes these tools the active ones. Names that no tool has are passed over.
    pub(crate) fn choose(&mut self, names: impl Iterator<Item = String>, chosen_by: ChosenBy) {
        let layers = [&Layer::CHOSEN_BY_EXTENSIONS[..], &[Layer::Client]].concat();
        // Optional tools are the user's choice: a choice may keep the active ones, but adds none.
        let is_kept = |name: &String| self.has(Layer::Optional, name) && self.is_active(name);
        let is_there = |name: &String| layers.iter().any(|layer| self.has(*layer, name)) || is_kept(name);
        let active = names.filter(is_there).collect();
        self.activate(active, chosen_by);
    }

    /// These names, of which the active ones come first in the order in which they became active. Today's pi makes tools active in this
    /// order.
    pub(crate) fn active_first(&self, mut names: Vec<String>) -> Vec<String> {
        let place = |name: &String| self.active.iter().position(|active| active == name);
        names.sort_by_key(|name| place(name).unwrap_or(self.active.len()));
        names
    }

    /// Who chose the active tools.
    pub(crate) fn chosen_by(&self) -> ChosenBy {
        self.chosen_by
    }

    /// The choice of a client, if the active tools are one.
    pub(crate) fn clients_choice(&self) -> Option<ToolChoice> {
        if self.chosen_by != ChosenBy::Client {
            return None;
        }
        let known = self.layers.keys().flat_map(|layer| self.names(*layer));
        // Extensions and servers register their tools again, which must not make those active that the client left out.
        let declined = known
            .filter(|name| !self.is_active(name))
            .chain(self.declined.clone());
        Some(ToolChoice {
            active: self.active.clone(),
            declined: declined.collect(),
        })
    }

    /// Restores the choice of a client from before the eviction.
    pub(crate) fn restore_choice(&mut self, choice: ToolChoice) {
        self.activate(choice.active, ChosenBy::Client);
        self.declined = choice.declined;
    }

    /// The settings name the tools `now` where they named `was`. What a client, an extension or the stored session chose stays, and so
    /// do tools that extensions, servers and the client brought.
    pub(crate) fn follow_options(&mut self, was: &[String], mut now: Vec<String>) {
        if self.chosen_by != ChosenBy::Options {
            return;
        }
        let brought = |name: &String| !was.contains(name) && !now.contains(name);
        let brought: Vec<String> = self.active.iter().filter(|name| brought(name)).cloned().collect();
        now.extend(brought);
        self.active = now;
    }

    /// Another session begins. Unless a client chose the active tools, these built-in and optional tools are active again, and all tools of
    /// the other layers that start active and that `allows`.
    pub(crate) fn begin_session(&mut self, own: Vec<String>, allows: impl Fn(Layer, &str) -> bool) {
        self.declined.clear();
        if self.chosen_by != ChosenBy::Session {
            return;
        }
        self.chosen_by = ChosenBy::Options;
        self.active = own;
        for layer in [Layer::Extension, Layer::Mcp, Layer::Client] {
            for name in self.names(layer) {
                if !self.is_active(&name) && self.starts_active(layer, &name) && allows(layer, &name) {
                    self.active.push(name);
                }
            }
        }
    }
}
