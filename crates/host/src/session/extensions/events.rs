//! What extensions hear of a run. They hear of it before the client does (dialects.md 10.3): an event that somebody listens to
//! is told when its handlers are done, and what comes after it waits for that. Deltas do not wait, and once the run is aborted
//! nothing does for longer than a moment. Events that nobody listens to never leave the process.

use std::collections::VecDeque;

use pinion_core::{Effect, Input};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::Event;

use crate::limits;

use super::super::Session;
use super::super::drive::now_ms;
use super::{Extended, Then, put};

impl Extended {
    /// Is there somebody who is not only told?
    fn waits_for(&self, name: &str) -> bool {
        self.process_hears(name) || self.hooks.answers(name)
    }

    /// Does an event wait for its handlers?
    pub(in crate::session) fn is_telling(&self) -> bool {
        self.waits
            .values()
            .any(|wait| matches!(wait.then, Then::Tell(_) | Then::Persist(_) | Then::Settle(_)))
    }
}

/// How long a run waits for its extensions: as long as they take, and a moment once it is aborted.
#[derive(Debug, Default)]
pub(super) struct Patience {
    aborted: CancellationToken,
    /// When it ends, once the run is aborted.
    until: Option<Instant>,
}

impl Patience {
    /// The run is aborted.
    fn end(&mut self) {
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

/// What is still to be done, in order. It only piles up while an event waits for its handlers.
#[derive(Default)]
pub(in crate::session) struct Agenda {
    pub(in crate::session) effects: VecDeque<Effect>,
    pub(in crate::session) inputs: VecDeque<Input>,
}

impl Agenda {
    pub(in crate::session) fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.inputs.is_empty()
    }
}

impl Session {
    /// Tells extensions of an event. What comes back is still to be told to the client; nothing does when its handlers are
    /// waited for.
    pub(in crate::session) fn tell_extensions(&mut self, event: Event) -> Option<Event> {
        match &event {
            Event::AgentStart => self.extensions.turn = 0,
            Event::TurnEnd { .. } => self.extensions.turn += 1,
            // They have seen it, and changed it perhaps.
            Event::MessageEnd { .. } if std::mem::take(&mut self.extensions.ended) => return Some(event),
            _ => {}
        }
        let event = self.settle(event)?;
        let name = event.name();
        if !self.extensions.hear(name) {
            return Some(event);
        }
        let told = self.shown(&event);
        if is_awaited(&event) && self.extensions.waits_for(name) {
            self.ask_extensions(name, &told, Then::Tell(event));
            return None;
        }
        self.tell_only(name, &told);
        Some(event)
    }

    /// The run is aborted: nothing waits for handlers any more.
    pub(in crate::session) async fn stop_waiting(&mut self) {
        if let Some(door) = &self.extensions.door {
            door.abort(&self.extensions.handle);
        }
        if !self.machine.is_idle() {
            self.extensions.patience.end();
        }
        for then in self.extensions.give_up(|then| matches!(then, Then::Tell(_))) {
            if let Then::Tell(event) = then {
                self.outbox.tell(event).await;
            }
        }
    }

    /// Extensions have had their time: what is left to be done is done without them.
    pub(in crate::session) async fn cut_off(&mut self) {
        self.stop_waiting().await;
        self.extensions.registered.clear();
        self.extensions.hooks.mute();
        for then in self
            .extensions
            .give_up(|then| matches!(then, Then::Persist(_) | Then::Settle(_) | Then::Answer(_)))
        {
            match then {
                Then::Persist(message) => drop(self.persist(message).await),
                Then::Settle(event) => self.outbox.tell(event).await,
                Then::Answer(input) => self.step(input),
                _ => {}
            }
        }
        self.carry_on().await;
        for then in self.extensions.give_up(|_| true) {
            self.refuse(then).await;
        }
    }

    /// The event as extensions know it.
    fn shown(&self, event: &Event) -> Value {
        let mut shown = serde_json::to_value(event).unwrap_or_default();
        let turn = self.extensions.turn;
        match event {
            Event::TurnStart => put(&mut shown, "timestamp", json!(now_ms())),
            Event::TurnEnd {
                message,
                tool_results,
            } => {
                put(&mut shown, "turnIndex", json!(turn.saturating_sub(1)));
                self.shown_boundary(&mut shown, message, tool_results);
                return shown;
            }
            Event::MessageUpdate { .. } => {
                let message = self.answering.as_ref().and_then(|answering| answering.so_far());
                put(&mut shown, "message", json!(message));
                return shown;
            }
            _ => return shown,
        }
        put(&mut shown, "turnIndex", json!(turn));
        shown
    }
}

/// Do client and run wait for the handlers of an event?
fn is_awaited(event: &Event) -> bool {
    !matches!(
        event,
        Event::MessageUpdate { .. } | Event::ToolExecutionUpdate { .. }
    )
}
