//! Events of a session as they come.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::event::Event;

/// Events of a session.
#[derive(Debug)]
pub struct Events {
    receiver: mpsc::Receiver<Event>,
    end: Arc<Mutex<Option<Error>>>,
    idle: Duration,
}

impl Events {
    pub(crate) fn new(
        receiver: mpsc::Receiver<Event>,
        end: Arc<Mutex<Option<Error>>>,
        idle: Duration,
    ) -> Self {
        Self { receiver, end, idle }
    }

    /// The longest silence.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// The next event; none when the session was closed. What came before an error is given out first.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Lagged`], and [`Error::Exited`] or [`Error::Protocol`] when the agent is gone.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        let event = timeout(self.idle, self.receiver.recv())
            .await
            .map_err(|_| Error::timed_out("no event", self.idle))?;
        if event.is_some() {
            return Ok(event);
        }
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).clone();
        end.map_or(Ok(None), Err)
    }
}
