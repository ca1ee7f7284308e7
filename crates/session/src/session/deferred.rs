//! What the session does once it is idle. When each of them may run, and what waits behind it, is decided by
//! [`agent::Deferred`].

use std::sync::Arc;

use agent::{Condition, Order, Readiness};
use wire::command::{NavigateParams, PromptParams};
use wire::reply::{Accepted, Commands, Navigated};
use wire::table::Respond;
use wire::{CustomMessage, Message, SessionCommand, UserContent};

use crate::outbox::{Origin, Responder};
use crate::strings;

use super::Session;
use super::asker::Asker;
use super::clock::now_ms;
use super::compaction::Asked;
use super::extensions::Saying;
use super::session_change::{Change, ChangeAsker};
use super::tool_calls::Exits;

/// The type of the message with which the model hears of ended processes.
const EXIT_MESSAGE: &str = "process_exit";

/// What waits for the session to be idle.
pub(super) enum DeferredAction {
    /// The answer to an abort.
    Respond(Responder<()>),
    /// A prompt that ends the run before it.
    Prompt(Responder<Accepted>, PromptParams),
    /// A compaction.
    Compact(Asked),
    /// Another place of the tree.
    Move(Asker<Navigated>, NavigateParams),
    /// Another session.
    Change(ChangeAsker, Change),
    /// A command that came while extensions were being loaded.
    Held(Origin, Box<SessionCommand>),
    /// The response to `reload_resources`, which lists the loaded resources.
    Reloaded(Responder<Commands>),
    /// A prompt of an extension.
    Say(Box<Saying>),
    /// A run that an extension begins.
    Turn(Vec<Arc<Message>>),
    /// A compaction that an extension wants; the id of its call.
    CompactFor(Option<u64>, Option<String>),
    /// The answer to an extension that waits for the session to be idle.
    Idle(Option<u64>),
}

impl DeferredAction {
    /// The condition that the action waits for, and whether later commands wait for the action.
    fn rules(&self) -> (Condition, Order) {
        match self {
            Self::Respond(_) | Self::CompactFor(..) | Self::Idle(_) => (Condition::Idle, Order::Passes),
            Self::Prompt(..) | Self::Compact(_) | Self::Move(..) => (Condition::Idle, Order::Holds),
            // Commands of the user belong to the session they were typed in; they are being killed and end in a moment.
            Self::Change(_, change) if change.ends_shells() => (Condition::ShellsEnded, Order::Holds),
            Self::Change(..) => (Condition::Idle, Order::Holds),
            Self::Held(..) | Self::Reloaded(_) => (Condition::Loaded, Order::Holds),
            Self::Say(_) => (Condition::CommandAnswered, Order::Holds),
            Self::Turn(_) => (Condition::CommandAnswered, Order::Passes),
        }
    }
}

impl Session {
    /// Does something once the session is idle.
    pub(super) fn defer(&mut self, action: DeferredAction) {
        let (condition, order) = action.rules();
        self.deferred.push(condition, order, action);
    }

    /// Does something before everything else that waits.
    pub(super) fn defer_first(&mut self, action: DeferredAction) {
        let (condition, order) = action.rules();
        self.deferred.push_first(condition, order, action);
    }

    /// Returns true while ordered commands wait: while a session change or a prompt waits for the run before it, later commands must
    /// not overtake it.
    pub(super) fn holds_mail(&self) -> bool {
        self.deferred.holds()
            || self.extensions.holds_mail()
            || self.mcp.is_asking()
            // A prompt behind `set_model` is for the new model.
            || self.probes.are_running()
    }

    fn readiness(&self) -> Readiness {
        Readiness {
            is_idle: self.machine.is_idle() && !self.machine.is_holding() && !self.extensions.holds_mail(),
            is_loading: self.extensions.is_opening() || self.mcp.is_connecting(),
            runs_shells: self.shells.are_running(),
            is_answering: self.extensions.is_answering_first(),
        }
    }

    /// Does what waited for the session to be idle.
    pub(super) async fn catch_up(&mut self) {
        while self.machine.is_idle() {
            let readiness = self.readiness();
            if !readiness.is_idle {
                break;
            }
            self.shells.store(&mut self.conversation.log, &self.outbox).await;
            match self.deferred.next(readiness) {
                None => {
                    wake(self).await;
                    break;
                }
                Some(action) => self.run_deferred(action).await,
            }
        }
    }

    async fn run_deferred(&mut self, action: DeferredAction) {
        match action {
            DeferredAction::Respond(responder) => responder.respond(Ok(())).await,
            DeferredAction::Prompt(responder, params) => self.prompt(responder, params).await,
            DeferredAction::Compact(asked) => self.compact_now(asked).await,
            DeferredAction::Move(asker, params) => self.move_if_allowed(asker, params).await,
            DeferredAction::Change(asker, change) => self.leave(asker, change).await,
            DeferredAction::Held(origin, command) => command.dispatch(self, origin).await,
            DeferredAction::Reloaded(responder) => responder.respond(Ok(self.commands())).await,
            DeferredAction::Say(saying) => self.say(*saying).await,
            DeferredAction::Turn(messages) => self.begin_run(messages).await,
            DeferredAction::CompactFor(id, instructions) => self.compact_for(id, instructions).await,
            DeferredAction::Idle(id) => self.answer_later(id, Ok(serde_json::Value::Null)),
        }
    }
}

/// Begins a run if processes have ended that the model does not know of. The session is idle, and nothing waits.
async fn wake(session: &mut Session) {
    let text = match session.tools.processes().take_exits() {
        Exits::None => return,
        Exits::TooMany(most) => {
            let notice = strings::too_many_wakeups(most);
            return session.outbox.notice("warning", notice).await;
        }
        Exits::Some(text) => text,
    };
    if let Err(reason) = session.check_model() {
        let notice = strings::not_woken(&reason);
        return session.outbox.notice("warning", notice).await;
    }
    let message = Message::Custom(CustomMessage {
        custom_type: EXIT_MESSAGE.to_owned(),
        content: UserContent::Text(text),
        display: true,
        details: None,
        timestamp: now_ms(),
        extra: wire::Extra::default(),
    });
    session.begin_run(vec![Arc::new(message)]).await;
}
