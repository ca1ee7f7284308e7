//! What the model is given besides the conversation: the active tools and the system prompt.

use jiff::Zoned;
use tools::{ToolInfo, Toolbox};
use wire::ToolSpec;

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
