//! Updates of a call that must not be lost, such as the pieces of an answer. Their reader must not block the other
//! lines of the process, so they are queued up to a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::sync::mpsc;

use crate::limits;

/// The end that takes. Gives `None` when the call has ended.
#[derive(Debug)]
pub struct Updates {
    queue: mpsc::UnboundedReceiver<(Value, usize)>,
    waiting: Arc<AtomicUsize>,
}

/// The end that gives.
#[derive(Debug)]
pub(super) struct UpdateSender {
    /// Bounded by `waiting`, not by its count.
    queue: mpsc::UnboundedSender<(Value, usize)>,
    waiting: Arc<AtomicUsize>,
}

/// Both ends.
pub(super) fn updates_channel() -> (UpdateSender, Updates) {
    let (sender, queue) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let sender = UpdateSender {
        queue: sender,
        waiting: Arc::clone(&waiting),
    };
    (sender, Updates { queue, waiting })
}

impl UpdateSender {
    /// Hands an update on. False when too many wait already.
    pub(super) fn push(&self, value: Value, size: usize) -> bool {
        let waiting = self.waiting.fetch_add(size, Ordering::Relaxed);
        if waiting + size > limits::STREAM_BYTES {
            return false;
        }
        // Who does not listen any more has cancelled, too.
        let _gone = self.queue.send((value, size));
        true
    }
}

impl Updates {
    /// The next update.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Value>> {
        let taken = std::task::ready!(self.queue.poll_recv(context));
        Poll::Ready(taken.map(|(value, size)| {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            value
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn updates_are_bounded_and_kept_in_order() {
        let (sender, mut updates) = updates_channel();
        assert!(sender.push(Value::from(1), limits::STREAM_BYTES));
        assert!(!sender.push(Value::from(2), 1));
        let first = std::future::poll_fn(|context| updates.poll_next(context)).await;
        assert_eq!(first, Some(Value::from(1)));
        drop(sender);
        assert_eq!(
            std::future::poll_fn(|context| updates.poll_next(context)).await,
            None
        );
    }
}
