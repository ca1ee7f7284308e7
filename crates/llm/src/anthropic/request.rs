//! Writes a request for the Messages API (providers.md 3). The conversation is written in `messages`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};
use wire::{Message, ThinkingLevel, ToolSpec};

use super::adaptive::thinks_adaptively;
use super::messages;
use crate::body::encode;
use crate::compat::{flag, word};
use crate::copilot;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::request::{CacheRetention, ModelRequest};

/// Least reasoning budget that the API takes.
const LEAST_BUDGET: u64 = 1024;

/// What the model's provider can do; from `compat`, else by provider.
struct Compat {
    /// Streams tool arguments when each tool asks for it.
    eager_input_streaming: bool,
    /// Can keep a prompt for an hour.
    long_retention: bool,
    /// Takes a cache marker on a tool.
    cache_tools: bool,
    /// Takes a session header.
    affinity_headers: bool,
}

impl Compat {
    fn of(request: &ModelRequest) -> Self {
        let model = &request.model;
        let fireworks = model.provider == "fireworks";
        let gateway = model.provider == "cloudflare-ai-gateway";
        Self {
            eager_input_streaming: flag(model, "supportsEagerToolInputStreaming", !fireworks),
            long_retention: flag(model, "supportsLongCacheRetention", !fireworks),
            cache_tools: flag(model, "supportsCacheControlOnTools", !fireworks),
            affinity_headers: flag(model, "sendSessionAffinityHeaders", fireworks || gateway),
        }
    }
}

/// Writes a request.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let compat = Compat::of(request);
    let history = messages::history(request);
    let cache = cache_control(request.cache_retention, &compat);
    let body = body(request, &compat, &history, cache.as_ref());
    Ok(HttpRequest {
        url: join_url(&request.model.base_url, "v1/messages"),
        headers: headers(request, &compat)?.finish(&request.headers)?,
        body: encode(&body, history.len())?,
    })
}

/// Version, betas, key and session headers (behaviour.md 5.1).
fn headers(request: &ModelRequest, compat: &Compat) -> Result<Headers, LlmError> {
    let mut headers = Headers::json();
    headers.set("anthropic-version", "2023-06-01")?;
    headers.set("anthropic-dangerous-direct-browser-access", "true")?;
    let mut betas = Vec::new();
    if let Some(key) = request.api_key.as_ref().map(crate::Secret::expose) {
        let bearer = format!("Bearer {key}");
        match request.model.provider.as_str() {
            "github-copilot" => headers.set("authorization", &bearer)?,
            "cloudflare-ai-gateway" => headers.set("cf-aig-authorization", &bearer)?,
            // Subscription tokens go as what they are; this agent does not pose as the vendor's own program.
            _ if key.contains("sk-ant-oat") => {
                headers.set("authorization", &bearer)?;
                betas.push("oauth-2025-04-20");
            }
            _ => headers.set("x-api-key", key)?,
        }
    }
    if !adaptive(request) {
        betas.push("interleaved-thinking-2025-05-14");
    }
    if !request.tools.is_empty() && !compat.eager_input_streaming {
        betas.push("fine-grained-tool-streaming-2025-05-14");
    }
    if !betas.is_empty() {
        headers.set("anthropic-beta", &betas.join(","))?;
    }
    copilot::headers(request, &mut headers)?;
    if let Some(session) = request.affinity().filter(|_| compat.affinity_headers) {
        let router = word(&request.model, "sessionAffinityFormat") == Some("openrouter");
        headers.set(
            if router {
                "x-session-id"
            } else {
                "x-session-affinity"
            },
            session,
        )?;
    }
    Ok(headers)
}

/// The body, in the field order of the original agent.
#[derive(Debug, Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<messages::Turn<'a>>,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
}

fn body<'a>(
    request: &'a ModelRequest,
    compat: &Compat,
    history: &'a [Arc<Message>],
    cache: Option<&'a Value>,
) -> Body<'a> {
    let thinking = Thinking::of(request);
    let prompted = !request.system_prompt.trim().is_empty();
    let system = || {
        json!([marked(
            json!({"type": "text", "text": request.system_prompt}),
            cache
        )])
    };
    Body {
        model: &request.model.id,
        messages: messages::write(history, cache),
        max_tokens: thinking.max_tokens,
        stream: true,
        system: prompted.then(system),
        tools: (!request.tools.is_empty()).then(|| tools(&request.tools, compat, cache)),
        thinking: thinking.thinking,
        output_config: thinking.effort.map(|effort| json!({"effort": effort})),
    }
}

