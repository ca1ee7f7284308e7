//! Tools of servers: what the model is told of them, and how they are run.

use std::collections::HashMap;
use std::sync::Arc;

use ::mcp::{McpError, Outcome, Progress, Server};
use permissions::{Proposal, Source};
use pinion_core::Prepared;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tools::ForeignSchema;
use wire::{ToolCall, ToolResult, ToolSpec};

use super::super::Session;
use super::super::calls::Reporter;
use super::results::{self, Room};
use super::{Running, resources};

/// A tool of a server, or one to look at their resources with.
pub(super) struct Tool {
    name: String,
    description: String,
    schema: ForeignSchema,
    what: What,
}

/// What a call does.
#[derive(Clone)]
enum What {
    /// Calls the server's tool of this name.
    Call(Server, String),
    /// Lists resources of these servers.
    List(Vec<Server>),
    /// Reads one.
    Read(Vec<Server>),
}

/// The tools, and the calls of the current batch.
#[derive(Default)]
pub(in crate::session) struct Offered {
    tools: Vec<Arc<Tool>>,
    prepared: HashMap<usize, Call>,
}

/// A call that waits for its turn to run.
struct Call {
    tool: Arc<Tool>,
    args: Map<String, Value>,
}

impl Offered {
    pub(super) fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Takes what servers offer now. Calls that were prepared keep what they need.
    pub(super) fn take(&mut self, servers: &[Running]) {
        let mut tools: Vec<Arc<Tool>> = Vec::new();
        let mut with_resources = Vec::new();
        for running in servers {
            let seen = running.server.snapshot();
            for tool in &seen.lists.tools {
                tools.push(Arc::new(Tool {
                    name: tool.name.clone(),
                    description: tool.description.clone(),
                    schema: ForeignSchema::new(tool.schema.clone()),
                    what: What::Call(running.server.clone(), tool.raw.clone()),
                }));
            }
            if seen.lists.resources {
                with_resources.push(running.server.clone());
            }
        }
        if !with_resources.is_empty() {
            for (name, description, schema) in resources::tools() {
                let servers = with_resources.clone();
                tools.push(Arc::new(Tool {
                    name: name.to_owned(),
                    description: description.to_owned(),
                    schema: ForeignSchema::new(schema),
                    what: if name == resources::LIST {
                        What::List(servers)
                    } else {
                        What::Read(servers)
                    },
                }));
            }
        }
        self.tools = tools;
    }

    /// Forgets what was prepared for a batch.
    pub(in crate::session) fn reset(&mut self) {
        self.prepared.clear();
    }

    /// Checks a call and keeps it, if it is one of theirs.
    pub(in crate::session) fn prepare(&mut self, slot: usize, call: &ToolCall) -> Option<Prepared> {
        let tool = self.tools.iter().find(|tool| tool.name == call.name)?;
        Some(match tool.schema.prepare(&call.name, &call.arguments) {
            Ok(args) => {
                let tool = Arc::clone(tool);
                self.prepared.insert(slot, Call { tool, args });
                Prepared::Run
            }
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        })
    }

    /// The name and the arguments of a prepared call.
    pub(in crate::session) fn at(&self, slot: usize) -> Option<(&str, &Map<String, Value>)> {
        let call = self.prepared.get(&slot)?;
        Some((&call.tool.name, &call.args))
    }

