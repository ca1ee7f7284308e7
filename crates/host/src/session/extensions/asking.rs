//! Extensions that ask models themselves (pi-ai's `stream` and `complete`): through the agent, which has the keys and speaks
//! the providers' protocols. Such requests are nobody's turn; they run beside the session, also during a run.

use std::sync::Arc;
use std::time::Duration;

use auth::Secret;
use door::Doors;
use llm::{Budgets, CacheRetention, ModelEvent, ModelRequest, ModelStream, ToolChoice};
use serde_json::{Map, Value, json};
use tokio::task::AbortHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::{AssistantMessage, Message, Model, StreamEvent, ThinkingLevel, ToolSpec};

use crate::agent::Agent;
use crate::limits;

use super::super::Session;
use super::super::access::{Given, look_up, open_with};
use super::super::drive::now_ms;
use super::wishes::{member, read, text};

/// A request of an extension that is out. Dropping it aborts it.
#[derive(Debug)]
pub(super) struct Asked {
    task: AbortHandle,
    _cancel: DropGuard,
}

impl Session {
    /// Asks a model for an extension. The answer comes later.
    pub(super) fn ask_for_extension(&mut self, id: Option<u64>, params: &Value) -> Result<(), String> {
        let (Some(id), Some(door)) = (id, self.extensions.door.clone()) else {
            return Err("llm.stream needs somebody who takes the answer".to_owned());
        };
        let asked = &mut self.extensions.asked_models;
        asked.retain(|_, asked| !asked.task.is_finished());
        if asked.len() >= limits::EXTENSION_REQUESTS {
            let most = limits::EXTENSION_REQUESTS;
            return Err(format!("More than {most} requests of extensions are under way"));
        }
        let (request, given) = request(&self.agent, params)?;
        let cancel = CancellationToken::new();
        let (agent, span) = (Arc::clone(&self.agent), self.outbox.trace().current());
        let token = cancel.clone();
        let task = tokio::spawn(async move {
            let message = match open_with(agent, request, given, token, span).await {
                Ok(stream) => pass_on(stream, &door, id).await,
                Err(message) => *message,
            };
            let _sent = door.answer(id, &message);
        });
        let asked = Asked {
            task: task.abort_handle(),
            _cancel: cancel.drop_guard(),
        };
        self.extensions.asked_models.insert(id, asked);
        Ok(())
    }

    /// The key of a provider or a model, as for a request of our own. The answer comes later: a command may have to be run
    /// or a token renewed.
    pub(super) fn key_for_extension(&self, id: Option<u64>, params: &Value) -> Result<(), String> {
        let (Some(id), Some(door)) = (id, self.extensions.door.clone()) else {
            return Err("llm.key needs somebody who takes the answer".to_owned());
        };
        let provider = text(params, "provider").unwrap_or_default();
        let registry = &self.agent.registry;
        let known = text(params, "modelId").and_then(|id| registry.find(&provider, &id).cloned());
        let of_model = known.is_some();
        let Some(model) = known.or_else(|| registry.models_of(&provider).first().copied().cloned()) else {
            let _sent = door.answer(id, &Value::Null);
            return Ok(());
        };
        let agent = Arc::clone(&self.agent);
        tokio::spawn(async move {
            match key(&agent, &model, of_model).await {
                Ok(value) => drop(door.answer(id, &value)),
                Err(error) => door.refuse(id, &error),
            }
        });
        Ok(())
    }
}

async fn key(agent: &Arc<Agent>, model: &Model, of_model: bool) -> Result<Value, String> {
    let found = look_up(agent, model, None).await?;
    let Some(mut key) = found.key.filter(|key| !key.is_ambient()) else {
        return Ok(Value::Null);
    };
    if found.is_login {
        let fresh = agent.client.fresh_token(&model.provider, &key).await;
        key = fresh.map_err(|error| error.to_string())?;
    }
    let mut answer = json!({"apiKey": key.expose()});
    if of_model && let Value::Object(answer) = &mut answer {
        let headers: Map<String, Value> = found
            .headers
            .into_iter()
            .map(|(name, value)| (name, Value::String(value)))
            .collect();
        if !headers.is_empty() {
            answer.insert("headers".to_owned(), Value::Object(headers));
        }
        answer.insert("baseUrl".to_owned(), found.base_url.into());
    }
    Ok(answer)
}

