//! Who listens to events: the processes with the session's extensions, and after them the hook executables. One place asks and
//! tells both, so that no other module knows which one answered. The executables come last: what they let through is what happens.

use extensions::{Answer, ProcessError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::super::session_core::SessionCore;
use super::listeners::Listeners;
use super::{Continuation, Extensions, table};

impl Extensions {
    /// Returns true if a handler listens to this event.
    pub(crate) fn has_listener(&self, event: &str) -> bool {
        self.links.hears(event) || self.hooks.has_listener(event)
    }

    /// Returns true if an event has a subscriber that may answer.
    pub(crate) fn waits_for(&self, name: &str) -> bool {
        // A client may see the event only after the handlers (docs/internals/decisions/15-handlers-before-clients.md).
        self.links.hears(name) || self.hooks.answers(name)
    }

    /// The run, if there is one, is aborted: its handlers learn it and have a moment left.
    pub(crate) fn abort_run(&mut self, has_settled: bool) {
        // Also without a run: handlers of commands and of session changes hear an abort, too.
        if let Some(process) = &self.links.pool {
            process.abort(&self.links.handle);
        }
        if !has_settled {
            self.run.abort_grace.begin();
        }
    }

    /// Nothing listens to events any more.
    pub(crate) fn mute(&mut self) {
        // What stays open is given up by the caller; from now on nothing new is asked.
        self.links.registered.clear();
        self.hooks.mute();
    }

    /// Those who are asked about an event.
    pub(crate) fn listeners(&self, core: &SessionCore, name: &str, event: &Value) -> Listeners {
        let asked = self.hooks.asked(name, event);
        let hooks = asked.map(|asked| (asked, core.hook_facts()));
        let process = self.links.pool.as_ref().filter(|_| self.links.hears(name));
        Listeners {
            process: process.map(|process| (process.clone(), self.links.handle.clone())),
            hooks,
            reaper: core.agent.reaper.clone(),
        }
    }

    /// Asks all who listen to an event; the answer comes as a wakeup. Only to be called when it
    /// [has a listener](Self::has_listener).
    pub(crate) fn ask(
        &mut self,
        core: &mut SessionCore,
        name: &str,
        event: &Value,
        continuation: Continuation,
    ) {
        let answer = self.hook_answer(core, name, event);
        if !continuation.belongs_to_run() {
            self.questions.ask(continuation, answer);
            return;
        }
        // Taken before the answer is awaited: the question may be asked after the abort, and has only the rest of the time then.
        let grace = self.run.abort_grace.ended();
        self.questions.ask(continuation, async move {
            tokio::select! {
                biased;
                answer = answer => answer,
                () = grace => Ok(Answer::default()),
            }
        });
    }

    /// Asks all listeners of an event. The request is on its way when this returns; the future waits for the answer.
    pub(crate) fn hook_answer(
        &mut self,
        core: &mut SessionCore,
        name: &str,
        event: &Value,
    ) -> impl Future<Output = Result<Answer, ProcessError>> + Send + use<> {
        self.hook_answer_until(core, name, event, CancellationToken::new())
    }

    /// Asks all listeners of an event, until `cancel` is cancelled (see [`Listeners::ask_until`]).
    pub(crate) fn hook_answer_until(
        &mut self,
        core: &mut SessionCore,
        name: &str,
        event: &Value,
        cancel: CancellationToken,
    ) -> impl Future<Output = Result<Answer, ProcessError>> + Send + use<> {
        debug_assert!(table::lists(name), "{name} is not in heard.txt");
        self.sync_state(core);
        // Executables without an answer run concurrently with the processes; the others come after them in `Listeners::ask`.
        if !self.hooks.answers(name) {
            self.tell_hooks(core, name, event);
        }
        self.listeners(core, name, event).ask_until(name, event, cancel)
    }

    /// Tells something that no answer is awaited to.
    pub(crate) fn tell_only(&mut self, core: &mut SessionCore, name: &str, event: &Value) {
        self.sync_state(core);
        self.send(core, name, event);
    }

    /// Passes on the events that clients were sent since the last time, if there are any.
    pub(crate) fn pass_on_events(&mut self, core: &mut SessionCore) {
        if !core.outbox.listeners().is_empty() {
            self.sync_state(core);
        }
    }

    /// Sends the events that wait in the outbox. Only `sync_state` calls it, since handlers expect the state to be sent before.
    pub(super) fn send_events(&mut self, core: &SessionCore) {
        for event in core.outbox.listeners().take() {
            let told = serde_json::to_value(&*event).unwrap_or_default();
            self.send(core, event.name(), &told);
        }
    }

    /// Sends an event to the processes and executables that listen to it.
    fn send(&mut self, core: &SessionCore, name: &str, event: &Value) {
        debug_assert!(table::lists(name), "{name} is not in heard.txt");
        self.tell_hooks(core, name, event);
        if let Some(process) = self.links.pool.as_ref().filter(|_| self.links.hears(name)) {
            // A value that is no JSON cannot be sent.
            let _told = process.tell(&self.links.handle, name, event);
        }
    }

    /// Tells executables alone.
    pub(crate) fn tell_hooks(&mut self, core: &SessionCore, name: &str, event: &Value) {
        // First, since the facts copy the whole environment.
        if !self.hooks.has_listener(name) {
            return;
        }
        let facts = core.hook_facts();
        let failures = self.failures.sender();
        self.hooks
            .tell(name, event, &facts, &core.agent.reaper, &failures);
    }

    /// What could not be loaded is said, and those who listen hear that the session has begun.
    pub(crate) fn begin_hooks(&mut self, core: &mut SessionCore) {
        let mut misses_guard = false;
        for (failure, is_guard) in self.hooks.take_refused() {
            misses_guard |= is_guard && self.guards.miss(&failure);
            // More than there is room for is in the doctor's report.
            self.failures.push(failure);
        }
        // Once for all of them, since a lock-down reads settings and resources anew.
        if misses_guard {
            core.lock_down(self.guards.faults());
        }
        // These are older than the start of a session that takes the place of another one.
        self.pass_on_events(core);
        let start = self.loading.start().clone();
        // Processes receive it later, each when it has loaded (`Loading::begin_at`).
        self.tell_hooks(core, "session_start", &start);
    }
}
