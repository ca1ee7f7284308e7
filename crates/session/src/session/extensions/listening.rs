//! Who listens to events: the processes with the session's extensions, and after them the hook executables. One place asks and
//! tells both, so that no other module knows which one answered. The executables come last: what they let through is what happens.

use extensions::{Answer, ProcessError};
use serde_json::{Value, json};
use wire::ui::NotifyType;

use crate::factory::Agent;
use crate::hooks::Facts;

use super::super::Session;
use super::super::dialogs::Show;
use super::listeners::Listeners;
use super::{Extensions, Then, cancels, table};

impl Extensions {
    /// Does a handler listen to this event?
    pub(in crate::session) fn hear(&self, event: &str) -> bool {
        self.links.hears(event) || self.hooks.hear(event)
    }
}

impl Session {
    /// Those who are asked about an event.
    pub(in crate::session) fn listeners(&self, name: &str, event: &Value) -> Listeners {
        let asked = self.extensions.hooks.asked(name, event);
        let hooks = asked.map(|asked| (asked, self.hook_facts()));
        let extended = &self.extensions;
        let process = extended
            .links
            .pool
            .as_ref()
            .filter(|_| extended.links.hears(name));
        Listeners {
            process: process.map(|process| (process.clone(), extended.links.handle.clone())),
            hooks,
            reaper: self.agent.reaper.clone(),
        }
    }

    /// Asks all who listen to an event; the answer comes as a wakeup. Only to be called when a handler
    /// [hears](Extensions::hear) it.
    pub(in crate::session) fn ask_extensions(&mut self, name: &str, event: &Value, then: Then) {
        let answer = self.hook_answer(name, event);
        let extended = &mut self.extensions;
        if !then.belongs_to_run() {
            extended.questions.ask(then, answer);
            return;
        }
        let grace = extended.run.abort_grace.ended();
        extended.questions.ask(then, async move {
            tokio::select! {
                biased;
                answer = answer => answer,
                () = grace => Ok(Answer::default()),
            }
        });
    }

    /// Asks all listeners of an event. The request is on its way when this returns; the future waits for the answer.
    pub(in crate::session) fn hook_answer(
        &mut self,
        name: &str,
        event: &Value,
    ) -> impl Future<Output = Result<Answer, ProcessError>> + Send + use<> {
        debug_assert!(table::lists(name), "{name} is not in heard.txt");
        self.sync_state();
        if !self.extensions.hooks.answers(name) {
            self.tell_hooks(name, event);
        }
        self.listeners(name, event).ask(name, event)
    }

    /// Tells something that no answer is awaited to.
    pub(in crate::session) fn tell_only(&mut self, name: &str, event: &Value) {
        debug_assert!(table::lists(name), "{name} is not in heard.txt");
        self.sync_state();
        self.tell_hooks(name, event);
        let extended = &self.extensions;
        if let Some(process) = extended
            .links
            .pool
            .as_ref()
            .filter(|_| extended.links.hears(name))
        {
            // A value that is no JSON cannot be sent.
            let _told = process.tell(&extended.links.handle, name, event);
        }
    }

    /// Tells executables alone.
    pub(super) fn tell_hooks(&mut self, name: &str, event: &Value) {
        if !self.extensions.hooks.hear(name) {
            return;
        }
        let facts = self.hook_facts();
        let extended = &mut self.extensions;
        let failures = extended.failures.sender();
        extended
            .hooks
            .tell(name, event, &facts, &self.agent.reaper, &failures);
    }

    /// What could not be loaded is said, and those who listen hear that the session has begun.
    pub(in crate::session) fn begin_hooks(&mut self) {
        let extended = &mut self.extensions;
        let mut misses_guard = false;
        for (failure, is_guard) in extended.hooks.take_refused() {
            misses_guard |= is_guard && extended.guards.miss(&failure);
            // More than there is room for is in the doctor's report.
            extended.failures.push(failure);
        }
        if misses_guard {
            self.lock_down();
        }
        let start = self.extensions.loading.start().clone();
        self.tell_hooks("session_start", &start);
    }

    /// Why something was refused is said to the person, where the answer to the client cannot hold it.
    pub(in crate::session) async fn tell_reason(&mut self, answer: &Value) {
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

    /// The state of the session for executables.
    fn hook_facts(&self) -> Facts {
        let (agent, file) = (&self.agent, self.conversation.log.file_text());
        let header = self.conversation.log.header();
        let mut env = agent.toolbox.env().to_vec();
        let about = Agent::tool_env(&header.id, file.as_deref(), Some(&self.conversation.choice.model));
        env.retain(|(name, _)| about.iter().all(|(known, _)| known != name));
        env.extend(about);
        env.push(("PI_CODING_AGENT_DIR".into(), agent.agent_dir.clone().into()));
        Facts {
            session: json!({
                "id": header.id,
                "file": file,
                "name": self.conversation.log.session_name(),
                "cwd": self.workspace.cwd.to_string_lossy(),
                "model": {"provider": self.conversation.choice.model.provider, "id": self.conversation.choice.model.id},
            }),
            agent: json!({
                "name": "pinion",
                "version": agent.version,
                "dir": agent.agent_dir.to_string_lossy(),
            }),
            env,
            cwd: self.workspace.cwd.clone(),
        }
    }
}
