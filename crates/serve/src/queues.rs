//! Merges the outgoing queues of all sessions. Sessions take turns, so that a flood in one session does not delay the others.
//! Sessions can join at any time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{FusedStream, SelectAll, Stream, StreamExt};
use session::{Lane, Outgoing};
use tokio::sync::mpsc;

/// Something to write, or a change of who writes.
#[derive(Debug)]
pub enum QueueItem {
    /// A session said this; none is the first.
    Item(Option<Arc<str>>, Outgoing),
    /// A session joined.
    Joined(Arc<str>),
    /// A session has said its last.
    Left(Arc<str>),
}

/// All queues.
#[derive(Debug)]
pub struct SessionQueues {
    queues: SelectAll<Queue>,
    /// Sessions that join; none once that is impossible.
    joining: Option<mpsc::Receiver<Lane>>,
}

/// The queue of one session.
#[derive(Debug)]
struct Queue {
    session: Option<Arc<str>>,
    items: Option<mpsc::Receiver<Outgoing>>,
}

impl SessionQueues {
    /// The first session's queue, and where others come from.
    pub fn new(first: mpsc::Receiver<Outgoing>, joining: Option<mpsc::Receiver<Lane>>) -> Self {
        let mut queues = SelectAll::new();
        queues.push(Queue {
            session: None,
            items: Some(first),
        });
        Self { queues, joining }
    }

    /// The next thing; none when every session has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<QueueItem> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    /// The next thing, if it is there already.
    pub fn try_next(&mut self) -> Option<QueueItem> {
        // A no-op waker suffices: a caller that finds nothing waits with `next`, which registers its own.
        let mut context = Context::from_waker(std::task::Waker::noop());
        match self.poll(&mut context) {
            Poll::Ready(said) => said,
            Poll::Pending => None,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<QueueItem>> {
        // Before the queues: a session that floods its own must not keep another one from joining.
        if let Some(joining) = &mut self.joining {
            match joining.poll_recv(context) {
                Poll::Ready(Some(Lane { session, queue })) => {
                    // Returned before the queue is polled, so the connection knows the session before its first event.
                    self.queues.push(Queue {
                        session: Some(Arc::clone(&session)),
                        items: Some(queue),
                    });
                    return Poll::Ready(Some(QueueItem::Joined(session)));
                }
                Poll::Ready(None) => self.joining = None,
                Poll::Pending => {}
            }
        }
        loop {
            let said = match self.queues.poll_next_unpin(context) {
                Poll::Ready(said) => said,
                Poll::Pending => return Poll::Pending,
            };
            return match said {
                // The stream has not ended while a session may still join.
                None if self.joining.is_some() => Poll::Pending,
                // A session of this name is there again already: to those who write it is one.
                Some(QueueItem::Left(session)) if self.has(&session) => continue,
                said => Poll::Ready(said),
            };
        }
    }

    /// Returns true if a session of this name still has output.
    fn has(&self, session: &Arc<str>) -> bool {
        self.queues
            .iter()
            .any(|queue| queue.session.as_ref() == Some(session))
    }
}

impl Stream for Queue {
    type Item = QueueItem;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<QueueItem>> {
        let Some(items) = &mut self.items else {
            return Poll::Ready(None);
        };
        match items.poll_recv(context) {
            Poll::Ready(Some(item)) => Poll::Ready(Some(QueueItem::Item(self.session.clone(), item))),
            // The end of a queue becomes its last item: everything that the session said has been written by then.
            Poll::Ready(None) => {
                self.items = None;
                Poll::Ready(self.session.take().map(QueueItem::Left))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl FusedStream for Queue {
    fn is_terminated(&self) -> bool {
        self.items.is_none()
    }
}
