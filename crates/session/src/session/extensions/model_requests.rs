//! Requests of extensions to models (pi-ai's `stream` and `complete`): through the agent, which has the keys and implements the
//! providers' protocols. They belong to no turn and run in tasks of their own, also during a run.

use std::sync::Arc;
use std::time::Duration;

use agent::{RunBudget, Spent};
use auth::Secret;
use extensions::ExtensionPool;
use llm::{Budgets, CacheRetention, ModelEvent, ModelRequest, ModelStream, ToolChoice};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use wire::{AssistantMessage, Message, Model, StreamEvent, ThinkingLevel, ToolSpec};

use crate::factory::Agent;
use crate::limits;

use super::super::access::{Given, look_up, open_with};
use super::super::clock::now_ms;
use super::super::run_limits::check_limits;
use super::json::put;
use super::request::{member, read, text};
use super::request_tasks::RequestTasks;

/// Asks a model for an extension. The answer follows when the model has answered.
///
/// # Errors
/// A message for the extension if the request is invalid, too many are running, or a limit of the session prevents it.
pub(crate) fn stream_model(
    tasks: &mut RequestTasks,
    budget: &RunBudget,
    agent: &Arc<Agent>,
    pool: &ExtensionPool,
    (id, params): (u64, &Value),
    span: tracing::Span,
) -> Result<(), String> {
    tasks.check_models()?;
    let (request, given) = request(agent, params)?;
    // The extension names the model, whose price may be unknown (GUARANTEES.md, 84).
    check_limits(budget, &request.model)?;
    let cancel = CancellationToken::new();
    let (agent, pool, token) = (Arc::clone(agent), pool.clone(), cancel.clone());
    let spending = tasks.spending.clone();
    let task = tokio::spawn(async move {
        let message = match open_with(agent, request, given, token, span).await {
            Ok(stream) => pass_on(stream, &pool, id).await,
            Err(message) => *message,
        };
        // Also after a failure or an abort: the provider counts the tokens all the same.
        spending.add(Spent::of(&message.usage));
        let mut shown = json!(message);
        // The member of oh-my-pi's messages. An extension that passes the answer on as its own gives the status back with it.
        if let Some(status) = message.http_status {
            put(&mut shown, "errorStatus", status.into());
        }
        let _sent = pool.answer(id, &shown);
    });
    tasks.keep_model(id, task.abort_handle(), cancel.drop_guard());
    Ok(())
}

/// Answers with the key of a provider or a model, as requests of the session use it. A command may have to be run or a token
/// renewed, so the answer follows later.
pub(crate) fn answer_key(agent: &Arc<Agent>, pool: &ExtensionPool, id: u64, params: &Value) {
    let provider = text(params, "provider").unwrap_or_default();
    let registry = &agent.registry;
    let known = text(params, "modelId").and_then(|id| registry.find(&provider, &id).cloned());
    // Headers and address differ between models, so only a named model has them in the answer.
    let of_model = known.is_some();
    // Any model may stand for its provider, whose key is wanted.
    let Some(model) = known.or_else(|| registry.models_of(&provider).first().copied().cloned()) else {
        let _sent = pool.answer(id, &Value::Null);
        return;
    };
    let (agent, pool) = (Arc::clone(agent), pool.clone());
    tokio::spawn(async move {
        match key(&agent, &model, of_model).await {
            Ok(value) => drop(pool.answer(id, &value)),
            Err(error) => pool.refuse(id, &error),
        }
    });
}