/// The cache marker, unless caching is off.
fn cache_control(retention: CacheRetention, compat: &Compat) -> Option<Value> {
    match retention {
        CacheRetention::None => None,
        CacheRetention::Long if compat.long_retention => Some(json!({"type": "ephemeral", "ttl": "1h"})),
        CacheRetention::Short | CacheRetention::Long => Some(json!({"type": "ephemeral"})),
    }
}

/// A block with the cache marker.
fn marked(mut block: Value, cache: Option<&Value>) -> Value {
    if let (Some(cache), Value::Object(fields)) = (cache, &mut block) {
        fields.insert("cache_control".into(), cache.clone());
    }
    block
}

/// The tools, with their schemas reduced to what the API takes.
fn tools(tools: &[ToolSpec], compat: &Compat, cache: Option<&Value>) -> Value {
    let last = tools.len().saturating_sub(1);
    let write = |(index, tool): (usize, &ToolSpec)| {
        let part = |name: &str, other: Value| tool.parameters.get(name).cloned().unwrap_or(other);
        let mut fields = Map::new();
        fields.insert("name".into(), json!(tool.name));
        fields.insert("description".into(), json!(tool.description));
        if compat.eager_input_streaming {
            fields.insert("eager_input_streaming".into(), json!(true));
        }
        let mut schema = Map::new();
        schema.insert("type".into(), json!("object"));
        schema.insert("properties".into(), part("properties", json!({})));
        schema.insert("required".into(), part("required", json!([])));
        // Without the definitions a `$ref` inside the properties would point nowhere.
        for name in ["$defs", "definitions"] {
            if let Some(definitions) = tool.parameters.get(name) {
                schema.insert(name.into(), definitions.clone());
            }
        }
        fields.insert("input_schema".into(), Value::Object(schema));
        marked(
            Value::Object(fields),
            cache.filter(|_| compat.cache_tools && index == last),
        )
    };
    tools.iter().enumerate().map(write).collect()
}

/// Reasoning and the output limit, which depend on each other.
struct Thinking {
    max_tokens: u64,
    thinking: Option<Value>,
    effort: Option<String>,
}

impl Thinking {
    /// The rules of providers.md 2.5 and 3.
    fn of(request: &ModelRequest) -> Self {
        let model = &request.model;
        let limit = request.output_limit().unwrap_or(4096);
        let plain = |thinking| Self {
            max_tokens: limit,
            thinking,
            effort: None,
        };
        if !model.reasoning {
            return plain(None);
        }
        if request.thinking == ThinkingLevel::Off {
            return plain(Some(json!({"type": "disabled"})));
        }
        if adaptive(request) {
            let thinking = json!({"type": "adaptive", "display": "summarized"});
            return Self {
                max_tokens: limit,
                thinking: Some(thinking),
                effort: Some(effort(request)),
            };
        }
        let budget = request.thinking_budgets.tokens(request.thinking);
        let most = if model.max_tokens > 0 {
            model.max_tokens
        } else {
            u64::MAX
        };
        let max_tokens = limit.saturating_add(budget).min(most);
        let budget = if max_tokens <= budget {
            max_tokens.saturating_sub(1024)
        } else {
            budget
        };
        if budget < LEAST_BUDGET {
            // There is no room to think and to answer; the API would refuse the request.
            return plain(Some(json!({"type": "disabled"})));
        }
        let thinking = json!({"type": "enabled", "budget_tokens": budget, "display": "summarized"});
        Self {
            max_tokens,
            thinking: Some(thinking),
            effort: None,
        }
    }
}

/// Does the model decide for itself how long to think? Own models may say so.
fn adaptive(request: &ModelRequest) -> bool {
    let model = &request.model;
    flag(model, "forceAdaptiveThinking", thinks_adaptively(&model.id))
}

/// The effort word of a level: the model's own, else the nearest that every model knows.
fn effort(request: &ModelRequest) -> String {
    let word = request
        .model
        .mapped_thinking(request.thinking)
        .unwrap_or(match request.thinking {
            ThinkingLevel::Off | ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
            ThinkingLevel::Medium => "medium",
            ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "high",
        });
    word.to_owned()
}
