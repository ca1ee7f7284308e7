//! What extensions make of a request to the model: other messages (`context`), another body (`before_provider_request`), other
//! headers (`before_provider_headers`). All are asked inside the future that the request begins with, so that an abort ends them and the session waits for neither.

use std::collections::BTreeMap;
use std::sync::Arc;

use door::line::Failure;
use door::{Answer, Asking, DoorError};
use llm::{ChangeHeaders, ChangedHeaders, HeaderList, OnResponse, Rewrite, Rewritten};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::Message;

use super::super::Session;
use super::failure;

/// The question what the model is to see.
pub(in crate::session) struct Context {
    asking: Result<Asking, DoorError>,
    failures: mpsc::Sender<Failure>,
}

impl Context {
    /// The messages as extensions want them; as they are when nobody changed them.
    pub(in crate::session) async fn messages(self, messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        let value = match self.asking {
            Ok(asking) => settle(asking.await, "context", &self.failures),
            Err(_) => Value::Null,
        };
        let Some(changed) = value.get("messages") else {
            return messages;
        };
        match serde_json::from_value::<Vec<Message>>(changed.clone()) {
            Ok(changed) => changed.into_iter().map(Arc::new).collect(),
            Err(error) => {
                let _told = self.failures.try_send(failure("<runtime>", "context", error));
                messages
            }
        }
    }
}

impl Session {
    /// Asks what the model is to see, if somebody has something to say about it.
    pub(in crate::session) fn ask_context(&mut self) -> Option<Context> {
        if !self.extensions.hear("context") {
            return None;
        }
        self.sync_state();
        let event = json!({"type": "context", "messages": self.machine.messages()});
        let extended = &self.extensions;
        let door = extended.door.as_ref()?;
        Some(Context {
            asking: door.event(&extended.handle, "context", &event),
            failures: extended.failures.0.clone(),
        })
    }

    /// How extensions change the body of a request, if they do.
    pub(in crate::session) fn rewrite(&self) -> Option<Rewrite> {
        let name = "before_provider_request";
        if !self.extensions.hear(name) {
            return None;
        }
        let (door, handle) = (self.extensions.door.clone()?, self.extensions.handle.clone());
        let failures = self.extensions.failures.0.clone();
        Some(Rewrite::new(move |payload: Value| -> Rewritten {
            let event = json!({"type": name, "payload": payload});
            let asking = door.event(&handle, name, &event);
            let failures = failures.clone();
            Box::pin(async move {
                let value = match asking {
                    Ok(asking) => settle(asking.await, name, &failures),
                    Err(_) => Value::Null,
                };
                match value {
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
        let (door, handle) = (self.extensions.door.clone()?, self.extensions.handle.clone());
        let failures = self.extensions.failures.0.clone();
        Some(ChangeHeaders::new(move |headers: HeaderList| -> ChangedHeaders {
            let event = json!({"type": name, "headers": headers.iter().cloned().collect::<BTreeMap<_, _>>()});
            let asking = door.event(&handle, name, &event);
            let failures = failures.clone();
            Box::pin(async move {
                let value = match asking {
                    Ok(asking) => settle(asking.await, name, &failures),
                    Err(_) => Value::Null,
                };
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
        if !self.extensions.hear(name) {
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
