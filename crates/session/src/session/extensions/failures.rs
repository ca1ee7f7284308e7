//! Failures of extensions that the session survives: they are reported to clients as `extension_error`.

use extensions::line::Failure;
use tokio::sync::mpsc;
use wire::Event;

use crate::limits;
use crate::outbox::Outbox;

/// Failures that happen in tasks, on the way to the session. A full channel drops the newest ones: they repeat the others.
#[derive(Debug)]
pub(crate) struct Failures {
    sender: mpsc::Sender<Failure>,
    receiver: mpsc::Receiver<Failure>,
}

impl Default for Failures {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(limits::FAILURES);
        Self { sender, receiver }
    }
}

impl Failures {
    /// Waits for the next failure. Cancel-safe.
    pub(super) async fn next(&mut self) -> Failure {
        match self.receiver.recv().await {
            Some(failure) => failure,
            // `self` holds a sender, so the channel stays open.
            None => std::future::pending().await,
        }
    }

    /// A sender for tasks.
    pub(crate) fn sender(&self) -> mpsc::Sender<Failure> {
        self.sender.clone()
    }

    /// Reports a failure in the next turn of the session loop.
    pub(crate) fn push(&self, failure: Failure) {
        // Without waiting: the session itself takes failures out, and would wait for its own loop.
        let _full = self.sender.try_send(failure);
    }
}

/// Tells clients that an extension failed.
pub(crate) async fn report(failure: Failure, outbox: &Outbox) {
    // For the log alone, since the event has no member for it (dialects.md 3).
    if let Some(stack) = &failure.stack {
        tracing::debug!("extension {}: {stack}", failure.path);
    }
    let event = Event::ExtensionError {
        extension_path: failure.path,
        event: failure.event,
        error: failure.error,
    };
    outbox.tell(event).await;
}

/// A failure that the agent itself reports for an extension.
pub(crate) fn failure(path: &str, event: &str, error: impl ToString) -> Failure {
    Failure {
        path: path.to_owned(),
        event: event.to_owned(),
        error: error.to_string(),
        stack: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failures_over_the_bound_are_dropped() {
        let mut failures = Failures::default();
        for n in 0..limits::FAILURES + 5 {
            failures.push(failure("a.ts", "load", n));
        }
        for n in 0..limits::FAILURES {
            assert_eq!(failures.next().await.error, n.to_string());
        }
        failures.push(failure("a.ts", "load", "newest"));
        assert_eq!(failures.next().await.error, "newest", "the surplus is not kept");
    }
}
