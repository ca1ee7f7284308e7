//! Writes a request for the Gemini API (providers.md 6), at Google or at Google Cloud. The conversation is written in `messages`.

use serde_json::{Map, Value, json};
use wire::ToolSpec;

use super::{generation, messages, schemas, vertex};
use crate::body::Body;
use crate::conversation::Conversation;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::ids;
use crate::request::ModelRequest;
use crate::strict_schema;

/// Writes a request.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let conversation = Conversation::continued(request, &messages::Contents(&request.model))?;
    let body = Body {
        fields: fields(request),
        name: "contents",
        first: Vec::new(),
        encoded: conversation.encoded(),
        history: messages::write(&request.model, conversation.history()),
    };
    let is_vertex = request.model.api == vertex::API;
    let url = if is_vertex {
        vertex::url(request)?
    } else {
        let path = format!("models/{}:streamGenerateContent?alt=sse", request.model.id);
        join_url(&request.model.base_url, &path)
    };
    let key = if is_vertex {
        vertex::key(request)
    } else {
        request.api_key.as_ref()
    };
    let mut headers = Headers::json();
    headers.set("accept", "*/*")?;
    if let Some(key) = key {
        headers.set("x-goog-api-key", key.expose())?;
    }
    Ok(HttpRequest {
        url,
        headers: headers.finish(&request.headers)?,
        body: body.encode()?,
    })
}

/// The body's fields. There are no cache parameters: the provider caches by itself.
fn fields(request: &ModelRequest) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("contents".into(), Value::Null);
    if !request.system_prompt.trim().is_empty() {
        let parts = json!([{"text": request.system_prompt}]);
        body.insert(
            "systemInstruction".into(),
            json!({"parts": parts, "role": "user"}),
        );
    }
    if !request.tools.is_empty() {
        // Gemini 3 and later hold themselves to schemas, if asked to.
        let major = ids::gemini_major(&request.model.id);
        let is_accepted = request.conventions.strict_by_flag && major.is_some_and(|major| major >= 3);
        let tools = request.tools.iter();
        let (tools, strict): (Vec<Value>, Vec<bool>) = tools.map(|spec| tool(spec, is_accepted)).unzip();
        body.insert("tools".into(), json!([{"functionDeclarations": tools}]));
        if strict.contains(&true) {
            let config = json!({"functionCallingConfig": {"mode": "VALIDATED"}});
            body.insert("toolConfig".into(), config);
        }
    }
    let mut generation = Map::new();
    if let Some(limit) = request.output_limit() {
        generation.insert("maxOutputTokens".into(), json!(limit));
    }
    if let Some(config) = generation::thinking_config(request) {
        generation.insert("thinkingConfig".into(), config);
    }
    if !generation.is_empty() {
        body.insert("generationConfig".into(), Value::Object(generation));
    }
    body
}

/// Writes a tool; true if its schema is strict.
fn tool(tool: &ToolSpec, is_accepted: bool) -> (Value, bool) {
    let (parameters, strict) = strict_schema::parameters(tool, is_accepted);
    let tool = json!({
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": schemas::without_const(&parameters),
    });
    (tool, strict)
}
