//! Writes a request for the Messages API (providers.md 3). The conversation is written in `messages`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::{AssistantMessage, Message, Model, ThinkingLevel};

use super::fallbacks::{self, fallbacks};
use super::messages::{self, Inserts};
use super::threads;
use super::tools::{self, ToolStyle};
use crate::adaptive::thinks_adaptively;
use crate::billing::is_openrouter;
use crate::body::{Body, elements};
use crate::compat::{flag, value, word};
use crate::conversation::{Conversation, Encoding};
use crate::copilot;
use crate::error::LlmError;
use crate::http::{Headers, HttpRequest, join_url};
use crate::ids;
use crate::prompt_history::Instructions;
use crate::request::{AdaptiveThinking, CacheRetention, ModelRequest};

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
    /// Takes strict tool schemas.
    strict_tools: bool,
    /// Takes another effort inside the conversation.
    effort_changes: bool,
}

/// Declared from the first request to models that take tool changes: Anthropic adds hidden text to the prompt for them, and a
/// deferred tool puts that text into the cached beginning before the first change.
const PLACEHOLDER: &str = "__pinion_deferred_placeholder__";

impl Compat {
    fn of(request: &ModelRequest) -> Self {
        let model = &request.model;
        let fireworks = model.provider == "fireworks";
        let gateway = model.provider == "cloudflare-ai-gateway";
        let openrouter = is_openrouter(model);
        Self {
            eager_input_streaming: flag(model, "supportsEagerToolInputStreaming", !fireworks),
            long_retention: flag(model, "supportsLongCacheRetention", !fireworks),
            cache_tools: flag(model, "supportsCacheControlOnTools", !fireworks),
            affinity_headers: flag(
                model,
                "sendSessionAffinityHeaders",
                fireworks || gateway || openrouter,
            ),
            strict_tools: flag(model, "supportsStrictTools", false),
            effort_changes: model.reasoning && flag(model, "supportsMidConvoEffort", false),
        }
    }
}

/// Writes a request.
pub(crate) fn build(request: &ModelRequest) -> Result<HttpRequest, LlmError> {
    let compat = Compat::of(request);
    let cache = cache_control(request.cache_retention, &compat);
    let instructions = Instructions::of(request, true);
    let inserts = inserts(request, &compat, &instructions);
    let family = Messages {
        inserts: &inserts,
        empty_signatures: flag(&request.model, "allowEmptySignature", false),
    };
    // The entries between the messages depend on all messages.
    let conversation = if instructions.updates.is_empty() && inserts.effort.is_none() {
        Conversation::continued(request, &family)?
    } else {
        Conversation::whole(request, &family)
    };
    let body = Body {
        fields: fields(request, &compat, cache.as_ref(), &instructions),
        name: "messages",
        first: Vec::new(),
        encoded: conversation.encoded(),
        history: family.write(conversation.history(), cache.as_ref()),
    };
    Ok(HttpRequest {
        url: join_url(&request.model.base_url, "v1/messages"),
        headers: headers(request, &compat, instructions.tools_change)?.finish(&request.headers)?,
        body: body.encode()?,
    })
}

/// How messages are written for a model.
struct Messages<'a> {
    inserts: &'a Inserts<'a>,
    empty_signatures: bool,
}

impl<'a> Messages<'a> {
    fn write(&self, history: &'a [Arc<Message>], cache: Option<&'a Value>) -> Vec<messages::Turn<'a>> {
        messages::write(history, cache, self.inserts, self.empty_signatures)
    }
}

impl Encoding for Messages<'_> {
    fn call_id(&self, id: &str, _from: &AssistantMessage) -> String {
        ids::anthropic(id)
    }

    fn encode(&self, history: &[Arc<Message>], _before: usize) -> Result<Vec<u8>, LlmError> {
        elements(&messages::write(
            history,
            None,
            self.inserts,
            self.empty_signatures,
        ))
    }
}

