//! Extensions of the user may decide whether a project is trusted (`project_trust`, pi 1.5). Until they have, those of the
//! project are not loaded, and the session has not begun for the others.

use config::extensions::{Found, find};
use config::trust::DecidedBy;
use door::line::Scope as ChildScope;
use serde_json::{Value, json};

use super::super::Session;
use super::{Extended, Then, failure};

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

impl Extended {
    /// Does the session begin for nobody before somebody has decided?
    pub(super) fn waits_for_trust(&self) -> bool {
        self.trusting.asks || self.waits.values().any(|wait| matches!(wait.then, Then::Trust))
    }
}

impl Session {
    /// Keeps the project's extensions back when others might still say that it is not trusted.
    pub(super) fn withhold(&mut self) {
        let agent = &self.agent;
        let extended = &mut self.extensions;
        let may_decide = |found: &Found| !is_projects(found) && found.runs.is_ok();
        let may_ask = extended.found.iter().any(may_decide)
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

    /// Those that may decide are loaded, or have had their time: asks them, if that is to be done. False: it is not.
    pub(super) fn ask_trust(&mut self) -> bool {
        if !std::mem::take(&mut self.extensions.trusting.asks) {
            return false;
        }
        if self.extensions.hear("project_trust") {
            let event = json!({"type": "project_trust", "cwd": self.agent.cwd.to_string_lossy()});
            self.ask_extensions("project_trust", &event, Then::Trust);
        } else {
            let nobody = super::Outcome::Answer(Ok(door::Answer::default()));
            self.extensions.wait(Then::Trust, std::future::ready(nobody));
        }
        true
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
            let found = find(&self.agent.places(&self.cwd));
            self.extensions.trusting.withheld = found.into_iter().filter(is_projects).collect();
        }
        self.load_withheld().await;
        self.begin_for_loaded().await;
    }

    /// Loads what waited.
    async fn load_withheld(&mut self) {
        let extended = &mut self.extensions;
        let withheld = std::mem::take(&mut extended.trusting.withheld);
        if withheld.is_empty() {
            return;
        }
        // Before those of the user, as if nobody had been asked.
        let is_users = |found: &Found| found.source.scope == ChildScope::User;
        let found = &mut extended.found;
        let at = found.iter().position(is_users).unwrap_or(found.len());
        found.splice(at..at, withheld.iter().cloned());
        self.name_odd(&withheld).await;
        self.load_more(&withheld).await;
    }
}
