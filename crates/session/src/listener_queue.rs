//! Events on their way from the outbox to extensions and hooks. Tasks send events, too, but only the session can pass them on: extensions
//! need its state first. So the outbox queues what has listeners, and the session takes it out before it sends them anything else.
//! No event is dropped, since a handler may count on each of them: tasks wait while the queue is full.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wire::Event;

use crate::limits;

/// The queue of a session. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListenerQueue {
    shared: Arc<Shared>,
    /// True in a task. The session does not wait for room, since it alone makes room.
    waits: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// Names of the events that have listeners; none in a session without extensions and hooks.
    names: Vec<&'static str>,
    events: Vec<Arc<Event>>,
}

impl ListenerQueue {
    /// The queue for a task that runs concurrently with the session.
    pub(crate) fn for_task(&self) -> Self {
        Self {
            waits: true,
            ..self.clone()
        }
    }

    /// Says which events have listeners from now on.
    pub(crate) fn listen_to(&self, names: Vec<&'static str>) {
        self.lock().names = names;
        self.shared.emptied.notify_waiters();
    }

    /// Queues an event that has listeners. A task waits for room first, with a limit: the session may wait for the end of the task.
    pub(crate) async fn push(&self, event: &Arc<Event>) {
        if self.waits {
            let _late = tokio::time::timeout(limits::LISTENER_WAIT, self.room(event.name())).await;
        }
        let mut queue = self.lock();
        if !queue.names.contains(&event.name()) {
            return;
        }
        if queue.is_full() {
            queue.events.retain(|known| !replaces(event, known));
        }
        queue.events.push(Arc::clone(event));
        drop(queue);
        self.shared.arrived.notify_one();
    }

    /// Waits until the queue has room for an event of this name.
    async fn room(&self, name: &str) {
        loop {
            // Made before the check, so that a change after the check ends the wait.
            let emptied = self.shared.emptied.notified();
            let has_room = {
                let queue = self.lock();
                !queue.is_full() || !queue.names.contains(&name)
            };
            if has_room {
                return;
            }
            emptied.await;
        }
    }

    /// Takes out all events.
    pub(crate) fn take(&self) -> Vec<Arc<Event>> {
        let events = std::mem::take(&mut self.lock().events);
        self.shared.emptied.notify_waiters();
        events
    }

    /// Returns true if no event waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().events.is_empty()
    }

    /// Waits until events wait. Cancel-safe.
    pub(crate) async fn filled(&self) {
        // The permit of an event that was taken out already ends one turn of this loop without a wait.
        while self.is_empty() {
            self.shared.arrived.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Every change is complete in itself, so that the queue stays valid if a holder of the lock panics.
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn is_full(&self) -> bool {
        self.events.len() >= limits::LISTENER_EVENTS
    }
}

/// Returns true if an event says all that an older one says: both are the state so far of the same process or sub-agent.
fn replaces(event: &Event, older: &Event) -> bool {
    match (event, older) {
        (
            Event::ProcessOutput { process_id, .. },
            Event::ProcessOutput {
                process_id: older, ..
            },
        ) => process_id == older,
        (Event::SubagentProgress { payload }, Event::SubagentProgress { payload: older }) => {
            payload.progress.id == older.progress.id
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn event() -> Arc<Event> {
        Arc::new(Event::AgentStart)
    }

    fn output(output_bytes: u64) -> Arc<Event> {
        Arc::new(Event::ProcessOutput {
            process_id: "p".to_owned(),
            output_bytes,
        })
    }

    /// A queue that has as many events as tasks may add.
    async fn full() -> ListenerQueue {
        let queue = ListenerQueue::default();
        queue.listen_to(vec!["agent_start", "process_output"]);
        for _ in 0..limits::LISTENER_EVENTS {
            queue.push(&event()).await;
        }
        queue
    }

    #[tokio::test]
    async fn events_without_listeners_are_not_queued() {
        let queue = ListenerQueue::default();
        queue.push(&event()).await;
        queue.listen_to(vec!["agent_end", "notice"]);
        queue.push(&event()).await;
        assert!(queue.is_empty());
        queue.listen_to(vec!["agent_start"]);
        queue.clone().push(&event()).await;
        assert_eq!(queue.take(), vec![event()]);
        assert!(queue.take().is_empty());
    }

    #[tokio::test]
    async fn session_adds_events_to_full_queue() {
        let queue = full().await;
        queue.push(&event()).await;
        // The newer state says all that the older one said.
        queue.push(&output(1)).await;
        queue.push(&output(2)).await;
        let events = queue.take();
        assert_eq!(events.len(), limits::LISTENER_EVENTS + 2);
        assert_eq!(events.last(), Some(&output(2)));
    }

    #[tokio::test]
    async fn task_waits_until_queue_has_room() {
        let queue = full().await;
        let task = queue.for_task();
        let waiting = tokio::spawn(async move { task.push(&output(1)).await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        assert_eq!(queue.take().len(), limits::LISTENER_EVENTS);
        waiting.await.unwrap();
        assert_eq!(queue.take(), vec![output(1)]);
        // The listeners are gone.
        let queue = full().await;
        let task = queue.for_task();
        let waiting = tokio::spawn(async move { task.push(&output(1)).await });
        tokio::task::yield_now().await;
        queue.listen_to(Vec::new());
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn queued_event_ends_one_wait() {
        let queue = ListenerQueue::default();
        queue.listen_to(vec!["agent_start"]);
        let (other, waiting) = (queue.clone(), queue.clone());
        let waiting = tokio::spawn(async move { waiting.filled().await });
        tokio::task::yield_now().await;
        other.push(&event()).await;
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
