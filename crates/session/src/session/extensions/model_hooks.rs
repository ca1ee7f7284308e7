//! Hooks of extensions on requests to the model: they change the messages (`context`, `context_with_system`), the body
//! (`before_provider_request`) and the headers (`before_provider_headers`). They run inside the future that the request begins
//! with, so that an abort ends them and the session does not wait for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use extensions::line::Failure;
use extensions::{Answer, ProcessError};
use llm::{
    ChangeHeaders, ChangedHeaders, HeaderList, HeardResponse, OnResponse, RequestHooks, Rewrite, Rewritten,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::Message;

use super::super::clock::now_ms;
use super::failures::{Failures, failure};
use super::listeners::Listeners;
use crate::limits;

/// The hooks that change what the model sees: first without the system prompt, then with it.
pub(crate) struct Context {
    plain: Option<Listeners>,
    with_system: Option<Listeners>,
    failures: mpsc::Sender<Failure>,
}

impl Context {
    fn new(
        plain: Option<Listeners>,
        with_system: Option<Listeners>,
        failures: mpsc::Sender<Failure>,
    ) -> Option<Self> {
        (plain.is_some() || with_system.is_some()).then_some(Self {
            plain,
            with_system,
            failures,
        })
    }

    /// Returns the messages and the system prompt as extensions change them.
    pub(crate) async fn seen(
        self,
        mut messages: Vec<Arc<Message>>,
        mut system: String,
    ) -> (Vec<Arc<Message>>, String) {
        // In this order: listeners with the system prompt see what the others have changed.
        if let Some(listeners) = self.plain {
            let event = json!({"type": "context", "messages": messages});
            if let Some(changed) = ask(listeners, "context", &event, &self.failures).await {
                messages = changed;
            }
        }
        if let Some(listeners) = self.with_system {
            let name = "context_with_system";
            let mut all = vec![json!({"role": "system", "content": system, "timestamp": now_ms()})];
            all.extend(messages.iter().map(|message| json!(message)));
            let event = json!({"type": name, "messages": all});
            if let Some(changed) = ask(listeners, name, &event, &self.failures).await {
                (system, messages) = apart(changed);
            }
        }
        (messages, system)
    }
}

/// Asks for other messages. `None` if they stay as they are.
async fn ask(
    listeners: Listeners,
    name: &str,
    event: &Value,
    failures: &mpsc::Sender<Failure>,
) -> Option<Vec<Arc<Message>>> {
    // A hook that fails changes nothing: the request is sent as it was.
    let value = settle(listeners.ask(name, event).await, name, failures);
    let changed = value.get("messages")?.clone();
    match serde_json::from_value::<Vec<Message>>(changed) {
        Ok(changed) => Some(changed.into_iter().map(Arc::new).collect()),
        // Messages that cannot be read are dropped as a whole: half of a changed conversation would be neither of the two.
        Err(error) => {
            let _told = failures.try_send(failure("<runtime>", name, error));
            None
        }
    }
}

/// Separates the system prompt, which is the text of all messages of that role, from the other messages.
fn apart(messages: Vec<Arc<Message>>) -> (String, Vec<Arc<Message>>) {
    let mut system = Vec::new();
    let mut others = Vec::new();
    for message in messages {
        match message.as_ref() {
            Message::Other(value) if value.get("role") == Some(&json!("system")) => {
                system.extend(value.get("content").and_then(Value::as_str).map(str::to_owned));
            }
            _ => others.push(message),
        }
    }
    (system.join("\n\n"), others)
}

/// What extensions do with the requests of the session to the model.
pub(crate) struct ModelHooks {
    /// Changes the messages and the system prompt. `None` without listeners, as with the others.
    pub(crate) context: Option<Context>,
    /// What `llm` calls.
    pub(crate) request: RequestHooks,
}

impl ModelHooks {
    /// The hooks for the next request. `listeners` returns the listeners of an event, if there are any.
    pub(crate) fn new(failures: &Failures, listeners: impl Fn(&str) -> Option<Listeners>) -> Self {
        let failures = || failures.sender();
        Self {
            context: Context::new(listeners("context"), listeners("context_with_system"), failures()),
            request: RequestHooks {
                rewrite: listeners("before_provider_request").map(|asked| rewrite(asked, failures())),
                change_headers: listeners("before_provider_headers")
                    .map(|asked| change_headers(asked, failures())),
                on_response: listeners("after_provider_response").map(|asked| on_response(asked, failures())),
            },
        }
    }
}

/// Changes the body of a request.
fn rewrite(listeners: Listeners, failures: mpsc::Sender<Failure>) -> Rewrite {
    let name = "before_provider_request";
    Rewrite::new(move |payload: Value| -> Rewritten {
        let event = json!({"type": name, "payload": payload});
        let asking = listeners.clone().ask(name, &event);
        let failures = failures.clone();
        Box::pin(async move {
            match settle(asking.await, name, &failures) {
                Value::Object(mut answer) => answer.remove("payload").unwrap_or(payload),
                _ => payload,
            }
        })
    })
}

/// Headers that the agent itself adds to a request, keys among them. Extensions do not get them, as in pi, but may set others in their
/// place.
const OWN_HEADERS: [&str; 13] = [
    "accept",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "api-key",
    "authorization",
    "cf-aig-authorization",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-api-key",
    "x-goog-api-key",
];

/// Changes the headers of a request.
fn change_headers(listeners: Listeners, failures: mpsc::Sender<Failure>) -> ChangeHeaders {
    let name = "before_provider_headers";
    ChangeHeaders::new(move |headers: HeaderList| -> ChangedHeaders {
        let is_own = |(name, _): &(String, String)| OWN_HEADERS.contains(&name.as_str());
        let (own, shown): (HeaderList, HeaderList) = headers.iter().cloned().partition(is_own);
        let event = json!({"type": name, "headers": shown.into_iter().collect::<BTreeMap<_, _>>()});
        let asking = listeners.clone().ask(name, &event);
        let failures = failures.clone();
        Box::pin(async move {
            let value = settle(asking.await, name, &failures);
            match value.get("headers").and_then(Value::as_object) {
                Some(changed) => {
                    let is_kept = |(name, _): &(String, String)| {
                        !changed.keys().any(|other| other.eq_ignore_ascii_case(name))
                    };
                    // Null removes a header.
                    let set = changed
                        .iter()
                        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                    own.into_iter().filter(is_kept).chain(set).collect()
                }
                None => headers,
            }
        })
    })
}

/// Tells extensions of responses. The answer begins after them, as in pi.
fn on_response(listeners: Listeners, failures: mpsc::Sender<Failure>) -> OnResponse {
    let name = "after_provider_response";
    OnResponse::new(move |status, headers: HeaderList| -> HeardResponse {
        let headers: BTreeMap<String, String> = headers.into_iter().collect();
        let event = json!({"type": name, "status": status, "headers": headers});
        let asking = listeners.clone().ask(name, &event);
        let failures = failures.clone();
        Box::pin(async move {
            // A handler that hangs delays the answer, but cannot prevent it.
            if let Ok(answer) = tokio::time::timeout(limits::RESPONSE_HANDLERS, asking).await {
                settle(answer, name, &failures);
            }
        })
    })
}

/// The value of an answer to an event that belongs to no request. The session reports failures on the way.
pub(crate) async fn value_of(
    asking: impl Future<Output = Result<Answer, ProcessError>>,
    event: &'static str,
    failures: mpsc::Sender<Failure>,
) -> Value {
    settle(asking.await, event, &failures)
}

/// The value of an answer. The session reports failures on the way.
fn settle(answer: Result<Answer, ProcessError>, event: &str, failures: &mpsc::Sender<Failure>) -> Value {
    let (value, errors) = match answer {
        Ok(answer) => (answer.value, answer.errors),
        Err(error) => (Value::Null, vec![failure("<runtime>", event, error)]),
    };
    for error in errors {
        // A full channel drops failures that repeat the others.
        let _told = failures.try_send(error);
    }
    value
}
