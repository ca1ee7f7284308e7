//! Which session hears what a child says of its own accord.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::limits;

use super::message::ProcessMessage;

/// Channels for the lines of a child: one per session, one for the rest.
#[derive(Debug)]
pub(super) struct Routes {
    /// For what belongs to no session.
    rest: mpsc::Sender<ProcessMessage>,
    sessions: Mutex<HashMap<String, mpsc::Sender<ProcessMessage>>>,
}

impl Routes {
    /// What belongs to no session goes to `rest`.
    pub(super) fn new(rest: mpsc::Sender<ProcessMessage>) -> Self {
        Self {
            rest,
            sessions: Mutex::default(),
        }
    }

    /// Returns the channel for lines about a session.
    pub(super) fn attach(&self, session: &str) -> mpsc::Receiver<ProcessMessage> {
        let (sender, receiver) = mpsc::channel(limits::SAID);
        self.sessions().insert(session.to_owned(), sender);
        receiver
    }

    /// Closes the channel of a session.
    pub(super) fn detach(&self, session: &str) {
        self.sessions().remove(session);
    }

    /// Delivers a line. Waits while its session is behind, which slows down a child that floods. Drops lines about
    /// unknown sessions: they have been closed.
    pub(super) async fn say(&self, session: Option<&str>, said: ProcessMessage) {
        let to = match session {
            Some(session) => self.sessions().get(session).cloned(),
            None => Some(self.rest.clone()),
        };
        if let Some(to) = to {
            let _nobody_listens = to.send(said).await;
        }
    }

    /// Puts a warning of the agent itself into the log, without waiting. It is lost while the log is behind.
    pub(super) fn warn(&self, text: String) {
        let _behind = self.rest.try_send(ProcessMessage::Log("warn".to_owned(), text));
    }

    /// The child does not wait for the answer to one of its calls any more. It does not say whose that was, so everybody hears it;
    /// ids are never used twice.
    pub(super) async fn withdraw(&self, id: u64) {
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        for sender in sessions {
            let _nobody_listens = sender.send(ProcessMessage::Withdrawn(id)).await;
        }
    }

    /// The child is gone: everybody hears it, and nothing after it.
    pub(super) async fn close(&self, reason: &str) {
        let sessions: Vec<_> = self.sessions().drain().map(|(_, sender)| sender).collect();
        for sender in sessions {
            let _nobody_listens = sender.send(ProcessMessage::Gone(reason.to_owned())).await;
        }
        let _nobody_listens = self.rest.send(ProcessMessage::Gone(reason.to_owned())).await;
    }

    /// A table has no broken state, so a poisoned lock is as good as any.
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<ProcessMessage>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