/// Version, betas, key and session headers (behaviour.md 5.1).
fn headers(request: &ModelRequest, compat: &Compat, tools_change: bool) -> Result<Headers, LlmError> {
    let mut headers = Headers::json();
    headers.set("anthropic-version", "2023-06-01")?;
    headers.set("anthropic-dangerous-direct-browser-access", "true")?;
    let mut betas = Vec::new();
    if let Some(key) = request.api_key.as_ref().map(auth::Secret::expose) {
        let bearer = format!("Bearer {key}");
        match request.model.provider.as_str() {
            "github-copilot" => headers.set("authorization", &bearer)?,
            "cloudflare-ai-gateway" => headers.set("cf-aig-authorization", &bearer)?,
            // The headers of the caller hold the token.
            _ if key == auth::Secret::AMBIENT => {}
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
    if !fallbacks(&request.model).is_empty() {
        betas.push(fallbacks::BETA);
    }
    if compat.effort_changes {
        betas.push("mid-conversation-output-config-2026-07-01");
        betas.push("thinking-binding-controls-2026-08-01");
    }
    if tools_change {
        betas.push("inline-tools-2026-09-15");
    }
    if threads::thread(request).is_some() {
        betas.push(threads::BETA);
    }
    if !betas.is_empty() {
        headers.set("anthropic-beta", &betas.join(","))?;
    }
    copilot::headers(request, &mut headers)?;
    if let Some(session) = request.affinity().filter(|_| compat.affinity_headers) {
        let router = match word(&request.model, "sessionAffinityFormat") {
            Some(format) => format == "openrouter",
            None => is_openrouter(&request.model),
        };
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

/// The body's fields, in the order of the original agent.
fn fields(
    request: &ModelRequest,
    compat: &Compat,
    cache: Option<&Value>,
    instructions: &Instructions<'_>,
) -> Map<String, Value> {
    let thinking = Thinking::of(request, compat);
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    set("model", json!(request.model.id));
    set("messages", Value::Null);
    set("max_tokens", json!(thinking.max_tokens));
    set("stream", json!(true));
    let prompt = instructions.system_prompt;
    if !prompt.trim().is_empty() {
        let prompt = marked(json!({"type": "text", "text": prompt}), cache);
        set("system", Value::Array(vec![prompt]));
    }
    if !instructions.tools.is_empty() {
        set("tools", tools(instructions, compat, cache));
    }
    if let Some(thinking) = thinking.thinking {
        set("thinking", thinking);
    }
    if let Some(effort) = thinking.effort {
        set("output_config", json!({"effort": effort}));
    }
    let fallbacks = fallbacks(&request.model).into_iter();
    let fallbacks: Vec<Value> = fallbacks
        .map(|fallback| json!({"model": fallback.model}))
        .collect();
    if !fallbacks.is_empty() {
        set("fallbacks", json!(fallbacks));
    }
    body
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

impl Compat {
    fn tool_style(&self) -> ToolStyle {
        ToolStyle {
            eager_input_streaming: self.eager_input_streaming,
            strict: self.strict_tools,
        }
    }
}

/// Writes the tools; the last one marks the end of the cached prefix.
fn tools(instructions: &Instructions<'_>, compat: &Compat, cache: Option<&Value>) -> Value {
    let mut tools = tools::write(instructions.tools, compat.tool_style());
    if let Some(last) = tools.last_mut() {
        *last = marked(last.take(), cache.filter(|_| compat.cache_tools));
    }
    if instructions.tools_change {
        let schema = json!({"type": "object", "properties": {}, "required": []});
        tools.push(
            json!({"name": PLACEHOLDER, "description": "Reserved. Never available; never call it.",
            "input_schema": schema, "defer_loading": true}),
        );
    }
    Value::Array(tools)
}

/// Collects the entries between the messages: changed instructions, and the effort of each answer.
fn inserts<'a>(
    request: &'a ModelRequest,
    compat: &Compat,
    instructions: &'a Instructions<'a>,
) -> Inserts<'a> {
    let tool_blocks = |update: &crate::prompt_history::Update| {
        let removed = update.removed.iter();
        let removed = removed.map(|name| json!({"type": "tool_reference", "name": name}));
        let added = tools::write(&update.added, compat.tool_style()).into_iter();
        let added = added.map(|definition| json!({"type": "tool_definition", "definition": definition}));
        (removed.collect(), added.collect())
    };
    let effort_changes = compat.effort_changes && !is_disabled(request);
    Inserts {
        instructions,
        tools: instructions.updates.iter().map(tool_blocks).collect(),
        model: &request.model,
        effort: effort_changes.then(|| effort(&request.model, request.thinking)),
    }
}

/// Thinking is off, and the model has an off.
fn is_disabled(request: &ModelRequest) -> bool {
    let map = request.model.thinking_level_map.as_ref();
    let has_off = !map.and_then(|map| map.get("off")).is_some_and(Value::is_null);
    request.thinking == ThinkingLevel::Off && has_off
}

/// Reasoning and the output limit, which depend on each other.
struct Thinking {
    max_tokens: u64,
    thinking: Option<Value>,
    effort: Option<String>,
}

impl Thinking {
    /// The rules of providers.md 2.5 and 3.
    fn of(request: &ModelRequest, compat: &Compat) -> Self {
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
        if is_disabled(request) {
            return plain(Some(json!({"type": "disabled"})));
        }
        if compat.effort_changes {
            // The effort stands before each answer. The one at the beginning is part of the cached prompt and stays the same;
            // it is the lowest, because organisations can forbid the higher ones.
            let thinking = json!({"type": "adaptive", "display": "summarized",
                "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
            return Self {
                max_tokens: limit,
                thinking: Some(thinking),
                effort: Some("low".to_owned()),
            };
        }
        if request.thinking == ThinkingLevel::Off {
            // The model cannot be told not to think.
            return plain(None);
        }
        if adaptive(request) {
            let thinking = json!({"type": "adaptive", "display": "summarized"});
            return Self {
                max_tokens: limit,
                thinking: Some(thinking),
                effort: Some(effort(model, request.thinking)),
            };
        }
        let budget = request.thinking_budgets.tokens(request.thinking);
        let max_tokens = limit.saturating_add(budget).min(request.most_output());
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

/// Returns true for a model that decides for itself how long to think.
fn adaptive(request: &ModelRequest) -> bool {
    let said = value(&request.model, "forceAdaptiveThinking").and_then(Value::as_bool);
    said.unwrap_or_else(|| match request.conventions.adaptive_thinking {
        // It may be a model of the list under a provider of the user's own.
        AdaptiveThinking::ByFlagOrId => thinks_adaptively(&request.model.id),
        AdaptiveThinking::ByFlag => false,
    })
}

/// The effort word of a level: the model's own, else the nearest that every model knows.
pub(super) fn effort(model: &Model, level: ThinkingLevel) -> String {
    let word = model.mapped_thinking(level).unwrap_or(match level {
        ThinkingLevel::Minimal | ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::Off | ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => "high",
    });
    word.to_owned()
}
