//! Sessions that wait for a place among the open ones, and which open session is asked to leave for them. Waiting is bounded in
//! number and time. The first to wait is the first served.
//!
//! Nothing here opens or evicts a session: that is done in `eviction`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use wire::command::OpenSessionParams;
use wire::reply::OpenedSession;

use crate::limits;
use crate::outbox::Responder;
use crate::requests::{QueuedRequest, RequestSender, SessionRequest};
use crate::retired::Retired;

/// What a waiting session is.
pub(super) enum Awaited {
    /// A session that a client wants to open.
    New(Responder<OpenedSession>, OpenSessionParams),
    /// An evicted session with a request.
    Evicted,
}

/// A session that waits for a place.
pub(super) struct Waiter {
    pub(super) handle: Arc<str>,
    pub(super) awaited: Awaited,
    /// Requests for it so far, in order.
    pub(super) requests: Vec<QueuedRequest>,
    pub(super) until: Instant,
}

/// A session that was asked whether it can be evicted.
pub(super) struct Asked {
    pub(super) handle: Arc<str>,
    wait: oneshot::Receiver<Option<Box<Retired>>>,
    answer: Option<Box<Retired>>,
    until: Instant,
}

impl Asked {
    /// Asks a session; `None` if it has ended, or if its queue is full, which means work.
    pub(super) fn new(handle: Arc<str>, slot: &RequestSender) -> Option<Self> {
        let (sender, wait) = oneshot::channel();
        slot.try_send(SessionRequest::Retire(sender)).then(|| Self {
            handle,
            wait,
            answer: None,
            until: Instant::now() + limits::RETIRE_WAIT,
        })
    }

    /// Waits, with a limit, until the session has answered. Cancel-safe.
    pub(super) async fn answered(&mut self) {
        // A receiver must not be polled again once it has returned its value.
        if self.answer.is_some() {
            return;
        }
        // A fixed time: the caller drops this future and makes it again with each of its wake-ups.
        if let Ok(Ok(answer)) = tokio::time::timeout_at(self.until.into(), &mut self.wait).await {
            self.answer = answer;
        }
    }

    /// The state of the session if it has agreed and ends. Otherwise it stays open.
    pub(super) fn take(mut self) -> Option<Box<Retired>> {
        // Closed before the last look: a session that answers after it stays open, since its answer cannot be sent.
        self.wait.close();
        self.answer.or_else(|| self.wait.try_recv().ok().flatten())
    }
}

/// How far the search for a session that can be evicted is.
#[derive(Default)]
enum Search {
    #[default]
    Off,
    /// Open sessions that are still to be asked, the least recently used one first.
    Round(VecDeque<Arc<str>>),
    /// All have refused; the next round begins then.
    Pause(Instant),
}

/// The sessions that wait for a place, and the search for one.
#[derive(Default)]
pub(super) struct Room {
    waiters: VecDeque<Waiter>,
    search: Search,
    asked: Option<Asked>,
}

impl Room {
    /// Returns true while nothing waits and no session is being asked.
    pub(super) fn is_idle(&self) -> bool {
        self.waiters.is_empty() && self.asked.is_none()
    }

    /// How many sessions wait.
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    /// Returns true while the answer of a session is awaited.
    pub(super) fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns true while a session of this handle waits.
    pub(super) fn awaits(&self, handle: &str) -> bool {
        self.waiters.iter().any(|waiter| &*waiter.handle == handle)
    }

    /// The waiting session of a handle.
    pub(super) fn waiter(&mut self, handle: &str) -> Option<&mut Waiter> {
        self.waiters.iter_mut().find(|waiter| &*waiter.handle == handle)
    }

    /// Adds a session at the end of the queue; returns true if it is the only one.
    ///
    /// # Errors
    /// Gives it back when too many wait.
    pub(super) fn join(&mut self, waiter: Waiter) -> Result<bool, Box<Waiter>> {
        if self.waiters.len() >= limits::ROOM_WAITERS {
            return Err(waiter.into());
        }
        self.waiters.push_back(waiter);
        Ok(self.waiters.len() == 1)
    }

