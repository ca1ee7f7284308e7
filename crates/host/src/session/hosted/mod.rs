//! What the host lends a session: tools that it carries out and URIs that it serves (dialects.md 7). Here: the state and the
//! two commands. What a definition must look like is in `definitions`, the questions that are out in `asking`, how URIs
//! become results of `read` and `write` in `uris`.
//!
//! Both belong to the connection rather than to the conversation: they stay when the session goes on in another file.

mod asking;
mod definitions;
mod uris;

use std::collections::HashMap;
use std::sync::Arc;

use pinion_core::Prepared;
use serde_json::{Map, Value};
use tools::pattern::fits;
use tools::{ForeignSchema, Toolbox};
use wire::hosted::{
    HostToolNames, HostToolsParams, HostUriScheme, HostUriSchemes, HostUriSchemesParams, UriOperation,
};
use wire::{ToolResult, ToolSpec};

use crate::permissions::{Proposal, Source};
use crate::strings;

use super::Session;
use asking::{Open, Question};

pub(super) use asking::{block, result};

/// A tool that the host carries out.
struct Lent {
    name: String,
    description: String,
    hidden: bool,
    schema: ForeignSchema,
}

/// What the host lends, and what it was asked.
#[derive(Default)]
pub(super) struct Hosted {
    tools: Vec<Arc<Lent>>,
    schemes: Vec<HostUriScheme>,
    /// Questions of the current batch that are not asked yet, by the call's position. They hold what they need, so that
    /// another set of tools does not change them.
    prepared: HashMap<usize, Question>,
    /// Questions that wait for an answer, oldest first; as many as calls may run at once.
    open: Vec<Open>,
    /// Nobody is there any more to answer.
    gone: bool,
}

impl Hosted {
    /// Does the host lend anything, or is it asked for something?
    pub(super) fn lends(&self) -> bool {
        !self.tools.is_empty() || !self.schemes.is_empty() || self.is_asked()
    }

    /// Does anything wait for an answer of the host?
    pub(super) fn is_asked(&self) -> bool {
        !self.open.is_empty()
    }

    /// Checks a call and keeps it, if it is one for the host. `None`: it is not.
    pub(super) fn prepare(
        &mut self,
        slot: usize,
        id: String,
        name: &str,
        args: &Map<String, Value>,
    ) -> Option<Prepared> {
        let tool = self.tools.iter().find(|tool| tool.name == name)?;
        Some(match tool.schema.prepare(name, args) {
            Ok(arguments) => self.keep(
                slot,
                Question::Tool {
                    call_id: id,
                    name: name.to_owned(),
                    arguments,
                },
            ),
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        })
    }

    /// The same for `read` and `write` on a URI of the host.
    pub(super) fn prepare_uri(
        &mut self,
        slot: usize,
        name: &str,
        args: &Map<String, Value>,
    ) -> Option<Prepared> {
        let operation = match name {
            "read" => UriOperation::Read,
            "write" => UriOperation::Write,
            _ => return None,
        };
        let url = args.get("path").and_then(Value::as_str)?.trim();
        let name = url.split_once("://")?.0.to_ascii_lowercase();
        let scheme = self.schemes.iter().find(|scheme| scheme.scheme == name)?;
        if operation == UriOperation::Write && !scheme.writable {
            return Some(Prepared::Refused(ToolResult::error(strings::read_only_scheme(
                &name,
            ))));
        }
        let question = Question::Uri {
            operation,
            url: url.to_owned(),
            args: args.clone(),
            immutable: scheme.immutable,
        };
        Some(self.keep(slot, question))
    }

    fn keep(&mut self, slot: usize, question: Question) -> Prepared {
        self.prepared.insert(slot, question);
        Prepared::Run
    }

