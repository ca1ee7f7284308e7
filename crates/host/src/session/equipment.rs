//! What the model is given besides the conversation: the active tools and the system prompt.

use jiff::Zoned;
use tools::pattern::fits;
use tools::{ToolInfo, Toolbox};
use wire::ToolSpec;
use wire::tool::{ActiveTools, ActiveToolsParams, Tools};

use crate::resources::ToolHint;

use super::Session;

impl Session {
    /// The active tools of our own, in their fixed order.
    fn active(&self) -> impl Iterator<Item = ToolInfo> {
        Toolbox::infos()
            .iter()
            .filter(|info| self.active_tools.contains(&info.spec.name))
            .cloned()
            .chain(self.todo_tool())
            .filter(|info| !self.extensions.tools().has(&info.spec.name))
    }

    /// What the model is told of its tools: ours, then those of the host.
    pub(super) fn tool_specs(&self) -> Vec<ToolSpec> {
        let own = self.active().map(|info| info.spec);
        own.chain(self.extensions.tools().specs(&self.active_tools))
            .chain(self.mcp.tools().specs(&self.active_tools))
            .chain(self.hosted.specs(&self.active_tools))
            .collect()
    }

    pub(super) fn get_tools(&self) -> Tools {
        let own = self.all_tools().into_iter();
        // Everything there has a name, a description and a schema.
        let own = own.filter_map(|tool| serde_json::from_value(tool).ok());
        let todo = self.todo_tool().map(|info| info.spec);
        let names = self.hosted.names();
        let lent = self.hosted.specs(&names);
        Tools {
            active_tool_names: self.active_tool_names(),
            all_tools: own.chain(todo).chain(lent).collect(),
        }
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
        let rules = self.hosted.uri_rules();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let active: Vec<ToolInfo> = self.active().collect();
        let own = active.iter().map(|info| ToolHint {
            name: &info.spec.name,
            snippet: Some(info.snippet),
            guidelines: info.guidelines,
        });
        let lent = self
            .hosted
            .hints(&self.active_tools)
            .map(|(name, line)| ToolHint {
                name,
                snippet: Some(line),
                guidelines: &[],
            });
        let theirs = self.extensions.tools().hints(&self.active_tools);
        let theirs: Vec<(&str, Option<&str>, Vec<&str>)> = theirs
            .iter()
            .map(|(name, line, rules)| {
                (
                    name.as_str(),
                    line.as_deref(),
                    rules.iter().map(String::as_str).collect(),
                )
            })
            .collect();
        let theirs = theirs.iter().map(|(name, snippet, guidelines)| ToolHint {
            name,
            snippet: *snippet,
            guidelines,
        });
        let mut hints: Vec<ToolHint<'_>> = own.chain(theirs).chain(lent).collect();
        if !rules.is_empty() && self.active_tools.iter().any(|name| name == "read") {
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