/// Passes an answer on as it comes, in pi-ai's events; gives the whole message.
async fn pass_on(mut stream: ModelStream, door: &Doors, id: u64) -> AssistantMessage {
    let mut events = Vec::new();
    let mut last = AssistantMessage::begin("", "", "", now_ms());
    while stream.next_batch(&mut events).await {
        let mut told: Vec<Value> = Vec::new();
        let mut grown: Option<StreamEvent> = None;
        for event in events.drain(..) {
            match event {
                ModelEvent::Start(message) => told.push(json!({"type": "start", "partial": message})),
                ModelEvent::Stream(event) => match join(grown.take(), event) {
                    Joined::One(event) => grown = Some(event),
                    Joined::Both(before, event) => {
                        told.push(json!(before));
                        grown = Some(event);
                    }
                },
                ModelEvent::Usage(_) | ModelEvent::Remark(_) => {}
                ModelEvent::Done(message) | ModelEvent::Error { message, .. } => last = *message,
            }
        }
        told.extend(grown.map(|event| json!(event)));
        for value in told {
            // Waits until the extension has read: a slow one slows its own answer.
            if door.update(id, &value).await.is_err() {
                break;
            }
        }
    }
    last
}

enum Joined {
    One(StreamEvent),
    Both(StreamEvent, StreamEvent),
}

/// Pieces of one block that came together are told as one.
fn join(before: Option<StreamEvent>, event: StreamEvent) -> Joined {
    use StreamEvent::{TextDelta, ThinkingDelta, ToolcallDelta};
    let Some(mut before) = before else {
        return Joined::One(event);
    };
    match (&mut before, &event) {
        (
            TextDelta { content_index, delta },
            TextDelta {
                content_index: at,
                delta: more,
            },
        )
        | (
            ThinkingDelta { content_index, delta },
            ThinkingDelta {
                content_index: at,
                delta: more,
            },
        )
        | (
            ToolcallDelta { content_index, delta },
            ToolcallDelta {
                content_index: at,
                delta: more,
            },
        ) if content_index == at => {
            delta.push_str(more);
            Joined::One(before)
        }
        _ => Joined::Both(before, event),
    }
}

/// What an extension asks, as a request of ours.
fn request(agent: &Agent, params: &Value) -> Result<(ModelRequest, Given), String> {
    let null = Value::Null;
    let asked = params.get("model").unwrap_or(&null);
    let (context, options) = (
        params.get("context").unwrap_or(&null),
        params.get("options").unwrap_or(&null),
    );
    let model = model(agent, asked)?;
    let settings = &agent.settings;
    let mut request = ModelRequest::new(model, now_ms());
    request.system_prompt = system_prompt(context);
    request.messages = member::<Vec<Message>>(context, "messages")?
        .unwrap_or_default()
        .into_iter()
        .map(Arc::new)
        .collect();
    request.tools = member::<Vec<ToolSpec>>(context, "tools")?.unwrap_or_default();
    request.thinking = request.model.clamp_thinking(thinking(options));
    request.thinking_budgets = budgets(options).unwrap_or_else(|| agent.budgets());
    request.max_tokens = number(options, "maxTokens");
    request.temperature = options.get("temperature").and_then(Value::as_f64);
    request.tool_choice = options.get("toolChoice").and_then(tool_choice);
    request.session_id = text(options, "sessionId");
    request.cache_retention = match text(options, "cacheRetention").as_deref() {
        Some("none") => CacheRetention::None,
        Some("long") => CacheRetention::Long,
        _ => CacheRetention::Short,
    };
    request.idle_timeout =
        number(options, "timeoutMs").map_or_else(|| agent.idle_timeout(), Duration::from_millis);
    let retries = number(options, "maxRetries").and_then(|retries| u32::try_from(retries).ok());
    let retries = retries.or(settings.retry.provider.max_retries).unwrap_or(0);
    request.provider_retries = retries.min(limits::EXTENSION_RETRIES);
    request.max_retry_delay = agent.max_retry_delay();
    let mut headers = header_list(asked);
    headers.extend(header_list(options));
    for (name, value) in &headers {
        agent.registry.secrets().learn_header(name, value);
    }
    let api_key = text(options, "apiKey").filter(|key| !key.is_empty());
    let given = Given {
        api_key: api_key.map(|key| Secret::new(&key)),
        headers,
        direct: params.get("direct") == Some(&json!(true)),
    };
    Ok((request, given))
}