async fn key(agent: &Arc<Agent>, model: &Model, of_model: bool) -> Result<Value, String> {
    let found = look_up(agent, model, None).await?;
    let mut answer = Map::new();
    // Ambient credentials have no text that could be given away: the provider's module finds them.
    match found.key.filter(|key| !key.is_ambient()) {
        Some(mut key) => {
            // The token may have expired: the search for keys does not renew it.
            if found.is_login {
                let fresh = agent.client.fresh_token(&model.provider, &key).await;
                key = fresh.map_err(|error| error.to_string())?;
            }
            answer.insert("apiKey".to_owned(), key.expose().into());
        }
        // A model without a key still has headers and an address, as in pi: an extension may need no more for its request.
        None if of_model => {}
        None => return Ok(Value::Null),
    }
    if of_model {
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
    Ok(Value::Object(answer))
}

/// Sends an answer as it comes, in pi-ai's events. Returns the whole message.
async fn pass_on(mut stream: ModelStream, process: &ExtensionPool, id: u64) -> AssistantMessage {
    let mut events = Vec::new();
    // Replaced by the last event, which every stream ends with.
    let mut last = AssistantMessage::begin("", "", "", now_ms());
    while stream.next_batch(&mut events).await {
        let mut updates: Vec<Value> = Vec::new();
        // Pieces that came together become one update: an extension that reads slowly gets fewer, longer ones.
        let mut grown: Option<StreamEvent> = None;
        for event in events.drain(..) {
            match event {
                ModelEvent::Start(message) => updates.push(json!({"type": "start", "partial": message})),
                ModelEvent::Stream(event) => match join(grown.take(), event) {
                    Joined::One(event) => grown = Some(event),
                    Joined::Both(before, event) => {
                        updates.push(json!(before));
                        grown = Some(event);
                    }
                },
                // The streams of pi-ai have no such events.
                ModelEvent::Usage(_) | ModelEvent::Remark(_) => {}
                // No update: this message is the answer to the call.
                ModelEvent::Done(message) | ModelEvent::Error { message, .. } => last = *message,
            }
        }
        updates.extend(grown.map(|event| json!(event)));
        for value in updates {
            // Waits until the extension has read: a slow one slows its own answer.
            if process.update(id, &value).await.is_err() {
                // The extension is gone, which cancels the request. The stream is still read to its last event, whose usage
                // counts.
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

/// Joins pieces of one block that came together.
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

/// The request that the parameters describe.
fn request(agent: &Agent, params: &Value) -> Result<(ModelRequest, Given), String> {
    let null = Value::Null;
    let named = params.get("model").unwrap_or(&null);
    let (context, options) = (
        params.get("context").unwrap_or(&null),
        params.get("options").unwrap_or(&null),
    );
    let model = model(agent, named)?;
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
    request.output.asked = number(options, "maxTokens");
    request.temperature = options.get("temperature").and_then(Value::as_f64);
    request.tool_choice = options.get("toolChoice").and_then(tool_choice);
    request.session_id = text(options, "sessionId");
    request.cache_retention = match text(options, "cacheRetention").as_deref() {
        Some("none") => CacheRetention::None,
        Some("long") => CacheRetention::Long,
        _ => CacheRetention::Short,
    };
    request.timeouts = agent.timeouts(&request.model);
    if let Some(ms) = number(options, "timeoutMs") {
        request.timeouts.response = Duration::from_millis(ms);
    }
    let retries = number(options, "maxRetries").and_then(|retries| u32::try_from(retries).ok());
    let retries = retries.or(settings.retry.provider.max_retries).unwrap_or(0);
    // Bounded, since the extension names the number.
    request.provider_retries = retries.min(limits::EXTENSION_RETRIES);
    request.max_retry_delay = agent.max_retry_delay();
    let mut headers = header_list(named);
    // After those of the model: later headers win (providers.md 10).
    headers.extend(header_list(options));
    for (name, value) in &headers {
        // Extensions bring keys of their own, which must not show in logs and errors either.
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

/// The model as the extension has it: it may have changed it. A model given by name is looked up.
fn model(agent: &Agent, asked: &Value) -> Result<Model, String> {
    let parsed = read::<Model>(asked.clone());
    let (provider, id) = (text(asked, "provider"), text(asked, "id"));
    let known = provider
        .zip(id)
        .and_then(|(provider, id)| agent.registry.find(&provider, &id));
    match (parsed, known) {
        // The address is part of what the registry knows; an extension that names a model need not repeat it.
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

/// The thinking level: under pi-ai's neutral name, or the one of a provider.
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
        above_high: None,
    })
}

/// The tool choice, as any of pi-ai's providers writes it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_level_has_names_of_several_providers() {
        let level = |options: Value| thinking(&options);
        assert_eq!(level(json!({"reasoning": "high"})), ThinkingLevel::High);
        assert_eq!(level(json!({"reasoningEffort": "low"})), ThinkingLevel::Low);
        assert_eq!(level(json!({"effort": "minimal"})), ThinkingLevel::Minimal);
        assert_eq!(
            level(json!({"reasoning": "nonsense", "effort": "low"})),
            ThinkingLevel::Low,
            "the first name that can be read"
        );
        assert_eq!(level(json!({"thinkingEnabled": true})), ThinkingLevel::Medium);
        assert_eq!(level(json!({"thinkingEnabled": "true"})), ThinkingLevel::Off);
    }

    #[test]
    fn tool_choice_is_read_in_every_form() {
        let tool = |name: &str| Some(ToolChoice::Tool(name.to_owned()));
        for (choice, read) in [
            (json!("auto"), Some(ToolChoice::Auto)),
            (json!("required"), Some(ToolChoice::Any)),
            (json!("any"), Some(ToolChoice::Any)),
            (json!("none"), Some(ToolChoice::None)),
            (json!({"type": "any"}), Some(ToolChoice::Any)),
            (json!({"type": "tool", "name": "ls"}), tool("ls")),
            (
                json!({"type": "function", "function": {"name": "ls"}}),
                tool("ls"),
            ),
            (json!({"type": "function"}), None),
            (json!(7), None),
        ] {
            assert_eq!(tool_choice(&choice), read, "{choice}");
        }
    }

    #[test]
    fn system_prompt_parts_are_joined() {
        let prompt = |context: Value| system_prompt(&context);
        assert_eq!(prompt(json!({"systemPrompt": ["one", 7, "two"]})), "one\n\ntwo");
        assert_eq!(prompt(json!({"systemPrompt": "one"})), "one");
        assert_eq!(prompt(json!({"systemPrompt": null})), "");
    }

    #[test]
    fn deltas_of_one_block_are_joined() {
        let text = |content_index, delta: &str| StreamEvent::TextDelta {
            content_index,
            delta: delta.to_owned(),
        };
        let thought = StreamEvent::ThinkingDelta {
            content_index: 0,
            delta: "b".to_owned(),
        };
        match join(Some(text(0, "a")), text(0, "b")) {
            Joined::One(event) => assert_eq!(event, text(0, "ab")),
            Joined::Both(..) => panic!("two events"),
        }
        for other in [text(1, "b"), thought, StreamEvent::TextStart { content_index: 0 }] {
            match join(Some(text(0, "a")), other.clone()) {
                Joined::Both(before, event) => assert_eq!((before, event), (text(0, "a"), other)),
                Joined::One(event) => panic!("{event:?}"),
            }
        }
        assert!(matches!(join(None, text(0, "a")), Joined::One(_)));
    }

    #[test]
    fn headers_without_text_are_left_out() {
        let headers = header_list(&json!({"headers": {"a": "1", "b": 2, "c": null}}));
        assert_eq!(headers, [("a".to_owned(), "1".to_owned())]);
        assert!(header_list(&json!({"headers": []})).is_empty());
        assert!(budgets(&json!({"thinkingBudgets": 7})).is_none());
    }
}
