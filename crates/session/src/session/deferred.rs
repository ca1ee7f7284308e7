//! What the session does once it is idle or has loaded. When each of them may run, and what waits behind it, is decided by
//! [`agent::Deferred`].

use std::sync::Arc;

use agent::{Condition, Deferred, Order};
use wire::command::{NavigateParams, PromptParams};
use wire::reply::{Accepted, Commands, Navigated};
use wire::{Message, SessionCommand};

use crate::outbox::{Origin, Responder};

use super::asker::{Asked, Asker};
use super::change_request::{Change, ChangeAsker};
use super::pending_prompt::PendingPrompt;
use super::user_shells::UserShells;

/// What waits for the session to be idle, in order.
pub(super) type DeferredActions = Deferred<DeferredAction>;

/// What waits for the session to be idle.
pub(super) enum DeferredAction {
    /// The answer to an abort.
    Respond(Responder<()>),
    /// A prompt that ends the run before it. Like every prompt it waits for extensions and servers.
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
    ExtensionPrompt(Box<PendingPrompt>),
    /// A run that an extension begins.
    Run(Vec<Arc<Message>>),
    /// A compaction that an extension wants; the id of its call.
    CompactFor(Option<u64>, Option<String>),
    /// The answer to an extension that waits for the session to be idle.
    Idle(Option<u64>),
}

impl DeferredAction {
    /// The condition that the action waits for, and whether later commands wait for the action.
    pub(super) fn rules(&self) -> (Condition, Order) {
        match self {
            // What extensions wait for does not hold back commands of the client (GUARANTEES.md, 32).
            Self::Respond(_) | Self::CompactFor(..) | Self::Idle(_) => (Condition::Idle, Order::Passes),
            Self::Compact(_) | Self::Move(..) => (Condition::Idle, Order::Holds),
            // Commands of the user belong to the session they were typed in; they are being killed and end in a moment.
            Self::Change(_, change) if change.ends_shells() => (Condition::ShellsEnded, Order::Holds),
            // A reload keeps the session, and with it the commands of the user.
            Self::Change(..) => (Condition::Idle, Order::Holds),
            Self::Prompt(..) | Self::Reloaded(_) => (Condition::Loaded, Order::Holds),
            // Extensions are also loaded during a run, when their process has ended. A message for the run must not come after it.
            Self::Held(..) => (Condition::LoadedInRun, Order::Holds),
            // If a slash command sent it, its response comes before the events of the run, unless it takes long (`ANSWER_FIRST`).
            Self::ExtensionPrompt(_) => (Condition::CommandAnswered, Order::Holds),
            Self::Run(_) => (Condition::CommandAnswered, Order::Passes),
        }
    }

    /// Returns true for work that an abort stops. It must not begin after the abort.
    pub(super) fn ends_with_abort(&self) -> bool {
        match self {
            Self::Prompt(..)
            | Self::Compact(_)
            | Self::ExtensionPrompt(_)
            | Self::Run(_)
            | Self::CompactFor(..) => true,
            Self::Held(_, command) => begins_work(command),
            Self::Respond(_) | Self::Move(..) | Self::Change(..) | Self::Reloaded(_) | Self::Idle(_) => false,
        }
    }
}

impl DeferredAction {
    /// Returns true for what an extension wants of the session that has it loaded.
    pub(super) fn is_of_extension(&self) -> bool {
        matches!(
            self,
            Self::ExtensionPrompt(_)
                | Self::Run(_)
                | Self::CompactFor(..)
                | Self::Idle(_)
                | Self::Move(Asker::Extension(_), _)
                | Self::Change(ChangeAsker::Extension(_), _)
        )
    }

    /// Returns true for what the session must do before it ends by itself: a client may wait for the answer.
    pub(super) fn is_owed(&self) -> bool {
        // Without a client, the run that the extension waits for is aborted, which answers it.
        !matches!(self, Self::Idle(_))
    }

    /// Returns true for actions that the end of input refuses. A slash command is still carried out, since it may begin no run; a run
    /// is aborted then.
    pub(super) fn ends_with_input(&self) -> bool {
        self.ends_with_abort() && !self.is_slash_command()
    }

    /// Returns true for a prompt that may be a slash command.
    pub(super) fn is_slash_command(&self) -> bool {
        matches!(self, Self::Held(_, command)
            if matches!(&**command, SessionCommand::Prompt(prompt) if prompt.message.starts_with('/')))
    }
}

/// Returns true for a command whose work an abort stops.
pub(super) fn begins_work(command: &SessionCommand) -> bool {
    // Messages for a queue are not among them: an abort leaves the queues as they are.
    matches!(
        command,
        SessionCommand::Prompt(_)
            | SessionCommand::Continue(_)
            | SessionCommand::Compact(_)
            | SessionCommand::Handoff(_)
    )
}

/// Does something once the session is idle. An action that ends the commands of the user ends them at once, since it waits for
/// their end.
pub(super) fn defer(
    waiting: &mut DeferredActions,
    shells: &mut UserShells,
    action: impl Into<Option<DeferredAction>>,
) {
    let Some(action) = action.into() else { return };
    if let DeferredAction::Change(_, change) = &action
        && change.ends_shells()
    {
        // The change waits for the end of these commands (`Condition::ShellsEnded`), so it would wait as long as they run.
        shells.cancel();
    }
    let (condition, order) = action.rules();
    if matches!(action, DeferredAction::Reloaded(_)) {
        // Commands that came meanwhile depend on the loaded resources.
        waiting.push_first(condition, order, action);
    } else {
        waiting.push(condition, order, action);
    }
}
