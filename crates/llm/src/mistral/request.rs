//! Writes a request for Mistral (providers.md 7). The conversation is written in `messages`.

use serde_json::{Map, Value, json};
use wire::{ThinkingLevel, ToolSpec};

use super::messages;
use crate::body::Body;
use crate::conversation::Conversation;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::request::ModelRequest;
use crate::strict_schema;

/// Models that take a level of reasoning even if their entry maps none.
const TAKE_EFFORT: [&str; 3] = ["mistral-small-2603", "mistral-small-latest", "mistral-medium-3.5"];

/// Writes a request.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let mut headers = Headers::json();
    if let Some(key) = &request.api_key {
        headers.set("authorization", &format!("Bearer {}", key.expose()))?;
    }
    if let Some(session) = request.affinity() {
        headers.set("x-affinity", session)?;
    }
    let conversation = Conversation::continued(request, &messages::Messages)?;
    let body = Body {
        fields: fields(request),
        name: "messages",
        first: Vec::from_iter(messages::prompt(&request.system_prompt)),
        encoded: conversation.encoded(),
        history: messages::write(conversation.history()),
    };
    Ok(HttpRequest {
        url: join_url(&request.model.base_url, "v1/chat/completions"),
        headers: headers.finish(&request.headers)?,
        body: body.encode()?,
    })
}

fn fields(request: &ModelRequest) -> Map<String, Value> {
    let model = &request.model;
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    set("model", json!(model.id));
    set("stream", json!(true));
    set("messages", Value::Null);
    if !request.tools.is_empty() {
        let is_accepted = request.conventions.strict_by_flag;
        let tools = request.tools.iter();
        set("tools", tools.map(|spec| tool(spec, is_accepted)).collect());
    }
    if let Some(limit) = request.output_limit() {
        set("max_tokens", json!(limit));
    }
    if let Some((name, word)) = reasoning(request) {
        set(name, json!(word));
    }
    if let Some(session) = request.affinity() {
        set("prompt_cache_key", json!(session));
    }
    body
}

/// The field that asks for reasoning, and its word. A model that maps levels takes them, and off too if it maps that; the others take on or
/// off.
fn reasoning(request: &ModelRequest) -> Option<(&'static str, &str)> {
    const EFFORT: &str = "reasoning_effort";
    let model = &request.model;
    if !model.reasoning {
        return None;
    }
    let takes_effort = model.thinking_level_map.is_some() || TAKE_EFFORT.contains(&model.id.as_str());
    let level = match request.thinking {
        ThinkingLevel::Off => ThinkingLevel::Off,
        level => model.clamp_thinking(level),
    };
    match level {
        ThinkingLevel::Off => Some((EFFORT, model.mapped_thinking(level)?)),
        _ if takes_effort => Some((EFFORT, model.mapped_thinking(level).unwrap_or("high"))),
        _ => Some(("prompt_mode", "reasoning")),
    }
}

fn tool(tool: &ToolSpec, is_accepted: bool) -> Value {
    let (parameters, strict) = strict_schema::parameters(tool, is_accepted);
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters,
            "strict": strict,
        },
    })
}
