//! Writes a ConverseStream request (providers.md 8). The conversation is written in `messages`, what only Claude takes in
//! `claude`; signing happens when the request is sent.

use auth::Secret;
use auth::cloud::percent;
use serde::Serialize;
use serde_json::Value;
use wire::ToolSpec;

use super::claude::{CachePoint, Reasoning, cache_point, is_claude};
use super::messages;
use super::region::Target;
use crate::body::encode;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::request::ModelRequest;

/// Writes a request. Its address is the likely one: the profile's region is read when the request is sent.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let target = Target::of(request);
    let endpoint = target.endpoint(target.likely_region());
    let history = messages::history(request);
    let body = body(request, &history);
    Ok(HttpRequest {
        url: join_url(&endpoint, &path(&request.model.id)),
        headers: headers(request)?,
        body: encode(&body, history.len())?,
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

/// The body.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    messages: Vec<messages::Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<System<'a>>,
    inference_config: Inference,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_model_request_fields: Option<Value>,
}

/// A part of the system prompt.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum System<'a> {
    Text(&'a str),
    CachePoint(CachePoint),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Inference {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Tools<'a> {
    tools: Vec<Tool<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Tool<'a> {
    #[serde(rename_all = "camelCase")]
    ToolSpec {
        name: &'a str,
        description: &'a str,
        input_schema: Schema<'a>,
    },
}

#[derive(Debug, Serialize)]
struct Schema<'a> {
    json: &'a Value,
}

fn body<'a>(request: &'a ModelRequest, history: &'a [std::sync::Arc<wire::Message>]) -> Body<'a> {
    let point = cache_point(request);
    let mut system = Vec::new();
    if !request.system_prompt.trim().is_empty() {
        system.push(System::Text(&request.system_prompt));
        system.extend(point.map(System::CachePoint));
    }
    let tools: Vec<Tool<'a>> = request.tools.iter().map(tool).collect();
    let reasoning = Reasoning::of(request);
    Body {
        messages: messages::write(history, is_claude(&request.model), point),
        system,
        inference_config: Inference {
            max_tokens: reasoning.max_tokens,
        },
        tool_config: (!tools.is_empty()).then_some(Tools { tools }),
        additional_model_request_fields: reasoning.fields,
    }
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    Tool::ToolSpec {
        name: &tool.name,
        description: &tool.description,
        input_schema: Schema {
            json: &tool.parameters,
        },
    }
}
