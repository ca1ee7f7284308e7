//! Tools that the client carries out and URIs that it serves: the two commands that set them. What the client has set and was
//! asked is in `client`, what a definition must look like in `definitions`, the tools themselves in `tool`, the requests to the
//! client in `requests`, and how URIs become results of `read` and `write` in `uris`.
//!
//! Both belong to the connection rather than to the conversation: they stay when the session goes on in another file.

mod client;
mod definitions;
mod requests;
#[cfg(test)]
mod tests;
mod tool;
mod uris;

use std::sync::Arc;

use tools::pattern::fits;
use wire::hosted::{HostToolNames, HostToolsParams, HostUriSchemes, HostUriSchemesParams};

use crate::outbox::Outbox;
use crate::strings;

use super::tool_calls::{Layer, Tool, ToolRegistry};

pub(super) use self::client::ClientTools;
use self::definitions::ClientDefinition;
pub(super) use self::requests::Withdrawn;
use self::tool::ClientTool;

/// The choices of the command line about the tools of the client.
pub(super) struct Activation<'a> {
    /// Patterns of tools that the command line names; it activates hidden ones, too.
    pub(super) named: &'a [String],
    /// Patterns of tools that stay off.
    pub(super) excluded: &'a [String],
}

impl ClientTools {
    /// The tools for the registry.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let shared = self.lock();
        let tool = |definition: &Arc<ClientDefinition>| -> Arc<dyn Tool> {
            Arc::new(ClientTool::new(definition, self.clone()))
        };
        shared.tools.iter().map(tool).collect()
    }

    /// One rule for the system prompt per scheme.
    pub(super) fn uri_rules(&self) -> Vec<String> {
        self.lock().schemes.iter().map(uris::rule).collect()
    }

    /// Replaces the tools of the client. The system prompt has to be made anew then.
    ///
    /// # Errors
    /// When a definition is not valid. Nothing changes then.
    pub(super) fn set_tools(
        &self,
        params: &HostToolsParams,
        registry: &mut ToolRegistry,
        activation: Activation<'_>,
    ) -> Result<HostToolNames, String> {
        let tools = definitions::tools(&params.tools)?;
        // The last check of the protocol, after those of the definitions (dialects.md 7).
        let is_built_in = |tool: &&ClientDefinition| registry.has(Layer::BuiltIn, &tool.name);
        if let Some(tool) = tools.iter().find(is_built_in) {
            return Err(strings::host_tool_conflicts(&tool.name));
        }
        let new: Vec<Arc<ClientDefinition>> = tools.into_iter().map(Arc::new).collect();
        self.lock().tools.clone_from(&new);
        let hidden = |name: &str| new.iter().any(|tool| tool.name == name && tool.hidden);
        registry.replace(
            Layer::Client,
            self.tools(),
            // A name that goes does not stay active: a hidden tool of that name may come later.
            |_| false,
            |name| {
                let is_in = |list: &[String]| list.iter().any(|item| fits(item, name));
                (!hidden(name) || is_in(activation.named)) && !is_in(activation.excluded)
            },
        );
        let tool_names = new.iter().map(|tool| tool.name.clone()).collect();
        Ok(HostToolNames { tool_names })
    }

    /// Replaces the URI schemes of the client. The system prompt has to be made anew then.
    ///
    /// # Errors
    /// When a scheme is not valid. Nothing changes then.
    pub(super) fn set_schemes(
        &self,
        params: &HostUriSchemesParams,
        registry: &mut ToolRegistry,
    ) -> Result<HostUriSchemes, String> {
        let schemes = definitions::schemes(&params.schemes)?;
        let names = schemes.iter().map(|scheme| scheme.scheme.clone()).collect();
        self.lock().schemes = schemes;
        // Made of the agent's own tools: the schemes before must not be served any more.
        let tools = registry.built_in_tools().into_iter();
        let tools = tools.map(|tool| uris::serve(tool, self)).collect();
        registry.set(Layer::BuiltIn, tools);
        Ok(HostUriSchemes { schemes: names })
    }

    /// Sends the requests that calls have made.
    pub(super) async fn send_requests(&self, outbox: &Outbox) {
        for event in self.take_outgoing() {
            outbox.tell(event).await;
        }
    }
}
