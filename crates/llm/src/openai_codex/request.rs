//! Writes a request for ChatGPT's own endpoint (providers.md 5). The conversation is written in `openai_responses`.

use auth::login::{ORIGINATOR, account_id};
use serde_json::{Map, Value, json};
use wire::{ThinkingLevel, ToolSpec};

use crate::body::Body;
use crate::compat::flag;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::ids;
use crate::openai_responses::messages::{self, Inserts};
use crate::prompt_history::Instructions;
use crate::request::ModelRequest;
use crate::strict_schema;

/// Names the account that a token belongs to.
const ACCOUNT_HEADER: &str = "chatgpt-account-id";

/// Said where there is no system prompt: the endpoint insists on instructions.
const NO_INSTRUCTIONS: &str = "You are a helpful assistant.";

/// Writes a request.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let inserts = Inserts {
        model: &request.model,
        instructions: Instructions::of(request, false),
        effort: None,
    };
    let conversation = inserts.conversation(request)?;
    let body = Body {
        fields: fields(request, inserts.instructions.system_prompt),
        name: "input",
        first: Vec::new(),
        encoded: conversation.encoded(),
        history: messages::write(&inserts, conversation.history(), conversation.known()),
    };
    Ok(HttpRequest {
        url: url(&request.model.base_url),
        headers: headers(request)?.finish(&request.headers)?,
        body: body.encode()?,
    })
}

/// Where to; a base URL may already name part of the way.
fn url(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with("/codex/responses") {
        base.to_owned()
    } else if base.ends_with("/codex") {
        join_url(base, "responses")
    } else {
        join_url(base, "codex/responses")
    }
}

fn headers(request: &ModelRequest) -> Result<Headers, LlmError> {
    let mut headers = Headers::json();
    headers.set("accept", "text/event-stream")?;
    headers.set("openai-beta", "responses=experimental")?;
    headers.set("originator", ORIGINATOR)?;
    if let Some(key) = request.api_key.as_ref().map(auth::Secret::expose) {
        headers.set("authorization", &format!("Bearer {key}"))?;
        let named = |(name, _): &(String, String)| name.eq_ignore_ascii_case(ACCOUNT_HEADER);
        match account_id(key) {
            Some(account) => headers.set(ACCOUNT_HEADER, &account)?,
            None if request.headers.iter().any(named) => {}
            None => return Err(LlmError::Account(request.model.provider.clone())),
        }
    }
    if let Some(session) = request.affinity() {
        headers.set(request.session_header(), session)?;
        headers.set("x-client-request-id", session)?;
    }
    Ok(headers)
}

/// The body's fields. No output limit: the endpoint takes none.
fn fields(request: &ModelRequest, system_prompt: &str) -> Map<String, Value> {
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    let instructions = match system_prompt.trim() {
        "" => NO_INSTRUCTIONS,
        _ => system_prompt,
    };
    set("model", json!(request.model.id));
    set("store", json!(false));
    set("stream", json!(true));
    set("instructions", json!(instructions));
    set("input", Value::Null);
    set("text", json!({"verbosity": "low"}));
    // The provider stores nothing, so it must send its reasoning in encrypted form, to be sent back.
    set("include", json!(["reasoning.encrypted_content"]));
    if let Some(session) = request.affinity() {
        set("prompt_cache_key", json!(ids::cache_key(session)));
    }
    set("tool_choice", json!("auto"));
    set("parallel_tool_calls", json!(true));
    if !request.tools.is_empty() {
        let is_accepted =
            request.conventions.strict_by_flag && flag(&request.model, "supportsStrictMode", true);
        let tools = request.tools.iter();
        set("tools", tools.map(|spec| tool(spec, is_accepted)).collect());
    }
    if let Some(reasoning) = reasoning(request) {
        set("reasoning", reasoning);
    }
    body
}

/// Null leaves the strictness to the server.
fn tool(tool: &ToolSpec, is_accepted: bool) -> Value {
    let (parameters, strict) = strict_schema::parameters(tool, is_accepted);
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
        "strict": strict.then_some(true),
    })
}

/// How much to reason. Off is said in the model's word for it, or the endpoint would choose a level; a model without such a word cannot
/// leave it out.
fn reasoning(request: &ModelRequest) -> Option<Value> {
    let model = &request.model;
    if !model.reasoning {
        return None;
    }
    if request.thinking != ThinkingLevel::Off && model.clamp_thinking(request.thinking) != ThinkingLevel::Off
    {
        let effort = messages::effort(model, request.thinking);
        return Some(json!({"effort": effort, "summary": "auto"}));
    }
    let off = model.thinking_level_map.as_ref().and_then(|map| map.get("off"));
    match off {
        Some(Value::Null) => None,
        off => Some(json!({"effort": off.and_then(Value::as_str).unwrap_or("none")})),
    }
}
