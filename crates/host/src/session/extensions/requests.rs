//! What extensions make of a request to the model: other messages (`context`, `context_with_system`), another body
//! (`before_provider_request`), other headers (`before_provider_headers`). All are asked inside the future that the request
//! begins with, so that an abort ends them and the session waits for neither.

use std::collections::BTreeMap;
use std::sync::Arc;

use door::line::Failure;
use door::{Answer, DoorError};
use llm::{ChangeHeaders, ChangedHeaders, HeaderList, OnResponse, Rewrite, Rewritten};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::Message;

use super::super::Session;
use super::super::drive::now_ms;
use super::failure;
use super::listening::Listeners;

/// The questions what the model is to see: without the system prompt, then with it.
pub(in crate::session) struct Context {
    plain: Option<Listeners>,
    with_system: Option<Listeners>,
    failures: mpsc::Sender<Failure>,
}

impl Context {
    /// The messages and the system prompt as extensions want them; as they are when nobody changed them.
    pub(in crate::session) async fn seen(
        self,
        mut messages: Vec<Arc<Message>>,
        mut system: String,
    ) -> (Vec<Arc<Message>>, String) {
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

/// The messages as extensions want them; none when nobody changed them.
async fn ask(
    listeners: Listeners,
    name: &str,
    event: &Value,
    failures: &mpsc::Sender<Failure>,
) -> Option<Vec<Arc<Message>>> {
    let value = settle(listeners.ask(name, event).await, name, failures);
    let changed = value.get("messages")?.clone();
    match serde_json::from_value::<Vec<Message>>(changed) {
        Ok(changed) => Some(changed.into_iter().map(Arc::new).collect()),
        Err(error) => {
            let _told = failures.try_send(failure("<runtime>", name, error));
            None
        }
    }
}

/// The system prompt, which is what all messages of that role say, and the others.
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

impl Session {
    /// Asks what the model is to see, if somebody has something to say about it.
    pub(in crate::session) fn ask_context(&mut self) -> Option<Context> {
        let hear = |name| self.extensions.hear(name);
        let (plain, with_system) = (hear("context"), hear("context_with_system"));
        if !plain && !with_system {
            return None;
        }
        self.sync_state();
        let listeners = |name: &str, hears: bool| hears.then(|| self.listeners(name, &Value::Null));
        Some(Context {
            plain: listeners("context", plain),
            with_system: listeners("context_with_system", with_system),
            failures: self.extensions.failures.0.clone(),
        })
    }

    /// How extensions change the body of a request, if they do.
    pub(in crate::session) fn rewrite(&self) -> Option<Rewrite> {
        let name = "before_provider_request";
        if !self.extensions.hear(name) {
            return None;
        }
        let listeners = self.listeners(name, &Value::Null);
        let failures = self.extensions.failures.0.clone();
        Some(Rewrite::new(move |payload: Value| -> Rewritten {
            let event = json!({"type": name, "payload": payload});
            let asking = listeners.clone().ask(name, &event);
            let failures = failures.clone();
            Box::pin(async move {
                match settle(asking.await, name, &failures) {
                    Value::Object(mut answer) => answer.remove("payload").unwrap_or(payload),
                    _ => payload,
                }
            })
        }))
    }

    /// How extensions change the headers of a request, if they do.
    pub(in crate::session) fn change_headers(&self) -> Option<ChangeHeaders> {
        let name = "before_provider_headers";
        if !self.extensions.hear(name) {
            return None;
        }
        let listeners = self.listeners(name, &Value::Null);
        let failures = self.extensions.failures.0.clone();
        Some(ChangeHeaders::new(move |headers: HeaderList| -> ChangedHeaders {
            let event = json!({"type": name, "headers": headers.iter().cloned().collect::<BTreeMap<_, _>>()});
            let asking = listeners.clone().ask(name, &event);
            let failures = failures.clone();
            Box::pin(async move {
                let value = settle(asking.await, name, &failures);
                match value.get("headers").and_then(Value::as_object) {
                    // Null takes a header away.
                    Some(changed) => changed
                        .iter()
                        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                        .collect(),
                    None => headers,
                }
            })
        }))
    }

    /// Tells extensions of responses, if they listen.
    pub(in crate::session) fn on_response(&self) -> Option<OnResponse> {
        let name = "after_provider_response";
        if !self.extensions.process_hears(name) {
            return None;
        }
        let (door, handle) = (self.extensions.door.clone()?, self.extensions.handle.clone());
        Some(OnResponse::new(move |status, headers: HeaderList| {
            let headers: BTreeMap<String, String> = headers.into_iter().collect();
            let event = json!({"type": name, "status": status, "headers": headers});
            // Nobody waits for it.
            let _told = door.tell(&handle, name, &event);
        }))
    }
}

/// The value of an answer. What went wrong on the way is told by the session.
fn settle(answer: Result<Answer, DoorError>, event: &str, failures: &mpsc::Sender<Failure>) -> Value {
    let (value, errors) = match answer {
        Ok(answer) => (answer.value, answer.errors),
        Err(error) => (Value::Null, vec![failure("<runtime>", event, error)]),
    };
    for error in errors {
        // More than there is room for is the same again.
        let _told = failures.try_send(error);
    }
    value
}
