//! Events on their way from the outbox to extensions and hooks. Tasks send events, too, but only the session can pass them on: extensions
//! need its state first. So the outbox queues what has listeners, and the session takes it out before it sends them anything else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wire::Event;

use crate::limits;

/// The queue of a session. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListenerQueue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// Names of the events that have listeners; none in a session without extensions and hooks.
    names: Vec<&'static str>,
    events: Vec<Arc<Event>>,
    /// Events that found no room since the last time.
    dropped: usize,
}

impl ListenerQueue {
    /// Says which events have listeners from now on.
    pub(crate) fn listen_to(&self, names: Vec<&'static str>) {
        self.lock().names = names;
    }

    /// Queues an event that has listeners. It never waits: the session itself, which empties the queue, may be the sender.
    pub(crate) fn push(&self, event: &Arc<Event>) {
        let mut queue = self.lock();
        if !queue.names.contains(&event.name()) {
            return;
        }
        if queue.events.len() < limits::LISTENER_EVENTS {
            queue.events.push(Arc::clone(event));
        } else {
            queue.dropped += 1;
        }
        drop(queue);
        self.0.arrived.notify_one();
    }

    /// Takes out all events, and how many found no room.
    pub(crate) fn take(&self) -> (Vec<Arc<Event>>, usize) {
        let mut queue = self.lock();
        (
            std::mem::take(&mut queue.events),
            std::mem::take(&mut queue.dropped),
        )
    }

    /// Returns true if no event waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().events.is_empty()
    }

    /// Waits until events wait. Cancel-safe.
    pub(crate) async fn filled(&self) {
        // The permit of an event that was taken out already ends one turn of this loop without a wait.
        while self.is_empty() {
            self.0.arrived.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Every change is complete in itself, so that the queue stays valid if a holder of the lock panics.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn event() -> Arc<Event> {
        Arc::new(Event::AgentStart)
    }

    #[test]
    fn events_without_listeners_are_not_queued() {
        let queue = ListenerQueue::default();
        queue.push(&event());
        queue.listen_to(vec!["agent_end", "notice"]);
        queue.push(&event());
        assert!(queue.is_empty());
        queue.listen_to(vec!["agent_start"]);
        queue.clone().push(&event());
        assert_eq!(queue.take(), (vec![event()], 0));
        assert_eq!(queue.take(), (Vec::new(), 0));
    }

    #[test]
    fn full_queue_counts_dropped_events() {
        let queue = ListenerQueue::default();
        queue.listen_to(vec!["agent_start"]);
        for _ in 0..limits::LISTENER_EVENTS + 3 {
            queue.push(&event());
        }
        let (events, dropped) = queue.take();
        assert_eq!((events.len(), dropped), (limits::LISTENER_EVENTS, 3));
    }

    #[tokio::test]
    async fn queued_event_ends_one_wait() {
        let queue = ListenerQueue::default();
        queue.listen_to(vec!["agent_start"]);
        let (other, waiting) = (queue.clone(), queue.clone());
        let waiting = tokio::spawn(async move { waiting.filled().await });
        tokio::task::yield_now().await;
        other.push(&event());
        tokio::time::timeout(Duration::from_secs(10), waiting)
            .await
            .unwrap()
            .unwrap();
        // Also for a wait that begins later, as long as the event is there.
        queue.filled().await;
        drop(queue.take());
        let late = tokio::time::timeout(Duration::from_millis(5), queue.filled()).await;
        assert!(late.is_err());
    }
}
