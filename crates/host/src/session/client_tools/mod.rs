//! Tools that the client carries out and URIs that it serves (dialects.md 7). Here: what the client has set, and the two
//! commands that set it. What a definition must look like is in `definitions`, the tools themselves in `tool`, the requests to
//! the client in `requests`, and how URIs become results of `read` and `write` in `uris`.
//!
//! Both belong to the connection rather than to the conversation: they stay when the session goes on in another file.

mod definitions;
mod requests;
#[cfg(test)]
mod tests;
mod tool;
mod uris;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tools::pattern::fits;
use wire::hosted::{HostToolNames, HostToolsParams, HostUriScheme, HostUriSchemes, HostUriSchemesParams};

use crate::strings;

use super::Session;
use super::tool_calls::{Layer, Tool, built_in_tools};
use definitions::ClientDefinition;
use requests::Requests;
use tool::ClientTool;

/// What the client has set and what it was asked. Clones share it: each tool holds one.
#[derive(Clone, Default)]
pub(super) struct ClientTools {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    tools: Vec<Arc<ClientDefinition>>,
    schemes: Vec<HostUriScheme>,
    requests: Requests,
}

impl ClientTools {
    /// Returns true if the client has set tools or schemes, or a request waits for it.
    pub(super) fn are_in_use(&self) -> bool {
        let shared = self.lock();
        !shared.tools.is_empty() || !shared.schemes.is_empty() || shared.requests.are_open()
    }

    /// One rule for the system prompt per scheme.
    pub(super) fn uri_rules(&self) -> Vec<String> {
        self.lock().schemes.iter().map(uris::rule).collect()
    }

    /// The definition that the client has set last for a name.
    fn definition(&self, name: &str) -> Option<Arc<ClientDefinition>> {
        let shared = self.lock();
        shared.tools.iter().find(|tool| tool.name == name).cloned()
    }

    /// The scheme of a URI, if the client serves it.
    fn scheme_of(&self, uri: &str) -> Option<HostUriScheme> {
        let name = uri.split_once("://")?.0.to_ascii_lowercase();
        let shared = self.lock();
        shared
            .schemes
            .iter()
            .find(|scheme| scheme.scheme == name)
            .cloned()
    }

    /// The tools for the registry.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let shared = self.lock();
        let tool = |definition: &Arc<ClientDefinition>| -> Arc<dyn Tool> {
            Arc::new(ClientTool::new(definition, self.clone()))
        };
        shared.tools.iter().map(tool).collect()
    }

    /// The state stays valid if a holder of the lock panics: every change is one assignment.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Replaces the tools of the client. Nothing changes unless all definitions are valid.
    pub(super) fn set_host_tools(&mut self, params: &HostToolsParams) -> Result<HostToolNames, String> {
        let tools = definitions::tools(&params.tools)?;
        let is_built_in = |tool: &&ClientDefinition| self.tools.has(Layer::BuiltIn, &tool.name);
        if let Some(tool) = tools.iter().find(is_built_in) {
            return Err(strings::host_tool_conflicts(&tool.name));
        }
        let new: Vec<Arc<ClientDefinition>> = tools.into_iter().map(Arc::new).collect();
        self.client_tools.lock().tools.clone_from(&new);
        let options = &self.agent.options;
        let hidden = |name: &str| new.iter().any(|tool| tool.name == name && tool.hidden);
        self.tools.replace(
            Layer::Client,
            self.client_tools.tools(),
            |_| false,
            |name| {
                let named = |list: &[String]| list.iter().any(|item| fits(item, name));
                (!hidden(name) || named(&options.named_tools)) && !named(&options.excluded_tools)
            },
        );
        self.system_prompt = None;
        let tool_names = new.iter().map(|tool| tool.name.clone()).collect();
        Ok(HostToolNames { tool_names })
    }

    /// Replaces the URI schemes of the client.
    pub(super) fn set_host_uri_schemes(
        &mut self,
        params: &HostUriSchemesParams,
    ) -> Result<HostUriSchemes, String> {
        let schemes = definitions::schemes(&params.schemes)?;
        let names = schemes.iter().map(|scheme| scheme.scheme.clone()).collect();
        self.client_tools.lock().schemes = schemes;
        let tools = built_in_tools().into_iter();
        let tools = tools.map(|tool| uris::serve(tool, &self.client_tools)).collect();
        self.tools.set(Layer::BuiltIn, tools);
        self.system_prompt = None;
        Ok(HostUriSchemes { schemes: names })
    }
}