    /// Ends the wait of a session.
    pub(super) fn withdraw(&mut self, handle: &str) -> Option<Waiter> {
        let at = self.waiters.iter().position(|waiter| &*waiter.handle == handle)?;
        self.waiters.remove(at)
    }

    /// The session that has waited longest, if it has waited too long.
    pub(super) fn overdue(&mut self) -> Option<Waiter> {
        // All wait equally long, so the first one is the first to be overdue.
        self.waiters.pop_front_if(|waiter| waiter.until <= Instant::now())
    }

    /// The session that has waited longest.
    pub(super) fn first(&mut self) -> Option<Waiter> {
        self.waiters.pop_front()
    }

    /// The session to ask next, of the list that `open` makes at the start of a round; `None` between two rounds.
    pub(super) fn candidate(&mut self, open: impl FnOnce() -> VecDeque<Arc<str>>) -> Option<Arc<str>> {
        let mut left = match std::mem::take(&mut self.search) {
            Search::Round(left) => left,
            Search::Pause(due) if due > Instant::now() => {
                self.search = Search::Pause(due);
                return None;
            }
            Search::Pause(_) | Search::Off => open(),
        };
        let next = left.pop_front();
        self.search = match next {
            Some(_) => Search::Round(left),
            None => Search::Pause(Instant::now() + limits::ROOM_PAUSE),
        };
        next
    }

    /// Notes which session is being asked; returns false for `None`.
    pub(super) fn ask(&mut self, asked: Option<Asked>) -> bool {
        self.asked = asked;
        self.is_asking()
    }

    /// Takes back the question to this session, or to any session for `None`.
    pub(super) fn take_asked(&mut self, handle: Option<&str>) -> Option<Asked> {
        self.asked
            .take_if(|asked| handle.is_none_or(|handle| &*asked.handle == handle))
    }

    /// Lets nothing wait much longer, since the client is gone.
    pub(super) fn hurry(&mut self) {
        let end = Instant::now() + limits::RETIRE_HOLD;
        for waiter in &mut self.waiters {
            waiter.until = waiter.until.min(end);
        }
    }

    /// Ends the search when nothing waits any more.
    pub(super) fn rest(&mut self) {
        self.search = Search::Off;
    }

    /// Waits until the search goes on: the session that was asked has answered, the next round is due, a session has waited too
    /// long, or a place is free anyway. Cancel-safe.
    pub(super) async fn changed(&mut self, has_place: bool) {
        // The first one is the first to have waited too long.
        let overdue = self.waiters.front().map(|first| first.until);
        match (&mut self.asked, &self.search) {
            _ if has_place => {}
            (Some(asked), _) => match overdue {
                Some(overdue) => {
                    let _late = tokio::time::timeout_at(overdue.into(), asked.answered()).await;
                }
                None => asked.answered().await,
            },
            (None, Search::Pause(due)) => tokio::time::sleep_until((*due).into()).await,
            // No session is asked and no pause is due, so the search goes on at once.
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn overdue_session_does_not_wait_for_answer() {
        let mut room = Room::default();
        let waiter = Waiter {
            handle: "waits".into(),
            awaited: Awaited::Evicted,
            requests: Vec::new(),
            until: Instant::now(),
        };
        assert!(room.join(waiter).is_ok());
        let (_hangs, wait) = oneshot::channel();
        let asked = Asked {
            handle: "hangs".into(),
            wait,
            answer: None,
            until: Instant::now() + Duration::from_secs(600),
        };
        assert!(room.ask(Some(asked)));
        let changed = tokio::time::timeout(Duration::from_secs(30), room.changed(false)).await;
        assert!(changed.is_ok() && room.overdue().is_some());
    }
}
