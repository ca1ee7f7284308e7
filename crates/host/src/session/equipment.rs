//! What the model is given besides the conversation: the active tools and the system prompt.

use config::resources::ToolHint;
use jiff::Zoned;
use tools::pattern::fits;
use wire::ToolSpec;
use wire::tool::{ActiveTools, ActiveToolsParams, Tools};

use super::Session;
use super::tool_calls::{Definition, Layer};

/// The layers whose tools extensions see and switch on and off.
pub(super) const CHOSEN_BY_EXTENSIONS: [Layer; 3] = [Layer::BuiltIn, Layer::Extension, Layer::Mcp];

impl Session {
    /// The definitions of the active tools, in the order in which the model sees them.
    pub(super) fn tool_specs(&self) -> Vec<ToolSpec> {
        let tools = self.tools.active();
        tools.map(|tool| tool.definition().spec).collect()
    }

    pub(super) fn get_tools(&self) -> Tools {
        let listed = |layers| self.tools.listed(layers).map(|tool| tool.definition().spec);
        // The todo list is not a choice of the client: it is listed where it is active.
        let todo = self.tools.layer(Layer::Todo).iter();
        let todo = todo
            .filter(|_| self.has_todo_tool())
            .map(|tool| tool.definition().spec);
        Tools {
            active_tool_names: self.active_tool_names(),
            all_tools: listed(&CHOSEN_BY_EXTENSIONS)
                .chain(todo)
                .chain(listed(&[Layer::Client]))
                .collect(),
        }
    }

    /// Makes these tools the active ones; names that no tool has are passed over.
    pub(super) fn choose_tools(&mut self, names: impl Iterator<Item = String>) {
        let layers = [&CHOSEN_BY_EXTENSIONS[..], &[Layer::Client]].concat();
        let is_there = |name: &String| layers.iter().any(|layer| self.tools.has(*layer, name));
        let names = names.filter(is_there).collect();
        self.tools.activate(names);
        self.system_prompt = None;
        self.extensions.tools_changed();
    }

    /// A client chooses the tools. What the command line forbids stays forbidden.
    pub(super) fn set_tools(&mut self, params: ActiveToolsParams) -> ActiveTools {
        let options = self.agent.options.clone();
        let named = |list: &[String], name: &str| list.iter().any(|item| fits(item, name));
        let may = |name: &String| {
            options.only_tools.as_ref().is_none_or(|only| named(only, name))
                && !named(&options.excluded_tools, name)
        };
        self.choose_tools(params.tool_names.into_iter().filter(may));
        ActiveTools {
            active_tool_names: self.active_tool_names(),
        }
    }

    fn active_tool_names(&self) -> Vec<String> {
        self.tool_specs().into_iter().map(|tool| tool.name).collect()
    }

    /// The system prompt; put together once and kept, so that providers can cache it. Another set of tools makes it anew.
    pub(super) fn system_prompt(&mut self) -> String {
        if let Some(prompt) = &self.system_prompt {
            return prompt.clone();
        }
        let rules = self.client_tools.uri_rules();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let active = self.tools.active();
        let active: Vec<Definition> = active.map(|tool| tool.definition()).collect();
        let advice: Vec<Vec<&str>> = active
            .iter()
            .map(|tool| tool.guidelines.iter().flatten().map(String::as_str).collect())
            .collect();
        let hints = active.iter().zip(&advice).map(|(tool, guidelines)| ToolHint {
            name: &tool.spec.name,
            snippet: tool.snippet.as_deref(),
            guidelines,
        });
        let mut hints: Vec<ToolHint<'_>> = hints.collect();
        if !rules.is_empty() && self.tools.is_active("read") {
            hints.push(ToolHint {
                name: "",
                snippet: None,
                guidelines: &rules,
            });
        }
        let date = Zoned::now().date().to_string();
        let prompt = self.resources.system_prompt(&hints, &date);
        self.system_prompt = Some(prompt.clone());
        prompt
    }
}