    /// A prepared question as it is to be permitted. What is asked later is done by the tool of that name that there is then, so
    /// its definition of now counts.
    pub(super) fn proposal_at(&self, slot: usize) -> Option<Proposal<'_>> {
        Some(match self.prepared.get(&slot)? {
            Question::Tool { name, arguments, .. } => {
                let tool = self.tools.iter().find(|tool| tool.name == *name);
                Proposal {
                    tool: name,
                    source: Source::Client,
                    description: tool.map_or("", |tool| tool.description.as_str()),
                    schema: tool.map(|tool| tool.schema.schema()),
                    args: arguments,
                }
            }
            Question::Uri {
                operation, url, args, ..
            } => Proposal {
                tool: operation.as_str(),
                source: Source::ClientUri,
                description: self
                    .scheme_of(url)
                    .and_then(|scheme| scheme.description.as_deref())
                    .unwrap_or(""),
                schema: None,
                args,
            },
        })
    }

    /// A prepared question about a URI.
    pub(super) fn uri_at(&self, slot: usize) -> Option<&str> {
        match self.prepared.get(&slot)? {
            Question::Uri { url, .. } => Some(url),
            Question::Tool { .. } => None,
        }
    }

    fn scheme_of(&self, url: &str) -> Option<&HostUriScheme> {
        let name = url.split_once("://")?.0.to_ascii_lowercase();
        self.schemes.iter().find(|scheme| scheme.scheme == name)
    }

    /// Is it a tool of the host?
    pub(super) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// Names of its tools.
    pub(super) fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// The arguments of a prepared question.
    pub(super) fn args(&self, slot: usize) -> Option<&Map<String, Value>> {
        match self.prepared.get(&slot)? {
            Question::Tool { arguments, .. } => Some(arguments),
            Question::Uri { args, .. } => Some(args),
        }
    }

    /// Other arguments for a prepared question. A URI stays what it was.
    pub(super) fn change_args(&mut self, slot: usize, args: &Map<String, Value>) {
        if let Some(Question::Tool { arguments, .. }) = self.prepared.get_mut(&slot) {
            arguments.clone_from(args);
        }
    }

    /// Forgets what was prepared for a batch.
    pub(super) fn reset(&mut self) {
        self.prepared.clear();
    }

    /// What the model is told of the tools that are among `active`.
    pub(super) fn specs(&self, active: &[String]) -> impl Iterator<Item = ToolSpec> {
        self.active(active).map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.schema.schema().clone(),
            prefers_strict: false,
        })
    }

    /// Names of the tools that are among `active`, each with the first line of its description.
    pub(super) fn hints<'a>(&'a self, active: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.active(active).map(|tool| {
            let line = tool.description.lines().next().unwrap_or_default();
            let end = line.floor_char_boundary(crate::limits::HOST_HINT);
            (tool.name.as_str(), line.get(..end).unwrap_or_default())
        })
    }

    fn active(&self, active: &[String]) -> impl Iterator<Item = &Arc<Lent>> {
        self.tools.iter().filter(|tool| active.contains(&tool.name))
    }

    /// One rule for the system prompt per scheme.
    pub(super) fn uri_rules(&self) -> Vec<String> {
        self.schemes.iter().map(uris::rule).collect()
    }
}

impl Session {
    /// Replaces the tools of the host. Nothing changes unless all of them are as they must be.
    pub(super) fn set_host_tools(&mut self, params: &HostToolsParams) -> Result<HostToolNames, String> {
        let tools = definitions::tools(&params.tools)?;
        let is_ours = |tool: &&Lent| Toolbox::infos().iter().any(|info| info.spec.name == tool.name);
        if let Some(tool) = tools.iter().find(is_ours) {
            return Err(strings::host_tool_conflicts(&tool.name));
        }
        let old = std::mem::take(&mut self.hosted.tools);
        let among = |tools: &[Arc<Lent>], name: &str| tools.iter().any(|tool| tool.name == name);
        self.hosted.tools = tools.into_iter().map(Arc::new).collect();
        let new = &self.hosted.tools;
        // Those that stay are as active as they were.
        self.active_tools
            .retain(|name| !among(&old, name) || among(new, name));
        let options = &self.agent.options;
        for tool in new.iter().filter(|tool| !among(&old, &tool.name)) {
            let named = |list: &[String]| list.iter().any(|item| fits(item, &tool.name));
            if (!tool.hidden || named(&options.named_tools)) && !named(&options.excluded_tools) {
                self.active_tools.push(tool.name.clone());
            }
        }
        self.system_prompt = None;
        let tool_names = new.iter().map(|tool| tool.name.clone()).collect();
        Ok(HostToolNames { tool_names })
    }

    /// Replaces the URI schemes of the host.
    pub(super) fn set_host_uri_schemes(
        &mut self,
        params: &HostUriSchemesParams,
    ) -> Result<HostUriSchemes, String> {
        self.hosted.schemes = definitions::schemes(&params.schemes)?;
        self.system_prompt = None;
        let schemes = &self.hosted.schemes;
        let schemes = schemes.iter().map(|scheme| scheme.scheme.clone()).collect();
        Ok(HostUriSchemes { schemes })
    }
}
