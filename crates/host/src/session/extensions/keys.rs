//! What a client with an editor asks extensions for: what may follow in the arguments of a slash command, and keys.

use door::DoorError;
use serde_json::{Value, json};
use wire::command::{CompleteParams, ShortcutParams};
use wire::reply::{Completions, Shortcut, Shortcuts};
use wire::table::Respond;

use crate::limits;
use crate::outbox::Responder;

use super::super::Session;
use super::{Then, failure};

impl Session {
    pub(in crate::session) async fn complete_arguments(
        &mut self,
        responder: Responder<Completions>,
        params: CompleteParams,
    ) {
        let Some((extension, name, _)) = self.extensions.command(&format!("/{}", params.name)) else {
            let error = format!("No extension has the command /{}", params.name);
            return responder.refuse(error).await;
        };
        let params = json!({"extension": extension, "name": name, "prefix": params.prefix});
        self.call_extension("command.complete", &params, Then::Complete(responder));
    }

    pub(super) async fn on_completed(
        &mut self,
        responder: Responder<Completions>,
        answer: Result<Value, DoorError>,
    ) {
        let items = answer.map(|mut answer| match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        });
        let outcome = items.map(|items| Completions { items });
        responder
            .respond(outcome.map_err(|error| error.to_string()))
            .await;
    }

    /// Of two for the same keys the first counts.
    pub(in crate::session) fn shortcuts(&self) -> Shortcuts {
        let mut shortcuts: Vec<Shortcut> = Vec::new();
        for extension in &self.extensions.registered {
            for key in extension.shortcuts.iter().take(limits::REGISTRATIONS) {
                if shortcuts.iter().all(|known| known.shortcut != key.shortcut) {
                    shortcuts.push(Shortcut {
                        shortcut: key.shortcut.clone(),
                        description: key.description.clone(),
                        extension_path: extension.path.clone(),
                    });
                }
            }
        }
        Shortcuts { shortcuts }
    }

    pub(in crate::session) async fn run_shortcut(
        &mut self,
        responder: Responder<()>,
        params: ShortcutParams,
    ) {
        let keys = params.shortcut;
        let mut extensions = self.extensions.registered.iter();
        let owner = extensions.find(|extension| extension.shortcuts.iter().any(|key| key.shortcut == keys));
        let Some(path) = owner.map(|extension| extension.path.clone()) else {
            let error = format!("No extension has the shortcut {keys}");
            return responder.refuse(error).await;
        };
        let params = json!({"extension": path, "shortcut": keys});
        self.call_extension("shortcut.run", &params, Then::Shortcut(responder, keys));
    }

    /// As with a slash command: a failure is told, and the keys were dealt with all the same.
    pub(super) async fn on_shortcut_end(
        &mut self,
        responder: Responder<()>,
        keys: &str,
        answer: Result<Value, DoorError>,
    ) {
        if let Err(error) = answer {
            self.extension_failed(failure(&format!("shortcut:{keys}"), "shortcut", error))
                .await;
        }
        responder.respond(Ok(())).await;
    }

    fn call_extension(&mut self, method: &str, params: &Value, then: Then) {
        self.sync_state();
        let extended = &mut self.extensions;
        let asking = match &extended.door {
            Some(door) => door.call(&extended.handle, method, params, None),
            None => Err(DoorError::Gone("it has just ended".to_owned())),
        };
        extended.wait_for(then, asking);
    }
}
