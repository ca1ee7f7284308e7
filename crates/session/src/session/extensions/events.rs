//! How long a run waits for its extensions, and what becomes of it when they have had their time. Which events wait for their
//! subscribers is decided in `agent`: an event that one of them may answer reaches clients when its handlers are done
//! (dialects.md 10.3).

use agent::{HookPoint, HooksOutcome, Input};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits;

use super::super::Session;
use super::{Extensions, Then};

impl Extensions {
    /// Returns true if an event has a subscriber that may answer.
    pub(in crate::session) fn waits_for(&self, name: &str) -> bool {
        self.links.hears(name) || self.hooks.answers(name)
    }

    /// The run, if there is one, is aborted: its handlers learn it and have a moment left.
    pub(in crate::session) fn abort_run(&mut self, is_idle: bool) {
        if let Some(process) = &self.links.pool {
            process.abort(&self.links.handle);
        }
        if !is_idle {
            self.run.abort_grace.begin();
        }
    }
}

/// How long a run waits for its extensions: as long as they take, and a moment once it is aborted.
#[derive(Debug, Default)]
pub(super) struct AbortGrace {
    aborted: CancellationToken,
    /// When it ends, once the run is aborted.
    until: Option<Instant>,
}

impl AbortGrace {
    /// The run is aborted.
    fn begin(&mut self) {
        if self.until.is_none() {
            self.until = Some(Instant::now() + limits::FAREWELL);
            self.aborted.cancel();
        }
    }

    /// Resolves when it ends.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let (aborted, until) = (self.aborted.clone(), self.until);
        async move {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => {
                    aborted.cancelled().await;
                    tokio::time::sleep(limits::FAREWELL).await;
                }
            }
        }
    }
}

impl Session {
    /// The time of extensions is over: the rest happens without them.
    pub(in crate::session) async fn cut_off(&mut self) {
        self.extensions.abort_run(self.machine.is_idle());
        self.extensions.links.registered.clear();
        self.extensions.hooks.mute();
        self.sync_hooks();
        // A call that hooks should check does not run without them.
        let is_skipped = |then: &Then| matches!(then, Then::Hooks(_, point) if !matches!(**point, HookPoint::ToolCall { .. }));
        for then in self.extensions.questions.give_up(is_skipped) {
            if let Then::Hooks(ticket, _) = then {
                self.drive(Input::HooksDone(ticket, HooksOutcome::Unchanged))
                    .await;
            }
        }
        for then in self.extensions.questions.give_up(|_| true) {
            self.refuse(then).await;
        }
        self.extensions.client_requests.refuse_all().await;
        self.extensions.providers.refuse_all().await;
    }
}
