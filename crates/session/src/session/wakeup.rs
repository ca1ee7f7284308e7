//! Why the session loop wakes up.

use std::time::Duration;

use llm::ModelEvent;
use wire::{ConnectionCommand, SessionCommand};

use crate::requests::{RequestReceiver, SessionRequest};

use super::cache_warming::WarmingEvent;
use super::clock::now_ms;
use super::dialogs::{Answer, DialogEvent};
use super::extensions::ExtensionEvent;
use super::mcp::McpEvent;
use super::model_probes::Probed;
use super::model_request::RunningRequest;
use super::permission_wait::Asking;
use super::summaries::Summarised;
use super::tool_calls::CallReport;
use super::user_shells::ShellReport;

/// Why the session loop woke up.
pub(super) enum Wakeup {
    SessionRequest(SessionRequest),
    Model(Vec<ModelEvent>),
    Call(CallReport),
    Shell(ShellReport),
    Summarised(Summarised),
    Dialog(DialogEvent),
    Permission(Answer),
    Extension(ExtensionEvent),
    Mcp(McpEvent),
    /// A local server was asked about a model.
    Probed(Box<Probed>),
    /// A read-only command was answered.
    Queried,
    RetryDue,
    /// The active run has reached its limit of time.
    TimeLimit,
    /// Entries that wait may be written again.
    StorageDue,
    TodoDue,
    /// A background process has ended by itself.
    ProcessExited,
    /// A task has sent an event that extensions or hooks listen to.
    ListenersDue,
    /// The entry that is kept in a prompt cache.
    CacheWarming(WarmingEvent),
    Closed,
}

impl Wakeup {
    /// Returns false for what a session can do without the texts of its messages.
    pub(super) fn needs_texts(&self) -> bool {
        match self {
            // These replies need only the parts of a session that are read in any case (docs/internals/decisions/39-texts-on-demand.md).
            Self::SessionRequest(SessionRequest::Command(_, command)) => !matches!(
                command,
                SessionCommand::GetState(_)
                    | SessionCommand::GetContextUsage(_)
                    | SessionCommand::GetCommands(_)
                    | SessionCommand::GetAvailableModels(_)
                    | SessionCommand::GetAvailableThinkingLevels(_)
            ),
            Self::SessionRequest(SessionRequest::Connection(_, command)) => {
                // The snapshot of a replay has all messages.
                matches!(command, ConnectionCommand::Replay(_))
            }
            Self::SessionRequest(
                SessionRequest::Reject(..)
                | SessionRequest::Manager(..)
                | SessionRequest::Frame(_)
                | SessionRequest::Describe(_)
                | SessionRequest::Retire(_),
            )
            | Self::Queried
            | Self::ListenersDue
            | Self::StorageDue
            | Self::Dialog(_)
            | Self::Closed => false,
            // A run that begins because of these loads the texts itself.
            Self::Mcp(_) | Self::ProcessExited => false,
            // The request that it answers was made of the texts.
            Self::Model(_) => false,
            _ => true,
        }
    }

    /// Returns true for a part of an answer that is not its end. It begins and ends nothing that other work waits for.
    pub(super) fn is_within_answer(&self) -> bool {
        matches!(self, Self::Model(events) if !events.last().is_some_and(ModelEvent::is_last))
    }

    /// Returns true for a command that stops what came before it.
    pub(super) fn is_abort(&self) -> bool {
        matches!(
            self,
            Self::SessionRequest(SessionRequest::Command(
                _,
                SessionCommand::Abort(_) | SessionCommand::AbortAndPrompt(_)
            ))
        )
    }

    /// Returns true for wake-ups that are handled although the texts cannot be read. A client can leave the session, and something may wait for
    /// every wake-up that is no request.
    pub(super) fn goes_on_without_texts(&self) -> bool {
        match self {
            Self::SessionRequest(SessionRequest::Command(_, command)) => matches!(
                command,
                SessionCommand::NewSession(_)
                    | SessionCommand::SwitchSession(_)
                    | SessionCommand::CloseSession(_)
                    | SessionCommand::Abort(_)
            ),
            Self::SessionRequest(_) => false,
            _ => true,
        }
    }
}

/// Waits for the next request, forever once no more can come.
pub(super) async fn next_request(
    requests: Option<&mut RequestReceiver>,
    urgent_only: bool,
) -> Option<SessionRequest> {
    match requests {
        Some(requests) => requests.next(urgent_only).await,
        None => std::future::pending().await,
    }
}

pub(super) async fn next_events(answering: &mut Option<RunningRequest>) -> Vec<ModelEvent> {
    // A request that has given its last event is about to be dropped, and must not wake the loop again.
    if let Some(answering) = answering
        && let Some(events) = answering.next().await
    {
        return events;
    }
    std::future::pending().await
}

/// Waits for a timer, if there is one, and takes it: a timer that has fired would wake the session again and again.
pub(super) async fn due(timer: &mut Option<std::pin::Pin<Box<tokio::time::Sleep>>>) {
    match timer {
        Some(sleep) => sleep.as_mut().await,
        None => std::future::pending().await,
    }
    *timer = None;
}

/// Waits for a time (Unix milliseconds), if there is one.
pub(super) async fn at(time: Option<i64>) {
    match time {
        Some(time) => {
            let wait = u64::try_from(time.saturating_sub(now_ms())).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        None => std::future::pending().await,
    }
}

pub(super) async fn permission(asking: &mut Option<Asking>) -> Answer {
    match asking {
        Some(asking) => asking.answer().await,
        None => std::future::pending().await,
    }
}
