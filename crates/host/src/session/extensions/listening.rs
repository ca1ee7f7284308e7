//! Who listens to events: the processes with the session's extensions, and after them the hook executables. One place asks and
//! tells both, so that nobody else knows who answered. The executables come last: what they let through is what happens.

use door::combining::{Rule, rule};
use door::{Answer, DoorError, Doors};
use serde_json::{Value, json};
use tools::Reaper;
use wire::ui::NotifyType;

use crate::agent::Agent;
use crate::hooks::{Asked, Facts};

use super::super::Session;
use super::super::dialogs::Show;
use super::{Extended, Outcome, Then, cancels, table};

/// Those who are asked about an event.
#[derive(Clone)]
pub(super) struct Listeners {
    /// The processes, when an extension in one of them listens, and what they call the session.
    process: Option<(Doors, String)>,
    /// Executables, and what they are told of the session.
    hooks: Option<(Asked, Facts)>,
    reaper: Reaper,
}

impl Listeners {
    /// Asks all of them; the question is on its way at once.
    pub(super) fn ask(
        self,
        name: &str,
        event: &Value,
    ) -> impl Future<Output = Result<Answer, DoorError>> + Send + use<> {
        let process = self.process.as_ref();
        let asking = process.map(|(door, handle)| door.event(handle, name, event));
        let after = self
            .hooks
            .map(|(hooks, facts)| (hooks, facts, event.clone(), name.to_owned()));
        async move {
            let first = match asking {
                Some(asking) => asking?.await,
                None => Ok(Answer::default()),
            };
            let Some((hooks, facts, event, name)) = after else {
                return first;
            };
            let first = match first {
                Ok(first) => first,
                // What was to check a call and cannot answer is not made up for by somebody else.
                Err(error) if is_gate(&name) => return Err(error),
                Err(error) => Answer {
                    value: Value::Null,
                    errors: vec![super::failure("<runtime>", &name, error)],
                },
            };
            Ok(hooks.ask(facts, self.reaper, name, event, first).await)
        }
    }
}

impl Extended {
    /// Does somebody listen to this event?
    pub(in crate::session) fn hear(&self, event: &str) -> bool {
        self.process_hears(event) || self.hooks.hear(event)
    }

    /// Does an extension in a process?
    pub(super) fn process_hears(&self, event: &str) -> bool {
        self.door.is_some()
            && self
                .registered
                .iter()
                .any(|extension| extension.events.iter().any(|name| name == event))
    }
}

impl Session {
    /// Those who are asked about an event.
    pub(super) fn listeners(&self, name: &str, event: &Value) -> Listeners {
        let asked = self.extensions.hooks.asked(name, event);
        let hooks = asked.map(|asked| (asked, self.hook_facts()));
        let extended = &self.extensions;
        let door = extended.door.as_ref().filter(|_| extended.process_hears(name));
        Listeners {
            process: door.map(|door| (door.clone(), extended.handle.clone())),
            hooks,
            reaper: self.agent.reaper.clone(),
        }
    }

    /// Asks all who listen to an event; the answer comes as a happening. Only to be called when somebody
    /// [hears](Extended::hear) it.
    pub(in crate::session) fn ask_extensions(&mut self, name: &str, event: &Value, then: Then) {
        debug_assert!(table::lists(name), "{name} is not in heard.txt");
        self.sync_state();
        if !self.extensions.hooks.answers(name) {
            self.tell_hooks(name, event);
        }
        let answer = self.listeners(name, event).ask(name, event);
        let extended = &mut self.extensions;
        if !then.belongs_to_run() {
            return extended.wait(then, async move { Outcome::Answer(answer.await) });
        }
        let patience = extended.patience.ended();
        extended.wait(then, async move {
            tokio::select! {
                biased;
                answer = answer => Outcome::Answer(answer),
                () = patience => Outcome::Answer(Ok(Answer::default())),
            }
        });
    }

    /// Tells something that no answer is awaited to.
    pub(super) fn tell_only(&mut self, name: &str, event: &Value) {
        debug_assert!(table::lists(name), "{name} is not in heard.txt");
        self.sync_state();
        self.tell_hooks(name, event);
        let extended = &self.extensions;
        if let Some(door) = extended.door.as_ref().filter(|_| extended.process_hears(name)) {
            // What is no JSON cannot be told.
            let _told = door.tell(&extended.handle, name, event);
        }
    }

    /// Tells executables alone.
    pub(super) fn tell_hooks(&mut self, name: &str, event: &Value) {
        if !self.extensions.hooks.hear(name) {
            return;
        }
        let facts = self.hook_facts();
        let extended = &mut self.extensions;
        let failures = &extended.failures.0;
        extended
            .hooks
            .tell(name, event, &facts, &self.agent.reaper, failures);
    }

    /// What could not be loaded is said, and those who listen hear that the session has begun.
    pub(super) fn begin_hooks(&mut self) {
        let extended = &mut self.extensions;
        for refused in extended.hooks.take_refused() {
            // More than there is room for is in the doctor's report.
            let _told = extended.failures.0.try_send(refused);
        }
        let start = self.extensions.state.start();
        self.tell_hooks("session_start", &start);
    }

    /// Why something was refused is said to the person, where the answer to the client cannot hold it.
    pub(super) async fn tell_reason(&mut self, answer: &Value) {
        let refuses = cancels(answer) || answer.get("action") == Some(&json!("handled"));
        let reason = answer.get("reason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| refuses && !reason.is_empty()) {
            let show = Show::Notify {
                message: reason.to_owned(),
                kind: Some(NotifyType::Warning),
            };
            self.dialogs.show_now(show, &self.outbox).await;
        }
    }

    /// What executables are told of the session.
    fn hook_facts(&self) -> Facts {
        let (agent, file) = (&self.agent, self.file_text());
        let header = self.log.header();
        let mut env = agent.toolbox.env().to_vec();
        let about = Agent::tool_env(&header.id, file.as_deref(), Some(&self.model));
        env.retain(|(name, _)| about.iter().all(|(known, _)| known != name));
        env.extend(about);
        env.push(("PI_CODING_AGENT_DIR".into(), agent.agent_dir.clone().into()));
        Facts {
            session: json!({
                "id": header.id,
                "file": file,
                "name": self.log.session_name(),
                "cwd": self.cwd.to_string_lossy(),
                "model": {"provider": self.model.provider, "id": self.model.id},
            }),
            agent: json!({
                "name": "pinion",
                "version": agent.version,
                "dir": agent.agent_dir.to_string_lossy(),
            }),
            env,
            cwd: self.cwd.clone(),
        }
    }
}

/// Does somebody decide here whether something may be done?
fn is_gate(event: &str) -> bool {
    matches!(rule(event), Rule::Block | Rule::First(_))
}