/// The model as the extension has it: it may have changed it. One that is only named is looked up.
fn model(agent: &Agent, asked: &Value) -> Result<Model, String> {
    let parsed = read::<Model>(asked.clone());
    let (provider, id) = (text(asked, "provider"), text(asked, "id"));
    let known = provider
        .zip(id)
        .and_then(|(provider, id)| agent.registry.find(&provider, &id));
    match (parsed, known) {
        (Ok(model), Some(known)) if model.base_url.is_empty() => Ok(Model {
            base_url: known.base_url.clone(),
            ..model
        }),
        (Ok(model), _) => Ok(model),
        (Err(_), Some(known)) => Ok(known.clone()),
        (Err(error), None) => Err(format!("This is no model: {error}")),
    }
}

fn system_prompt(context: &Value) -> String {
    match context.get("systemPrompt") {
        Some(Value::String(prompt)) => prompt.clone(),
        Some(Value::Array(parts)) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            parts.join("\n\n")
        }
        _ => String::new(),
    }
}

/// How much to reason: pi-ai's neutral word for it, or that of one of its providers.
fn thinking(options: &Value) -> ThinkingLevel {
    let named = ["reasoning", "reasoningEffort", "effort"]
        .into_iter()
        .find_map(|name| ThinkingLevel::parse(&text(options, name)?));
    let enabled = options.get("thinkingEnabled") == Some(&json!(true));
    match named {
        Some(level) => level,
        None if enabled => ThinkingLevel::Medium,
        None => ThinkingLevel::Off,
    }
}

fn budgets(options: &Value) -> Option<Budgets> {
    let given = options.get("thinkingBudgets").filter(|given| given.is_object())?;
    Some(Budgets {
        minimal: number(given, "minimal"),
        low: number(given, "low"),
        medium: number(given, "medium"),
        high: number(given, "high"),
    })
}

/// In the words of any of pi-ai's providers.
fn tool_choice(choice: &Value) -> Option<ToolChoice> {
    match choice.as_str() {
        Some("auto") => return Some(ToolChoice::Auto),
        Some("any" | "required") => return Some(ToolChoice::Any),
        Some("none") => return Some(ToolChoice::None),
        _ => {}
    }
    let name = text(choice, "name").or_else(|| text(choice.get("function")?, "name"));
    match (name, text(choice, "type").as_deref()) {
        (Some(name), _) => Some(ToolChoice::Tool(name)),
        (None, Some("any")) => Some(ToolChoice::Any),
        (None, Some("none")) => Some(ToolChoice::None),
        (None, Some("auto")) => Some(ToolChoice::Auto),
        _ => None,
    }
}

fn number(options: &Value, name: &str) -> Option<u64> {
    options.get(name).and_then(Value::as_u64)
}

fn header_list(of: &Value) -> Vec<(String, String)> {
    let headers = of.get("headers").and_then(Value::as_object);
    let texts = headers.into_iter().flatten();
    texts
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}
