//! Tools of MCP servers: their definitions, and how they run.

use std::sync::Arc;

use ::mcp::{McpError, Outcome, Progress, Server};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tools::{ForeignSchema, ToolOutcome};
use wire::{ToolCall, ToolResult, ToolSpec};

use permissions::Source;

use crate::limits;

use super::super::tool_calls::{self, Definition, Invocation, PreparedCall, ProgressSender, Tool};
use super::results::{self, Room};
use super::{Running, resources};

/// A tool of a server, or one to look at resources of servers with.
struct McpTool {
    name: String,
    description: String,
    schema: ForeignSchema,
    action: Action,
}

/// What a call does.
#[derive(Clone)]
enum Action {
    /// Calls the server's tool of this name.
    Call(Server, String),
    /// Lists resources of these servers.
    List(Vec<Server>),
    /// Reads one.
    Read(Vec<Server>),
}

/// The tools that servers offer now. Calls that were prepared keep what they need.
pub(super) fn tools(servers: &[Running]) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    let mut with_resources = Vec::new();
    let names: Vec<&str> = servers
        .iter()
        .map(|running| running.server.config().name.as_str())
        .collect();
    for running in servers {
        let seen = running.server.snapshot();
        let own = &running.server.config().name;
        for tool in seen
            .lists
            .tools
            .iter()
            .filter(|tool| !is_of_another(&::mcp::full_name(own, &tool.raw), own, &names))
        {
            tools.push(Arc::new(McpTool {
                name: tool.name.clone(),
                description: tool.description.clone(),
                schema: ForeignSchema::new(tool.schema.clone()),
                action: Action::Call(running.server.clone(), tool.raw.clone()),
            }));
        }
        if seen.lists.resources {
            with_resources.push(running.server.clone());
        }
    }
    if !with_resources.is_empty() {
        for (name, description, schema) in resources::tools() {
            let servers = with_resources.clone();
            tools.push(Arc::new(McpTool {
                name: name.to_owned(),
                description: description.to_owned(),
                schema: ForeignSchema::new(schema),
                action: if name == resources::LIST {
                    Action::List(servers)
                } else {
                    Action::Read(servers)
                },
            }));
        }
    }
    tools
}

/// Returns true if a tool of another server would have the full name of this server's tool. The tool `b__c` of a server `a` would
/// take the place of `c` of a server `a__b`, and pass the rules for it.
fn is_of_another(tool: &str, own: &str, servers: &[&str]) -> bool {
    let prefix = |server: &str| format!("{}{}__", ::mcp::PREFIX, ::mcp::namespace(server));
    let own = prefix(own);
    let mut others = servers.iter().map(|server| prefix(server));
    others.any(|other| other.len() > own.len() && tool.starts_with(&other))
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn definition(&self) -> Definition {
        Definition {
            spec: ToolSpec {
                name: self.name.clone(),
                description: self.description.clone(),
                parameters: self.schema.schema().clone(),
                prefers_strict: false,
            },
            // The system prompt does not list it, and so stays the same when servers come and go.
            snippet: None,
            guidelines: None,
        }
    }

    fn source(&self) -> Source {
        match &self.action {
            Action::Call(server, raw) => Source::McpServer {
                server: server.config().name.clone(),
                tool: raw.clone(),
                full_name: ::mcp::full_name(&server.config().name, raw),
                // Consents are bound to the configuration, too: another program under this name is asked about anew.
                config: format!("{:?}", server.config()),
            },
            Action::List(servers) | Action::Read(servers) => {
                let names = servers.iter().map(|server| server.config().name.clone());
                Source::McpResources(names.collect())
            }
        }
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        let args = self.schema.prepare(&call.name, &call.arguments)?;
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> tool_calls::Running {
        let action = self.action.clone();
        Box::pin(async move {
            let (args, cancel) = (&call.args, &call.cancel);
            let done = match &action {
                Action::Call(server, raw) => execute(server, raw, args, cancel, &call.progress).await,
                Action::List(servers) => resources::list(servers, args, cancel).await,
                Action::Read(servers) => resources::read(servers, args, cancel).await,
            };
            let room = Room {
                dir: call.environment.tmp_dir,
                shrink: call.environment.shrinks_images,
            };
            outcome(done, room).await
        })
    }
}

/// Calls a tool of a server and reports its progress: the newest, at bounded intervals. A server may report as fast as it likes.
async fn execute(
    server: &Server,
    raw: &str,
    args: &Map<String, Value>,
    cancel: &CancellationToken,
    reporter: &ProgressSender,
) -> Result<Outcome, McpError> {
    let (updates, mut news) = mpsc::channel(::mcp::limits::PROGRESS);
    let mut calling = std::pin::pin!(server.call(raw, args, updates, cancel));
    // The first report is passed on at once.
    let (mut newest, mut next) = (None, Instant::now());
    loop {
        tokio::select! {
            // The result first: progress from before the end is of no use any more.
            biased;
            done = &mut calling => return done,
            () = sleep_until(next), if newest.is_some() => {
                if let Some(progress) = newest.take() {
                    reporter.send(shown(&progress)).await;
                }
                next = Instant::now() + limits::MCP_PROGRESS;
            }
            Some(progress) = news.recv() => newest = Some(progress),
        }
    }
}

/// What a call came to, for the model.
async fn outcome(done: Result<Outcome, McpError>, room: Room) -> ToolOutcome {
    let outcome = match done {
        Ok(outcome) => outcome,
        Err(error) => return ToolOutcome::error(error.to_string()),
    };
    let is_error = outcome.is_error;
    // Making images smaller and writing long texts to files blocks.
    let shown = tokio::task::spawn_blocking(move || results::shown(outcome, &room)).await;
    ToolOutcome {
        result: shown.unwrap_or_else(|error| ToolResult::error(error.to_string())),
        is_error,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_server_cannot_take_names_of_another() {
        let servers = ["a", "a-b", "c"];
        assert!(is_of_another("mcp__a__b__c", "a", &["a", "a__b"]));
        assert!(!is_of_another("mcp__a__b__c", "a__b", &["a", "a__b"]));
        assert!(!is_of_another("mcp__a__b__c", "a", &servers));
        assert!(!is_of_another("mcp__a_b__c", "a-b", &servers));
        // The name that the model calls is shortened, and does not show the other server.
        let (long, tool) = (format!("a__{}", "b".repeat(60)), format!("{}__c", "b".repeat(60)));
        let full = ::mcp::full_name("a", &tool);
        assert!(is_of_another(&full, "a", &["a", &long]));
    }
}
