//! Waiting for the next thing to deal with.

use std::time::Duration;

use llm::ModelEvent;

use crate::requests::{RequestReceiver, SessionRequest};

use super::Session;
use super::clock::now_ms;
use super::dialogs::{Answer, DialogEvent};
use super::extensions::ExtensionEvent;
use super::mcp::McpEvent;
use super::model_probes::Probed;
use super::model_request::RunningRequest;
use super::permission_wait::Asking;
use super::summaries::{Summarised, Summarising};
use super::tool_calls::CallReport;
use super::user_shells::ShellReport;

/// A thing to deal with.
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
    Closed,
}

impl Session {
    /// Waits for the first event. Ordinary requests wait while a session change waits for the run to end.
    pub(super) async fn next(&mut self, requests: Option<&mut RequestReceiver>) -> Wakeup {
        let urgent_only = self.holds_mail();
        let (answering, timer) = (&mut self.answering, &mut self.retry_timer);
        let summarising = &mut self.summarising;
        let asking = &mut self.permitting.asking;
        let todo = self.machine.todos().next_due();
        let deadline = self.machine.deadline();
        let storage = self.conversation.log.retry_due();
        let processes = self.tools.processes();
        // In turns (not biased), so that neither a flood of commands nor one of deltas keeps the others waiting.
        tokio::select! {
            mail = next_mail(requests, urgent_only) => mail.map_or(Wakeup::Closed, Wakeup::SessionRequest),
            report = self.calls.next() => Wakeup::Call(report),
            report = self.shells.next() => Wakeup::Shell(report),
            events = next_events(answering) => Wakeup::Model(events),
            summarised = summaries(summarising) => Wakeup::Summarised(summarised),
            event = self.dialogs.next() => Wakeup::Dialog(event),
            news = self.extensions.next() => Wakeup::Extension(news),
            event = self.mcp.next() => Wakeup::Mcp(event),
            Some(()) = self.queries.next() => Wakeup::Queried,
            Some(probed) = self.probes.next() => Wakeup::Probed(Box::new(probed)),
            answer = permission(asking) => Wakeup::Permission(answer),
            () = due(timer) => Wakeup::RetryDue,
            () = at(deadline) => Wakeup::TimeLimit,
            () = storage => Wakeup::StorageDue,
            () = at(todo) => Wakeup::TodoDue,
            () = processes.exited() => Wakeup::ProcessExited,
        }
    }
}

/// SessionRequest, as long as there may be some.
async fn next_mail(requests: Option<&mut RequestReceiver>, urgent_only: bool) -> Option<SessionRequest> {
    match requests {
        Some(requests) => requests.next(urgent_only).await,
        None => std::future::pending().await,
    }
}

async fn next_events(answering: &mut Option<RunningRequest>) -> Vec<ModelEvent> {
    if let Some(answering) = answering
        && let Some(events) = answering.next().await
    {
        return events;
    }
    std::future::pending().await
}

async fn due(timer: &mut Option<std::pin::Pin<Box<tokio::time::Sleep>>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}

/// Waits for a time (Unix milliseconds), if there is one.
async fn at(time: Option<i64>) {
    match time {
        Some(time) => {
            let wait = u64::try_from(time.saturating_sub(now_ms())).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        None => std::future::pending().await,
    }
}

async fn permission(asking: &mut Option<Asking>) -> Answer {
    match asking {
        Some(asking) => asking.answer().await,
        None => std::future::pending().await,
    }
}

async fn summaries(summarising: &mut Option<Summarising>) -> Summarised {
    match summarising {
        Some(summarising) => summarising.done().await,
        None => std::future::pending().await,
    }
}
