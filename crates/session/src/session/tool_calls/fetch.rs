//! The tool that fetches web pages. It is off unless the user names it (docs/guides/fetch.md).

use std::sync::Arc;

use fetch::{Allowed, ClientFuture, FetchConfig, Fetched, Fetcher, Resolve, TOOL, WebClients};
use permissions::Source;
use serde_json::{Map, Value, json};
use tools::{ToolOutcome, validate};
use wire::{ToolCall, ToolResult, ToolSpec};

use crate::factory::Agent;
use crate::strings;

use super::tool::{Access, Definition, Invocation, Place, PreparedCall, Running, Tool};

const DESCRIPTION: &str = "Fetches a web page and returns it as Markdown, at most 50 KB at once. Continue a longer page with start. \
                           A redirect to another host is reported with its URL.";

/// The HTTP clients of the agent.
struct Clients(llm::Client);

impl WebClients for Clients {
    fn direct_client(&self, resolver: Arc<dyn Resolve>) -> ClientFuture<'_> {
        Box::pin(async move { self.0.direct(resolver).await.map_err(|error| error.to_string()) })
    }
}

/// The tool.
pub(super) struct FetchTool {
    fetcher: Fetcher,
}

impl FetchTool {
    /// The tool with the agent's settings.
    pub(super) fn new(agent: &Agent) -> Self {
        // The agent itself fetches the page, outside of the sandbox, which would otherwise have no effect on it.
        let no_network = agent.options.sandbox.is_some_and(|sandbox| !sandbox.network);
        let refusal = no_network.then(|| strings::FETCH_SANDBOX.to_owned());
        let fetcher = Fetcher::new(FetchConfig {
            clients: Arc::new(Clients(agent.client.clone())),
            allowed: Allowed::new(agent.settings.tools.fetch_private_hosts.iter().cloned()),
            refusal: refusal.or_else(|| agent.options.offline.then(|| strings::FETCH_OFFLINE.to_owned())),
        });
        Self { fetcher }
    }
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "The http or https URL"},
            "start": {"type": "integer", "description": "Byte of the converted text to start at; 0 if left out"},
        },
        "required": ["url"],
    })
}

fn url_of(args: &Map<String, Value>) -> &str {
    args.get("url").and_then(Value::as_str).unwrap_or_default()
}

impl Tool for FetchTool {
    fn name(&self) -> &str {
        TOOL
    }

    fn definition(&self) -> Definition {
        Definition {
            spec: ToolSpec {
                name: TOOL.to_owned(),
                description: DESCRIPTION.to_owned(),
                parameters: parameters(),
                prefers_strict: false,
            },
            snippet: Some("Fetch a web page as Markdown".to_owned()),
            guidelines: None,
        }
    }

    fn source(&self) -> Source {
        Source::BuiltIn
    }

    fn access(&self, args: &Map<String, Value>, _: Place<'_>) -> Access {
        // Rules judge the URL that is asked for, not a spelling of it.
        fetch::parse(url_of(args)).map_or(Access::Unknown, |url| Access::Uri(url.to_string()))
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        let args = validate::validate(TOOL, &parameters(), &call.arguments)?;
        // A wrong URL fails here, before permissions ask about the call.
        fetch::parse(url_of(&args))?;
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        let fetcher = self.fetcher.clone();
        Box::pin(async move {
            // Read again, since hooks may have changed the arguments.
            let url = match fetch::parse(url_of(&call.args)) {
                Ok(url) => url,
                Err(error) => return ToolOutcome::error(error),
            };
            let start = call.args.get("start").and_then(Value::as_u64).unwrap_or(0);
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            tokio::select! {
                biased;
                () = call.cancel.cancelled() => ToolOutcome::error(strings::ABORTED),
                fetched = fetcher.fetch(url, start) => match fetched {
                    Ok(fetched) => ToolOutcome::ok(result(fetched)),
                    Err(error) => ToolOutcome::error(error),
                },
            }
        })
    }
}

fn result(fetched: Fetched) -> ToolResult {
    let mut details = json!({"url": fetched.url, "mediaType": fetched.media_type, "bytes": fetched.bytes});
    if let (Some(title), Some(details)) = (fetched.title, details.as_object_mut()) {
        details.insert("title".to_owned(), title.into());
    }
    ToolResult {
        details: Some(details),
        ..ToolResult::text(fetched.text)
    }
}
