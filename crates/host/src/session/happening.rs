//! Waiting for the next thing to deal with.

use std::time::Duration;

use llm::ModelEvent;

use crate::mail::{Mail, Mailbox};

use super::Session;
use super::answering::Answering;
use super::dialogs::{Answer, News};
use super::drive::now_ms;
use super::extensions;
use super::mcp;
use super::modelling::Probed;
use super::permitting::Asking;
use super::shell::ShellReport;
use super::summarising::{Summarised, Summarising};
use super::tool_calls::CallReport;

/// A thing to deal with.
pub(super) enum Happening {
    Mail(Mail),
    Model(Vec<ModelEvent>),
    Call(CallReport),
    Shell(ShellReport),
    Summarised(Summarised),
    Dialog(News),
    Permission(Answer),
    Extension(extensions::News),
    Mcp(mcp::News),
    /// A local server was asked about a model.
    Probed(Box<Probed>),
    RetryDue,
    /// Entries that wait may be written again.
    StorageDue,
    TodoDue,
    Closed,
}

impl Session {
    /// Waits for whatever comes first. Ordinary mail waits while a session change waits for the run to end.
    pub(super) async fn next(&mut self, mailbox: Option<&mut Mailbox>) -> Happening {
        let urgent_only = self.holds_mail();
        let (answering, timer) = (&mut self.answering, &mut self.retry_timer);
        let summarising = &mut self.summarising;
        let asking = &mut self.permitting.asking;
        let todo = self.machine.todos().next_due();
        let storage = self.log.retry_due();
        // In turns (not biased), so that neither a flood of commands nor one of deltas keeps the others waiting.
        tokio::select! {
            mail = next_mail(mailbox, urgent_only) => mail.map_or(Happening::Closed, Happening::Mail),
            report = self.calls.next() => Happening::Call(report),
            Some(report) = self.shells.reports.recv() => Happening::Shell(report),
            events = next_events(answering) => Happening::Model(events),
            summarised = summaries(summarising) => Happening::Summarised(summarised),
            news = self.dialogs.next() => Happening::Dialog(news),
            news = self.extensions.next() => Happening::Extension(news),
            news = self.mcp.next() => Happening::Mcp(news),
            Some(probed) = self.probes.next() => Happening::Probed(Box::new(probed)),
            answer = permission(asking) => Happening::Permission(answer),
            () = due(timer) => Happening::RetryDue,
            () = storage => Happening::StorageDue,
            () = at(todo) => Happening::TodoDue,
        }
    }
}

/// Mail, as long as there may be some.
async fn next_mail(mailbox: Option<&mut Mailbox>, urgent_only: bool) -> Option<Mail> {
    match mailbox {
        Some(mailbox) => mailbox.next(urgent_only).await,
        None => std::future::pending().await,
    }
}

async fn next_events(answering: &mut Option<Answering>) -> Vec<ModelEvent> {
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
