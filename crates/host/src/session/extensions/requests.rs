//! What extensions make of a request to the model: other messages (`context`), another body (`before_provider_request`). Both
//! are asked inside the future that the request begins with, so that an abort ends them and the session waits for neither.

use std::pin::Pin;
use std::sync::Arc;

use door::line::Failure;
use door::{Answer, DoorError};
use llm::{Rewrite, Rewritten};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::Message;

use super::super::Session;
use super::failure;

/// The question what the model is to see.
pub(in crate::session) struct Context {
    asking: Pin<Box<dyn Future<Output = Result<Answer, DoorError>> + Send>>,
    failures: mpsc::Sender<Failure>,
}

impl Context {
    /// The messages as extensions want them; as they are when nobody changed them.
    pub(in crate::session) async fn messages(self, messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        let value = settle(self.asking.await, "context", &self.failures);
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
        let asking = self.listeners("context", &event).ask("context", &event);
        Some(Context {
            asking: Box::pin(asking),
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
