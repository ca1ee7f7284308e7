//! What the model is given besides the conversation: the active tools and the system prompt.

use jiff::Zoned;
use tools::{ToolInfo, Toolbox};
use wire::ToolSpec;

use crate::resources::ToolHint;

use super::Session;

impl Session {
    /// The active tools, in their fixed order.
    fn active(&self) -> impl Iterator<Item = ToolInfo> {
        Toolbox::infos()
            .iter()
            .filter(|info| self.active_tools.contains(&info.spec.name))
            .cloned()
            .chain(self.todo_tool())
    }

    /// What the model is told of its tools.
    pub(super) fn tool_specs(&self) -> Vec<ToolSpec> {
        self.active().map(|info| info.spec).collect()
    }

    /// The system prompt; put together once and kept, so that providers can cache it.
    pub(super) fn system_prompt(&mut self) -> String {
        if let Some(prompt) = &self.system_prompt {
            return prompt.clone();
        }
        let active: Vec<ToolInfo> = self.active().collect();
        let hints: Vec<ToolHint<'_>> = active
            .iter()
            .map(|info| ToolHint {
                name: &info.spec.name,
                snippet: Some(info.snippet),
                guidelines: info.guidelines,
            })
            .collect();
        let date = Zoned::now().date().to_string();
        let prompt = self.resources.system_prompt(&hints, &date);
        self.system_prompt = Some(prompt.clone());
        prompt
    }
}
