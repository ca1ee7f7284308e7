//! Writes a request for chat completions (providers.md 4). The conversation is written in `messages`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::{AssistantMessage, Message, Model, ToolSpec};

use super::dialect::{Affinity, CacheKey, Dialect};
use super::{messages, reasoning};
use crate::body::{Body, elements};
use crate::compat;
use crate::conversation::{Conversation, Encoding};
use crate::copilot;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::ids;
use crate::openai_responses::azure;
use crate::prompt_history::Instructions;
use crate::request::{CacheRetention, ModelRequest};
use crate::strict_schema;

/// Writes a request.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let dialect = Dialect::of(&request.model);
    let base_url = match request.model.base_url.as_str() {
        "" if is_azure(request) => azure::base(request)?,
        url => url.to_owned(),
    };
    let marker = messages::marker(request, &dialect);
    let instructions = Instructions::of(request, false);
    let family = Messages {
        role: messages::instructor(&request.model, &dialect),
        instructions: &instructions,
        dialect: &dialect,
    };
    // Changed instructions depend on all messages, and a marker may belong to any of them.
    let conversation = if instructions.updates.is_empty() && marker.is_none() {
        Conversation::continued(request, &family)?
    } else {
        Conversation::whole(request, &family)
    };
    let mut first = Vec::from_iter(messages::prompt(family.role, instructions.system_prompt));
    let mut history = family.write(conversation.history());
    if let Some(marker) = &marker {
        messages::mark(&mut first, &mut history, marker);
    }
    let body = Body {
        fields: fields(request, &dialect),
        name: "messages",
        first,
        encoded: conversation.encoded(),
        history,
    };
    Ok(HttpRequest {
        url: join_url(&base_url, "chat/completions"),
        headers: headers(request, &dialect)?.finish(&request.headers)?,
        body: body.encode()?,
    })
}

/// How messages are written for a model.
struct Messages<'a> {
    /// Role of instructions.
    role: &'static str,
    instructions: &'a Instructions<'a>,
    dialect: &'a Dialect,
}

impl<'a> Messages<'a> {
    fn write(&self, history: &'a [Arc<Message>]) -> Vec<messages::Turn<'a>> {
        messages::write(self.role, self.instructions, self.dialect, history)
    }
}

impl Encoding for Messages<'_> {
    fn call_id(&self, id: &str, _from: &AssistantMessage) -> String {
        ids::completions(id)
    }

    fn encode(&self, history: &[Arc<Message>], _before: usize) -> Result<Vec<u8>, LlmError> {
        elements(&messages::write(
            self.role,
            self.instructions,
            self.dialect,
            history,
        ))
    }
}

/// Azure offers some models through chat completions; address and deployment names are those of its other models.
fn is_azure(request: &ModelRequest) -> bool {
    request.model.provider == azure::API
}

/// Key, Copilot's and session headers.
fn headers(request: &ModelRequest, dialect: &Dialect) -> Result<Headers, LlmError> {
    let mut headers = Headers::json();
    if let Some(key) = &request.api_key {
        let name = match request.model.provider.as_str() {
            "cloudflare-ai-gateway" => "cf-aig-authorization",
            _ => "authorization",
        };
        headers.set(name, &format!("Bearer {}", key.expose()))?;
    }
    copilot::headers(request, &mut headers)?;
    let names: &[&str] = match dialect.affinity {
        Affinity::Off => &[],
        Affinity::OpenAi => &["session_id", "x-client-request-id", "x-session-affinity"],
        Affinity::NoSession => &["x-client-request-id", "x-session-affinity"],
        Affinity::OpenRouter => &["x-session-id"],
    };
    for name in names {
        if let Some(session) = request.affinity() {
            headers.set(name, session)?;
        }
    }
    Ok(headers)
}

/// The body's fields, in the order of the original agent.
fn fields(request: &ModelRequest, dialect: &Dialect) -> Map<String, Value> {
    let model = &request.model;
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    if is_azure(request) {
        set("model", json!(azure::deployment(request)));
    } else {
        set("model", json!(model.id));
    }
    set("messages", Value::Null);
    set("stream", json!(true));
    if dialect.stream_usage {
        set("stream_options", json!({"include_usage": true}));
    }
    if dialect.store {
        set("store", json!(false));
    }
    if let Some(limit) = request.output_limit() {
        let name = if dialect.max_completion_tokens {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        set(name, json!(limit));
    }
    if let Some(tools) = tools(request, dialect) {
        set("tools", tools);
        if dialect.tool_stream {
            set("tool_stream", json!(true));
        }
    }
    let long = request.cache_retention == CacheRetention::Long && dialect.long_retention;
    if let Some(session) = request.affinity().filter(|_| match dialect.cache_key {
        CacheKey::Auto => long || model.base_url.contains("api.openai.com"),
        CacheKey::Always => true,
        CacheKey::Never => false,
    }) {
        set("prompt_cache_key", json!(ids::cache_key(session)));
    }
    if long {
        set("prompt_cache_retention", json!("24h"));
    }
    if let Some(priority) = compat::value(model, "vllmPriority").filter(|value| value.is_number()) {
        set("priority", priority.clone());
    }
    if let Some(routing) = compat::value(model, "openRouterRouting").filter(|value| value.is_object()) {
        set("provider", routing.clone());
    }
    if let Some(gateway) = gateway(model) {
        set("providerOptions", json!({"gateway": gateway}));
    }
    reasoning::write(request, dialect, &mut body);
    compat::add_sampling(request, &mut body);
    body
}

/// Which providers Vercel's gateway may take, in which order.
fn gateway(model: &Model) -> Option<Value> {
    let routing = compat::value(model, "vercelGatewayRouting")?.as_object()?;
    let known = ["only", "order"];
    let wanted: Map<String, Value> = known
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), routing.get(name)?.clone())))
        .collect();
    (!wanted.is_empty()).then(|| Value::Object(wanted))
}

/// Writes the tools. None if there are none and the server does not require the list, or if the model cannot call any:
/// a server may refuse the whole request for them.
fn tools(request: &ModelRequest, dialect: &Dialect) -> Option<Value> {
    if !compat::flag(&request.model, "supportsTools", true) {
        return None;
    }
    if request.tools.is_empty() {
        let history = request.messages.iter().any(|message| match &**message {
            Message::ToolResult(_) => true,
            Message::Assistant(answer) => answer.tool_calls().next().is_some(),
            _ => false,
        });
        return (dialect.tools_with_history && history).then(|| json!([]));
    }
    let marker = messages::marker(request, dialect);
    let says_strict = dialect.strict
        && (!request.conventions.strict_by_flag || compat::flag(&request.model, "supportsStrictMode", false));
    let is_accepted = says_strict && request.conventions.strict_by_flag;
    let last = request.tools.len().saturating_sub(1);
    let write = |(index, tool): (usize, &ToolSpec)| {
        let (parameters, strict) = strict_schema::parameters(tool, is_accepted);
        let mut function = Map::new();
        function.insert("name".into(), json!(tool.name));
        function.insert("description".into(), json!(tool.description));
        function.insert("parameters".into(), parameters);
        if says_strict {
            function.insert("strict".into(), json!(strict));
        }
        let mut fields = Map::new();
        fields.insert("type".into(), json!("function"));
        fields.insert("function".into(), Value::Object(function));
        if let Some(marker) = marker.as_ref().filter(|_| index == last) {
            fields.insert("cache_control".into(), marker.clone());
        }
        Value::Object(fields)
    };
    Some(request.tools.iter().enumerate().map(write).collect())
}
