//! Writes a request for the Responses API (providers.md 5), at OpenAI or at Azure, which differs in address, key header and
//! a few fields. The conversation is written in `messages`.

use serde_json::{Map, Value, json};
use wire::{ThinkingLevel, ToolSpec};

use super::messages::Inserts;
use super::{azure, messages};
use crate::body::Body;
use crate::compat::{add_sampling, flag, word};
use crate::copilot;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::ids;
use crate::limits::RESPONSES_LEAST_OUTPUT;
use crate::prompt_history::Instructions;
use crate::request::{CacheRetention, ModelRequest};
use crate::strict_schema;

/// Writes a request.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let inserts = Inserts {
        model: &request.model,
        instructions: Instructions::of(request, false),
        effort: changed_effort(request).map(str::to_owned),
    };
    let conversation = inserts.conversation(request)?;
    let body = Body {
        fields: fields(request),
        name: "input",
        first: Vec::from_iter(messages::prompt(&inserts)),
        encoded: conversation.encoded(),
        history: messages::write(&inserts, conversation.history(), conversation.known()),
    };
    Ok(HttpRequest {
        url: url(request)?,
        headers: headers(request)?.finish(&request.headers)?,
        body: body.encode()?,
    })
}

fn is_azure(request: &ModelRequest) -> bool {
    request.model.api == azure::API
}

/// Returns true for OpenAI itself with a token of a ChatGPT login in place of a key. It refuses some fields then.
pub(crate) fn is_chatgpt_login(request: &ModelRequest) -> bool {
    let model = &request.model;
    let key = request.api_key.as_ref().map(auth::Secret::expose);
    model.provider == "openai"
        && model.base_url == "https://api.openai.com/v1"
        && key.is_some_and(|key| !key.starts_with("sk-"))
}

/// Where to.
fn url(request: &ModelRequest) -> Result<String, LlmError> {
    if is_azure(request) {
        return azure::url(request);
    }
    Ok(join_url(&request.model.base_url, "responses"))
}

/// Key, Copilot's and session headers.
fn headers(request: &ModelRequest) -> Result<Headers, LlmError> {
    let mut headers = Headers::json();
    if let Some(key) = request.api_key.as_ref().map(auth::Secret::expose) {
        let bearer = format!("Bearer {key}");
        match request.model.provider.as_str() {
            _ if is_azure(request) => headers.set("api-key", key)?,
            "cloudflare-ai-gateway" => headers.set("cf-aig-authorization", &bearer)?,
            _ => headers.set("authorization", &bearer)?,
        }
    }
    copilot::headers(request, &mut headers)?;
    if let Some(session) = request.affinity() {
        let model = &request.model;
        let router = model.provider == "openrouter" || model.base_url.contains("openrouter.ai");
        // The older flag is a yes or no.
        let format = word(model, "sessionAffinityFormat").unwrap_or(match router {
            true => "openrouter",
            false if flag(model, "sendSessionIdHeader", true) => "openai",
            false => "openai-nosession",
        });
        if format == "openrouter" {
            headers.set("x-session-id", session)?;
        } else {
            if format != "openai-nosession" {
                headers.set(request.session_header(), session)?;
            }
            headers.set("x-client-request-id", session)?;
        }
    }
    Ok(headers)
}

/// The body's fields, in the order of the original agent.
fn fields(request: &ModelRequest) -> Map<String, Value> {
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
    set("input", Value::Null);
    set("stream", json!(true));
    let keyless = word(model, "promptCacheKeyMode") == Some("disabled");
    if let Some(session) = request.affinity().filter(|_| !keyless) {
        set("prompt_cache_key", json!(ids::cache_key(session)));
    }
    let azure = is_azure(request);
    let long = request.cache_retention == CacheRetention::Long;
    let long = long && flag(model, "supportsLongCacheRetention", !azure);
    let is_login = is_chatgpt_login(request);
    if is_login {
        // It takes neither parameter.
    } else if flag(model, "supportsExplicitPromptCacheMode", false) {
        // These models refuse the older parameter.
        match request.cache_retention {
            CacheRetention::None => set("prompt_cache_options", json!({"mode": "explicit"})),
            CacheRetention::Long if long => set("prompt_cache_options", json!({"ttl": "30m"})),
            CacheRetention::Short | CacheRetention::Long => {}
        }
    } else if long {
        set("prompt_cache_retention", json!("24h"));
    }
    set("store", json!(false));
    let limited = flag(model, "supportsMaxOutputTokens", true) && !is_login;
    if let Some(limit) = request.output_limit().filter(|_| limited) {
        set("max_output_tokens", json!(limit.max(RESPONSES_LEAST_OUTPUT)));
    }
    if !request.tools.is_empty() {
        let is_accepted = request.conventions.strict_by_flag && flag(model, "supportsStrictMode", azure);
        let tools = request.tools.iter();
        set("tools", tools.map(|spec| tool(spec, is_accepted)).collect());
    }
    let reasoning = reasoning(request);
    let asks = reasoning
        .as_ref()
        .is_some_and(|reasoning| reasoning.get("summary").is_some());
    if let Some(reasoning) = reasoning {
        set("reasoning", reasoning);
    }
    // Grok also reasons if it is not asked to.
    if asks || (model.reasoning && model.provider == "xai") {
        // The provider stores nothing, so it must send its reasoning in encrypted form, to be sent back.
        set("include", json!(["reasoning.encrypted_content"]));
    }
    add_sampling(request, &mut body);
    body
}

fn tool(tool: &ToolSpec, is_accepted: bool) -> Value {
    let (parameters, strict) = strict_schema::parameters(tool, is_accepted);
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
        "strict": strict,
    })
}

/// The effort to set inside the conversation, for models that take a change there; none when reasoning is off.
fn changed_effort(request: &ModelRequest) -> Option<&str> {
    let model = &request.model;
    let takes = model.reasoning
        && !is_azure(request)
        && !is_chatgpt_login(request)
        && flag(model, "supportsMidConvoEffort", false);
    let asks = request.thinking != ThinkingLevel::Off
        && model.clamp_thinking(request.thinking) != ThinkingLevel::Off;
    (takes && asks).then(|| messages::effort(model, request.thinking))
}

/// How much to reason. Off is said in the model's word for it, unless it has none or the provider takes none.
fn reasoning(request: &ModelRequest) -> Option<Value> {
    let model = &request.model;
    if !model.reasoning {
        return None;
    }
    let level = match request.thinking {
        ThinkingLevel::Off => ThinkingLevel::Off,
        level => model.clamp_thinking(level),
    };
    if level != ThinkingLevel::Off {
        let effort = match changed_effort(request) {
            // The effort at the beginning is part of the cached prompt and stays the same.
            Some(_) => "medium",
            None => messages::effort(model, level),
        };
        return Some(json!({"effort": effort, "summary": "auto"}));
    }
    let off = model.thinking_level_map.as_ref().and_then(|map| map.get("off"));
    if off.is_some_and(Value::is_null) || model.provider == "github-copilot" {
        return None;
    }
    Some(json!({"effort": off.and_then(Value::as_str).unwrap_or("none")}))
}
