//! Extensions of the user may decide whether a project is trusted (`project_trust`, pi 1.5). Until they have, those of the
//! project are not loaded.

use door::line::{Opened, Scope as ChildScope};
use door::{DoorError, line::Source};
use serde_json::{Value, json};

use crate::extensions::{Found, find};
use crate::trust::DecidedBy;

use super::super::Session;
use super::{Then, failure};

/// The question, as far as a session has to ask it.
#[derive(Default)]
pub(super) struct Trusting {
    /// It is still to be asked.
    asks: bool,
    /// Extensions of the project that wait for the answer.
    withheld: Vec<Found>,
}

fn is_projects(found: &Found) -> bool {
    found.source.scope == ChildScope::Project
}

impl Session {
    /// Keeps the project's extensions back when others might still say that it is not trusted.
    pub(super) fn withhold(&mut self) {
        let agent = &self.agent;
        let extended = &mut self.extensions;
        let may_ask = extended.found.iter().any(|found| !is_projects(found))
            && agent.trust.is_open(&agent.cwd)
            && agent.project().needs_trust();
        let found = std::mem::take(&mut extended.found);
        let (withheld, found) = found.into_iter().partition(|found| may_ask && is_projects(found));
        extended.found = found;
        extended.trusting = Trusting {
            asks: may_ask,
            withheld,
        };
    }

    /// The extensions that may decide are loaded. False: there is nothing to ask and nothing more to load.
    pub(super) fn ask_trust(&mut self) -> bool {
        let asks = std::mem::take(&mut self.extensions.trusting.asks);
        if asks && self.extensions.hear("project_trust") {
            let event = json!({"type": "project_trust", "cwd": self.agent.cwd.to_string_lossy()});
            self.ask_extensions("project_trust", &event, Then::Trust);
            return true;
        }
        self.load_withheld()
    }

    /// One of them decided, or none.
    pub(super) async fn on_trust(&mut self, answer: Value) {
        let trusted = match answer.get("trusted").and_then(Value::as_str) {
            Some("yes") => Some(true),
            Some("no") => Some(false),
            _ => None,
        };
        if trusted.is_some() {
            let trust = &self.agent.trust;
            if answer.get("remember") == Some(&json!(true))
                && let Err(problem) = trust.file().set(&self.agent.cwd, trusted)
            {
                let failure = failure("<runtime>", "project_trust", problem.to_string());
                self.extension_failed(failure).await;
            }
            self.agent
                .trust
                .set(&self.agent.cwd, trusted, DecidedBy::Extension);
            self.load_anew();
            let found = find(&self.agent, &self.cwd);
            self.extensions.trusting.withheld = found.into_iter().filter(is_projects).collect();
        }
        if !self.load_withheld() {
            self.begin_for_extensions().await;
        }
    }

    /// Loads what waited. False when nothing did.
    fn load_withheld(&mut self) -> bool {
        let extended = &mut self.extensions;
        let withheld = std::mem::take(&mut extended.trusting.withheld);
        if withheld.is_empty() {
            return false;
        }
        let sources: Vec<Source> = withheld.iter().map(|found| found.source.clone()).collect();
        // Before those of the user, as if nobody had been asked.
        let is_users = |found: &Found| found.source.scope == ChildScope::User;
        let found = &mut extended.found;
        let at = found.iter().position(is_users).unwrap_or(found.len());
        found.splice(at..at, withheld);
        self.sync_state();
        let extended = &mut self.extensions;
        let params = json!({ "extensions": sources });
        let asking = match &extended.door {
            Some(door) => door.call(&extended.handle, "extensions.load", &params, None),
            None => Err(DoorError::Gone("there is none".to_owned())),
        };
        extended.wait_for(Then::Loaded, asking);
        true
    }

    /// The project's extensions are there, too.
    pub(super) async fn on_loaded(&mut self, answer: Result<Value, DoorError>) {
        let opened = answer.and_then(|value| {
            serde_json::from_value::<Opened>(value).map_err(|error| DoorError::Odd(error.to_string()))
        });
        match opened {
            // The process died over it and is being started again.
            Err(DoorError::Gone(_)) => return,
            Err(error) => {
                let failure = failure("<runtime>", "load", error.to_string());
                self.extension_failed(failure).await;
            }
            Ok(opened) => {
                let old = self.extensions.tools.names();
                self.report_unloaded(&opened).await;
                self.extensions.registered.extend(opened.extensions);
                self.order_registered();
                self.take_registrations(&old);
            }
        }
        self.begin_for_extensions().await;
    }

    /// In the order in which they were found.
    fn order_registered(&mut self) {
        let extended = &mut self.extensions;
        let found = &extended.found;
        extended.registered.sort_by_key(|registered| {
            let path = registered.given.as_ref().unwrap_or(&registered.path);
            found.iter().position(|found| found.source.path == *path)
        });
    }
}
