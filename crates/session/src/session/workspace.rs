//! Where a session works: its directory, the resources that were loaded for it, and the system prompt that is made of them.

use std::path::{Path, PathBuf};

use config::resources::{Resources, ToolHint};
use jiff::Zoned;

use super::tool_calls::{Definition, ToolRegistry};

/// The working directory of a session and its resources.
pub(super) struct Workspace {
    /// The directory that tools work in.
    pub(super) cwd: PathBuf,
    pub(super) resources: Resources,
    /// Whether the system prompt has the date.
    has_date: bool,
    /// Made for the first request and kept, so that providers can cache it. A change of tools or resources makes it anew.
    system_prompt: Option<String>,
}

impl Workspace {
    /// A directory with the resources that were loaded for it.
    pub(super) fn new(cwd: PathBuf, resources: Resources, has_date: bool) -> Self {
        Self {
            cwd,
            resources,
            has_date,
            system_prompt: None,
        }
    }

    /// Takes other resources.
    pub(super) fn set_resources(&mut self, resources: Resources) {
        self.resources = resources;
        self.system_prompt = None;
    }

    /// The next system prompt is made anew.
    pub(super) fn forget_system_prompt(&mut self) {
        self.system_prompt = None;
    }

    /// The system prompt for the active tools; `rules` are those for URIs that the client serves. `limits` states what tools
    /// cannot do in a directory; it is called only when the prompt is made anew.
    pub(super) fn system_prompt(
        &mut self,
        tools: &ToolRegistry,
        rules: &[String],
        limits: impl FnOnce(&Path) -> Vec<String>,
    ) -> String {
        if let Some(prompt) = &self.system_prompt {
            return prompt.clone();
        }
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let active = tools.active();
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
        // The tool `read` takes these URIs (dialects.md 7). The hint needs no name, since it is no further tool.
        if !rules.is_empty() && tools.is_active("read") {
            hints.push(ToolHint {
                name: "",
                snippet: None,
                guidelines: &rules,
            });
        }
        // As of the first request: a date that changed at midnight would cost the provider's cache.
        let date = self.has_date.then(|| Zoned::now().date().to_string());
        let mut prompt = self.resources.system_prompt(&hints, date.as_deref());
        // Without tools there is nothing that could be limited.
        let limits = if hints.is_empty() {
            Vec::new()
        } else {
            limits(&self.cwd)
        };
        if !limits.is_empty() {
            prompt.push_str("\n\nLimits of your tools:");
            for limit in limits {
                prompt.push_str("\n- ");
                prompt.push_str(&limit);
            }
        }
        self.system_prompt = Some(prompt.clone());
        prompt
    }
}
