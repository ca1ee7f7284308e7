//! Extensions that answer for their models themselves (pi's `streamSimple`), and that know how to renew their logins: what they
//! are asked, in pi-ai's words. What they say back is understood by `llm`.

use std::task::{Context, Poll};

use extensions::{ExtensionPool, ProcessError, Updates};
use llm::{CacheRetention, Lent, LentEvents, ModelRequest, ToolChoice};
use serde_json::{Map, Value, json};
use wire::ThinkingLevel;

/// The extensions of one session.
#[derive(Debug, Clone)]
pub struct ExtensionProvider {
    process: ExtensionPool,
    /// What their processes call the session.
    session: String,
}

impl ExtensionProvider {
    pub(crate) fn new(process: ExtensionPool, session: String) -> Self {
        Self { process, session }
    }

    /// Is it the same session? Whether its processes are has nothing to do with it.
    pub(crate) fn is(&self, session: &str) -> bool {
        self.session == session
    }

    /// Asks the extension of a provider for something.
    ///
    /// # Errors
    /// What went wrong, for people.
    pub(crate) async fn call(&self, method: &str, params: &Value) -> Result<Value, String> {
        let asking = self.process.call(&self.session, method, params, None);
        let answer = asking.map_err(|error| explained(&error))?.await;
        answer
            .map(|answer| answer.value)
            .map_err(|error| explained(&error))
    }

    /// Has the extension of `provider` answer a request.
    ///
    /// # Errors
    /// When the request cannot be written as JSON.
    pub(crate) fn lend(&self, provider: &str, request: &ModelRequest) -> Result<Lent, String> {
        let params = json!({"provider": provider, "request": {
            "model": request.model,
            "context": {
                "systemPrompt": request.system_prompt,
                "messages": request.messages,
                "tools": request.tools,
            },
            "options": options(request),
        }});
        let asked = self.process.stream(&self.session, "provider.stream", &params);
        let (asking, updates) = asked.map_err(|error| explained(&error))?;
        Ok(Lent {
            events: Box::new(Events(updates)),
            end: Box::pin(async move {
                let answer = asking.await.map_err(|error| explained(&error))?;
                for failure in answer.errors {
                    tracing::warn!("extension {}: {}", failure.path, failure.error);
                }
                Ok(answer.value)
            }),
        })
    }
}

struct Events(Updates);

impl LentEvents for Events {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Value>> {
        self.0.poll_next(context)
    }
}

/// The end of the process counts as a lost connection when a retry is decided.
fn explained(error: &ProcessError) -> String {
    match error {
        ProcessError::Gone(reason) => format!("Connection lost: the extension process ended: {reason}"),
        other => other.to_string(),
    }
}

/// What pi-ai calls the options of a stream.
fn options(request: &ModelRequest) -> Map<String, Value> {
    let mut options = Map::new();
    let mut set = |name: &str, value: Value| options.insert(name.to_owned(), value);
    // Ambient credentials are no key that an extension could send.
    if let Some(key) = request.api_key.as_ref().filter(|key| !key.is_ambient()) {
        set("apiKey", json!(key.expose()));
    }
    if !request.headers.is_empty() {
        let headers: Map<String, Value> = request
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        set("headers", Value::Object(headers));
    }
    if let Some(tokens) = request.output.asked {
        set("maxTokens", json!(tokens));
    }
    if let Some(temperature) = request.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(choice) = &request.tool_choice {
        set(
            "toolChoice",
            match choice {
                ToolChoice::Auto => json!("auto"),
                ToolChoice::Any => json!("any"),
                ToolChoice::None => json!("none"),
                ToolChoice::Tool(name) => json!({"type": "tool", "name": name}),
            },
        );
    }
    if request.thinking != ThinkingLevel::Off {
        set("reasoning", json!(request.thinking.as_str()));
    }
    let levels = [
        ThinkingLevel::Minimal,
        ThinkingLevel::Low,
        ThinkingLevel::Medium,
        ThinkingLevel::High,
    ];
    let budgets: Map<String, Value> = levels
        .into_iter()
        .map(|level| {
            (
                level.as_str().to_owned(),
                json!(request.thinking_budgets.tokens(level)),
            )
        })
        .collect();
    set("thinkingBudgets", Value::Object(budgets));
    if let Some(session) = &request.session_id {
        set("sessionId", json!(session));
    }
    set(
        "cacheRetention",
        json!(match request.cache_retention {
            CacheRetention::None => "none",
            CacheRetention::Short => "short",
            CacheRetention::Long => "long",
        }),
    );
    set(
        "timeoutMs",
        json!(u64::try_from(request.timeouts.response.as_millis()).unwrap_or(u64::MAX)),
    );
    set("maxRetries", json!(request.provider_retries));
    options
}