    /// A prepared call as it is to be permitted.
    pub(in crate::session) fn proposal_at(&self, slot: usize) -> Option<Proposal<'_>> {
        let Call { tool, args } = self.prepared.get(&slot)?;
        let names = |servers: &[Server]| {
            let names = servers.iter().map(|server| server.config().name.clone());
            Source::McpResources(names.collect())
        };
        Some(Proposal {
            tool: &tool.name,
            source: match &tool.what {
                What::Call(server, raw) => Source::McpServer {
                    server: server.config().name.clone(),
                    tool: raw.clone(),
                    config: format!("{:?}", server.config()),
                },
                What::List(servers) | What::Read(servers) => names(servers),
            },
            description: &tool.description,
            schema: Some(tool.schema.schema()),
            args,
        })
    }

    /// Other arguments for a prepared call.
    pub(in crate::session) fn change_args(&mut self, slot: usize, args: &Map<String, Value>) {
        if let Some(call) = self.prepared.get_mut(&slot) {
            call.args.clone_from(args);
        }
    }

    /// All of them, as extensions see them.
    pub(in crate::session) fn described(&self) -> impl Iterator<Item = Value> {
        self.tools.iter().map(|tool| {
            let server = match &tool.what {
                What::Call(server, _) => server.config().name.as_str(),
                What::List(_) | What::Read(_) => "*",
            };
            json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema.schema(),
                "source": {"path": format!("<mcp:{server}>"), "source": "mcp", "scope": "temporary", "origin": "top-level"},
            })
        })
    }

    /// What the model is told of those among `active`.
    pub(in crate::session) fn specs(&self, active: &[String]) -> impl Iterator<Item = ToolSpec> {
        let tools = self.tools.iter().filter(|tool| active.contains(&tool.name));
        tools.map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.schema.schema().clone(),
            prefers_strict: false,
        })
    }
}

impl Session {
    /// Runs a prepared call of theirs beside the session. False: it is none.
    pub(in crate::session) fn run_mcp(&mut self, slot: usize) -> bool {
        let Some(call) = self.mcp.offered.prepared.remove(&slot) else {
            return false;
        };
        let reporter = self.calls.reporter(slot);
        let room = Room {
            dir: self.agent.mcp.tmp_dir.clone(),
            shrink: self.agent.settings.images.auto_resize,
        };
        tokio::spawn(async move {
            match &call.tool.what {
                What::Call(server, raw) => execute(reporter, server, raw, &call.args, room).await,
                What::List(servers) => {
                    let done = resources::list(servers, &call.args, &reporter.cancel).await;
                    finish(reporter, done, room).await;
                }
                What::Read(servers) => {
                    let done = resources::read(servers, &call.args, &reporter.cancel).await;
                    finish(reporter, done, room).await;
                }
            }
        });
        true
    }
}

/// Calls a tool and reports each step.
async fn execute(reporter: Reporter, server: &Server, raw: &str, args: &Map<String, Value>, room: Room) {
    let (updates, mut news) = mpsc::channel(::mcp::limits::PROGRESS);
    let cancel = reporter.cancel.clone();
    let done = {
        let mut calling = std::pin::pin!(server.call(raw, args, updates, &cancel));
        loop {
            tokio::select! {
                biased;
                done = &mut calling => break done,
                Some(progress) = news.recv() => reporter.progress(shown(&progress)).await,
            }
        }
    };
    finish(reporter, done, room).await;
}

/// Reports the end of a call.
async fn finish(reporter: Reporter, done: Result<Outcome, McpError>, room: Room) {
    let (result, is_error) = match done {
        // Pictures are shrunk and long texts written beside the others' work.
        Ok(outcome) => {
            let is_error = outcome.is_error;
            let shown = tokio::task::spawn_blocking(move || results::shown(outcome, &room)).await;
            let shown = shown.unwrap_or_else(|error| ToolResult::error(error.to_string()));
            (shown, is_error)
        }
        Err(error) => (ToolResult::error(error.to_string()), true),
    };
    reporter.done(result, is_error).await;
}

/// How far a call came, as a partial result.
fn shown(progress: &Progress) -> ToolResult {
    let amount = match progress.total {
        Some(total) => format!("{}/{total}", progress.done),
        None => progress.done.to_string(),
    };
    let text = match &progress.message {
        Some(message) => format!("{message} ({amount})"),
        None => amount,
    };
    let mut details = Map::new();
    details.insert("progress".to_owned(), progress.done.into());
    if let Some(total) = progress.total {
        details.insert("total".to_owned(), total.into());
    }
    ToolResult {
        details: Some(Value::Object(details)),
        ..ToolResult::text(text)
    }
}
