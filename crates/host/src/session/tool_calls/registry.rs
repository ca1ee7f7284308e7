//! The tools of a session, in layers: who brought them decides which tool runs when two have one name, and in which order the
//! model sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::todo::{TodoTool, TodoWrite, TodoWrites};
use super::{Tool, built_in_tools};

/// Who brought a tool. The order is that of the lists that the model sees; providers cache the beginning of a request, so it
/// must not change from one request to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::session) enum Layer {
    /// The agent.
    BuiltIn,
    /// The session, for its todo list.
    Todo,
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
        Self::Todo,
        Self::Client,
        Self::BuiltIn,
    ];

    /// Whether a tool of an extension takes the place of one of this layer in lists, too. Tools of servers and clients stay
    /// listed beside it: their owners see that the name is taken.
    const fn is_replaceable(self) -> bool {
        matches!(self, Self::BuiltIn | Self::Todo)
    }
}

/// All tools that a session has, and which of them the model may call.
#[derive(Default)]
pub(in crate::session) struct ToolRegistry {
    layers: BTreeMap<Layer, Vec<Arc<dyn Tool>>>,
    /// Names of the active tools. A name may have no tool yet: the command line names tools before an extension brings them.
    active: Vec<String>,
    /// Writes to the todo list that calls of its tool have made.
    todo: TodoWrites,
}

impl ToolRegistry {
    /// The tools that every session has, of which those named by `active` are active.
    pub(in crate::session) fn new(active: Vec<String>) -> Self {
        let mut registry = Self {
            active,
            ..Self::default()
        };
        registry.set(Layer::BuiltIn, built_in_tools());
        let todo = TodoTool::new(registry.todo.clone());
        registry.set(Layer::Todo, vec![Arc::new(todo)]);
        registry
    }

    /// Takes the writes to the todo list that calls have made, in order.
    pub(in crate::session) fn take_todo_writes(&self) -> Vec<TodoWrite> {
        self.todo.take()
    }

    /// Replaces the tools of a layer; tools that are there before and after stay as active as they were. Of the others, a name
    /// that goes stays active if `keeps` says so, and a new tool becomes active if `activates` does.
    pub(in crate::session) fn replace(
        &mut self,
        layer: Layer,
        tools: Vec<Arc<dyn Tool>>,
        keeps: impl Fn(&str) -> bool,
        activates: impl Fn(&str) -> bool,
    ) {
        let old = self.names(layer);
        self.set(layer, tools);
        let new = self.names(layer);
        self.active
            .retain(|name| !old.contains(name) || new.contains(name) || keeps(name));
        for name in new {
            if !old.contains(&name) && !self.is_active(&name) && activates(&name) {
                self.active.push(name);
            }
        }
    }

    /// Replaces the tools of a layer. What is active stays so by name.
    pub(in crate::session) fn set(&mut self, layer: Layer, tools: Vec<Arc<dyn Tool>>) {
        self.layers.insert(layer, tools);
    }

    /// The tools of a layer, in their order.
    pub(in crate::session) fn layer(&self, layer: Layer) -> &[Arc<dyn Tool>] {
        self.layers.get(&layer).map_or(&[], Vec::as_slice)
    }

    /// Names of the tools of a layer.
    pub(in crate::session) fn names(&self, layer: Layer) -> Vec<String> {
        let tools = self.layer(layer).iter();
        tools.map(|tool| tool.name().to_owned()).collect()
    }

    /// Returns true if a layer has a tool of this name.
    pub(in crate::session) fn has(&self, layer: Layer, name: &str) -> bool {
        self.layer(layer).iter().any(|tool| tool.name() == name)
    }

    /// The tool that runs when the model calls `name`.
    pub(in crate::session) fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let tools = Layer::LOOKUP.iter().flat_map(|layer| self.layer(*layer));
        tools.into_iter().find(|tool| tool.name() == name)
    }

    /// The tools of some layers as they are listed: without those that an extension replaces.
    pub(in crate::session) fn listed(&self, layers: &[Layer]) -> impl Iterator<Item = &Arc<dyn Tool>> {
        layers.iter().flat_map(|layer| {
            let is_replaced =
                |tool: &Arc<dyn Tool>| layer.is_replaceable() && self.has(Layer::Extension, tool.name());
            self.layer(*layer).iter().filter(move |tool| !is_replaced(tool))
        })
    }

    /// Names of the active tools, in the order in which they became active.
    pub(in crate::session) fn active_names(&self) -> &[String] {
        &self.active
    }

    /// Returns true if the model may call a tool of this name.
    pub(in crate::session) fn is_active(&self, name: &str) -> bool {
        self.active.iter().any(|active| active == name)
    }

    /// Makes these names the active ones.
    pub(in crate::session) fn activate(&mut self, names: Vec<String>) {
        self.active = names;
    }

    /// The active tools, in the order in which the model sees them.
    pub(in crate::session) fn active(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        const ALL: [Layer; 5] = [
            Layer::BuiltIn,
            Layer::Todo,
            Layer::Extension,
            Layer::Mcp,
            Layer::Client,
        ];
        self.listed(&ALL).filter(|tool| self.is_active(tool.name()))
    }
}
