//! Writes a ConverseStream request (providers.md 8). The conversation is written in `messages`, what only Claude takes in
//! `claude`; signing happens when the request is sent.

use auth::Secret;
use auth::cloud::percent;
use serde_json::{Map, Value, json};
use wire::ToolSpec;

use super::claude::{CachePoint, Reasoning, cache_point, is_claude};
use super::messages;
use super::region::Target;
use crate::body::Body;
use crate::compat::flag;
use crate::conversation::Conversation;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::request::ModelRequest;
use crate::strict_schema;

/// Writes a request. Its address is the likely one: the profile's region is read when the request is sent.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let target = Target::of(request);
    let endpoint = target.endpoint(target.likely_region());
    let point = cache_point(request);
    let conversation = Conversation::continued(request, &messages::Messages(&request.model))?;
    let body = Body {
        fields: fields(request, point),
        name: "messages",
        first: Vec::new(),
        encoded: conversation.encoded(),
        history: messages::write(conversation.history(), is_claude(&request.model), point),
    };
    Ok(HttpRequest {
        url: join_url(&endpoint, &path(&request.model.id)),
        headers: headers(request)?,
        body: body.encode()?,
    })
}

/// Path below the endpoint; ids hold colons and slashes.
pub(super) fn path(id: &str) -> String {
    format!("model/{}/converse-stream", percent(id))
}

/// The token of a request that is not signed: a key that is not the word for ambient credentials.
pub(super) fn bearer(request: &ModelRequest) -> Option<&Secret> {
    let is_word = |key: &Secret| key.expose().starts_with('<') && key.expose().ends_with('>');
    let key = request
        .api_key
        .as_ref()
        .filter(|key| !is_word(key) && !key.expose().is_empty());
    key.filter(|_| !request.environment.is_on("AWS_BEDROCK_SKIP_AUTH"))
}

/// The headers but for the signature. A caller's own may not stand in for parts of it.
fn headers(request: &ModelRequest) -> Result<reqwest::header::HeaderMap, LlmError> {
    let mut headers = Headers::json();
    headers.set("accept", "application/vnd.amazon.eventstream")?;
    let reserved = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with("x-amz-") || ["authorization", "host", "content-type"].contains(&name.as_str())
    };
    for (name, value) in request.headers.iter().filter(|(name, _)| !reserved(name)) {
        headers.set(name, value)?;
    }
    if let Some(token) = bearer(request) {
        headers.set("authorization", &format!("Bearer {}", token.expose()))?;
    }
    headers.finish(&[])
}

/// The body's fields.
fn fields(request: &ModelRequest, point: Option<CachePoint>) -> Map<String, Value> {
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    set("messages", Value::Null);
    if !request.system_prompt.trim().is_empty() {
        let mut system = vec![json!({"text": request.system_prompt})];
        system.extend(point.map(|point| json!({"cachePoint": point})));
        set("system", Value::Array(system));
    }
    let reasoning = Reasoning::of(request);
    let limit = reasoning.max_tokens.map(|limit| json!({"maxTokens": limit}));
    set("inferenceConfig", limit.unwrap_or_else(|| json!({})));
    if !request.tools.is_empty() {
        let is_accepted =
            request.conventions.strict_by_flag && flag(&request.model, "supportsStrictMode", false);
        let schemas = strict_schema::for_claude(&request.tools, is_accepted);
        let tools = request.tools.iter().zip(schemas);
        let tools: Vec<Value> = tools.map(|(spec, strict)| tool(spec, strict)).collect();
        set("toolConfig", json!({"tools": tools}));
    }
    if let Some(fields) = reasoning.fields {
        set("additionalModelRequestFields", fields);
    }
    body
}

fn tool(tool: &ToolSpec, strict: Option<Value>) -> Value {
    let mut spec = Map::new();
    spec.insert("name".into(), json!(tool.name));
    spec.insert("description".into(), json!(tool.description));
    let is_strict = strict.is_some();
    let schema = strict.unwrap_or_else(|| tool.parameters.clone());
    spec.insert("inputSchema".into(), json!({"json": schema}));
    if is_strict {
        spec.insert("strict".into(), json!(true));
    }
    json!({"toolSpec": spec})
}
