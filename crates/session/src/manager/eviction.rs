//! How many sessions stay in memory, and for how long: the least recently used session is evicted when another one needs its
//! place, and idle sessions are evicted after a while. Their handles stay, and the next command to one opens it again. While
//! every open session works, the other one waits (`room`).
//!
//! Only a session itself knows whether it may be evicted (`Session::retired`). The first session is never evicted.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use wire::table::Respond;

use crate::limits;
use crate::outbox::Responder;
use crate::requests::{QueuedRequest, RequestSender, SessionRequest};
use crate::retired::Retired;
use crate::strings;

use super::room::{Asked, Awaited, Waiter};
use super::{SessionManager, Start};

/// How many sessions are kept open in addition to the first, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eviction {
    /// So many at most.
    pub most: usize,
    /// Sessions without a command for this time are evicted; `None`: never.
    pub idle: Option<Duration>,
}

impl Default for Eviction {
    /// All that there may be, for good.
    fn default() -> Self {
        Self {
            most: limits::OPEN_SESSIONS,
            idle: None,
        }
    }
}

/// A session that is open.
pub(super) struct Open {
    pub(super) slot: RequestSender,
    /// When the last command came.
    used: Instant,
    /// Cancelled when nothing of it is left.
    gone: CancellationToken,
}

impl Open {
    pub(super) fn new(slot: RequestSender, gone: CancellationToken) -> Self {
        Self {
            slot,
            used: Instant::now(),
            gone,
        }
    }
}

/// An evicted session.
pub(super) struct Evicted {
    pub(super) retired: Box<Retired>,
    since: Instant,
    /// Cancelled when nothing of it is left: until then its file is locked.
    gone: CancellationToken,
}

impl SessionManager {
    /// When to search for idle sessions; never when they stay.
    pub(super) async fn look_around(idle: Option<Duration>) {
        match idle {
            Some(idle) => {
                // A session stays about a tenth longer than it should, at most.
                tokio::time::sleep((idle / 10).clamp(limits::SWEEP.0, limits::SWEEP.1)).await;
            }
            None => std::future::pending().await,
        }
    }

    /// Evicts idle sessions.
    pub(super) async fn sweep(&mut self) {
        let Some(idle) = self.eviction.idle else { return };
        // Idle sessions are being evicted already, and a session is asked only once at a time.
        if !self.room.is_idle() {
            return;
        }
        let open = self.open.iter();
        let unused: Vec<Arc<str>> = open
            .filter(|(_, open)| open.used.elapsed() >= idle)
            .map(|(handle, _)| Arc::clone(handle))
            .collect();
        for handle in unused {
            if !self.put_away(&handle).await
                && let Some(open) = self.open.get_mut(&handle)
            {
                // Something is under way: its time begins when that was seen last.
                open.used = Instant::now();
            }
        }
    }

    /// Opens a session once there is a place for it. While one is searched for, other sessions get their requests.
    pub(super) async fn wait_for_place(
        &mut self,
        handle: Arc<str>,
        awaited: Awaited,
        request: Option<QueuedRequest>,
    ) {
        let waiter = Waiter {
            handle,
            awaited,
            requests: request.into_iter().collect(),
            until: Instant::now() + limits::ROOM_WAIT,
        };
        // Bounded; too many sessions that wait are refused at once.
        match self.room.join(waiter) {
            Ok(true) => self.serve_waiters().await,
            // Others wait already, and the search for a place goes on for them.
            Ok(false) => return,
            Err(waiter) => return self.no_place_for(*waiter).await,
        }
        // Idle sessions answer at once. Nothing else is delivered meanwhile, so that the commands right behind find the session open.
        let end = tokio::time::Instant::now() + limits::RETIRE_HOLD;
        while self.room.is_asking()
            && tokio::time::timeout_at(end, self.room.changed(false))
                .await
                .is_ok()
        {
            self.serve_waiters().await;
        }
    }

    /// Continues the search for places and opens the sessions that have got one.
    pub(super) async fn serve_waiters(&mut self) {
        // The session that was asked last has answered or takes too long: it leaves, or stays open for this round.
        self.evict_asked(None);
        while let Some(waiter) = self.room.overdue() {
            self.no_place_for(waiter).await;
        }
        loop {
            while self.has_place() {
                let Some(waiter) = self.room.first() else {
                    return self.room.rest();
                };
                self.start(waiter).await;
            }
            if self.room.is_idle() {
                return self.room.rest();
            }
            let open = &self.open;
            let Some(handle) = self.room.candidate(|| by_last_use(open)) else {
                return;
            };
            let asked = open.get(&handle).and_then(|open| Asked::new(handle, &open.slot));
            // A session that cannot be asked has ended or has work, and the next one is asked.
            if self.room.ask(asked) {
                return;
            }
        }
    }

    /// Returns true if one more session may be open.
    pub(super) fn has_place(&self) -> bool {
        self.open.len() < self.eviction.most
    }

    /// Opens a session that has got its place, and passes its requests on.
    async fn start(&mut self, waiter: Waiter) {
        let handle = waiter.handle;
        match waiter.awaited {
            Awaited::New(responder, params) => {
                self.begin(Arc::clone(&handle), Start::Asked(responder, params));
            }
            Awaited::Evicted => {
                if let Some(asleep) = self.asleep.remove(&handle) {
                    self.begin(Arc::clone(&handle), Start::Again(asleep.retired, asleep.gone));
                }
            }
        }
        for queued in waiter.requests {
            let undelivered = match self.open.get(&handle) {
                // The queue is new and holds as many requests as wait for a session.
                Some(open) => open.slot.pass(queued).await.err().map(|queued| *queued),
                None => Some(queued),
            };
            if let Some(queued) = undelivered {
                self.refuse(queued, strings::no_such_session(&handle)).await;
            }
        }
    }

    /// Keeps the number of handles below the limit.
    ///
    /// # Errors
    /// The error for the client when no session is evicted.
    pub(super) fn forget_evicted(&mut self) -> Result<(), String> {
        // Waiting sessions count, since each of them will have a handle.
        if self.asleep.len() + self.open.len() + self.room.len() < limits::OPEN_SESSIONS {
            return Ok(());
        }
        // An evicted session is the cheapest to forget: its file stays, only its handle is lost.
        let unused = self.asleep.iter().filter(|(handle, _)| !self.room.awaits(handle));
        // Sessions with a waiting request were left out above: they are about to be opened.
        let oldest = unused.min_by_key(|(_, asleep)| asleep.since);
        let Some(oldest) = oldest.map(|(handle, _)| Arc::clone(handle)) else {
            return Err(strings::too_many_sessions(limits::OPEN_SESSIONS));
        };
        self.asleep.remove(&oldest);
        Ok(())
    }

    /// Refuses what waited too long for a place, or came when too many waited.
    async fn no_place_for(&mut self, waiter: Waiter) {
        let error = strings::all_busy(self.eviction.most);
        let asleep = self.asleep.get(&waiter.handle);
        let error = asleep.map_or(error.clone(), |asleep| {
            asleep.retired.lost(&waiter.handle, &error)
        });
        self.turn_away(waiter, &error).await;
    }

    /// Answers what waited for a place that it will not get.
    pub(super) async fn turn_away(&self, waiter: Waiter, error: &str) {
        let mut for_requests = error.to_owned();
        if let Awaited::New(responder, _) = waiter.awaited {
            responder.refuse(error).await;
            // Requests right behind `open_session` are for a session that never began.
            for_requests = strings::no_such_session(&waiter.handle);
        }
        for queued in waiter.requests {
            self.refuse(queued, for_requests.clone()).await;
        }
    }

    /// Evicts a session, if it agrees.
    async fn put_away(&mut self, handle: &Arc<str>) -> bool {
        let open = self.open.get(handle);
        let Some(mut asked) = open.and_then(|open| Asked::new(Arc::clone(handle), &open.slot)) else {
            return false;
        };
        // Nothing else is delivered meanwhile. If the session answers later, it stays open.
        let _late = tokio::time::timeout(limits::RETIRE_HOLD, asked.answered()).await;
        self.evict(asked)
    }

    /// Ends the question to this session, or to any session for `None`; evicts it if it has agreed. A session that is about to get
    /// a request must not end before it.
    pub(super) fn evict_asked(&mut self, handle: Option<&str>) {
        if let Some(asked) = self.room.take_asked(handle) {
            self.evict(asked);
        }
    }

    fn evict(&mut self, asked: Asked) -> bool {
        let handle = Arc::clone(&asked.handle);
        let Some(retired) = asked.take() else { return false };
        if let Some(open) = self.open.remove(&handle) {
            let asleep = Evicted {
                retired,
                since: Instant::now(),
                gone: open.gone,
            };
            self.asleep.insert(handle, asleep);
        }
        true
    }

    /// Notes the use of the session that a request is for, and opens it again if it was evicted. Gives the request back unless it
    /// waits for that.
    pub(super) async fn wake(&mut self, queued: QueuedRequest) -> Option<QueuedRequest> {
        let Some(handle) = queued.to() else {
            return Some(queued);
        };
        if let Some(open) = self.open.get_mut(handle) {
            open.used = Instant::now();
            return Some(queued);
        }
        if let Some(waiter) = self.room.waiter(handle) {
            // As many as the queue of the session holds, to which `start` passes them without waiting.
            if waiter.requests.len() < limits::MAILBOX {
                waiter.requests.push(queued);
            } else {
                self.refuse(queued, strings::all_busy(self.eviction.most)).await;
            }
            return None;
        }
        let Some((handle, _)) = self.asleep.get_key_value(handle) else {
            return Some(queued);
        };
        let handle = Arc::clone(handle);
        self.wait_for_place(handle, Awaited::Evicted, Some(queued)).await;
        None
    }

    /// Carries out `abort` and `close_session` for a session that is not open; gives back all other requests.
    pub(super) async fn stop_waiting(&mut self, queued: QueuedRequest) -> Option<QueuedRequest> {
        let Some(handle) = queued.to() else {
            return Some(queued);
        };
        if queued.is_closing() {
            if let Some(waiter) = self.room.withdraw(handle) {
                // A new session has nothing more to close. An evicted one is still in the list, from which it is removed below.
                let is_new = matches!(waiter.awaited, Awaited::New(..));
                self.turn_away(waiter, strings::CLOSED).await;
                if is_new {
                    self.done(queued).await;
                    return None;
                }
            }
            return self.close_asleep(queued);
        }
        if queued.is_abort()
            && let Some(waiter) = self.room.waiter(handle)
        {
            let requests = std::mem::take(&mut waiter.requests);
            // Nothing else wants an evicted session open. For a new one, `open_session` still waits.
            if matches!(waiter.awaited, Awaited::Evicted) {
                self.room.withdraw(handle);
            }
            // Their errors come before the response to the abort, as in a session that is open.
            for waiting in requests {
                self.refuse(waiting, strings::ABORTED.to_owned()).await;
            }
            self.done(queued).await;
            return None;
        }
        Some(queued)
    }

    /// Answers a command that is carried out.
    async fn done(&self, queued: QueuedRequest) {
        if let SessionRequest::Command(origin, _) = queued.into_request() {
            Responder::<()>::new(origin, &self.outbox).respond(Ok(())).await;
        }
    }

    /// Closes an evicted session; gives back requests for other sessions.
    fn close_asleep(&mut self, queued: QueuedRequest) -> Option<QueuedRequest> {
        let asleep = queued.to().and_then(|handle| self.asleep.remove(handle));
        let Some(asleep) = asleep else { return Some(queued) };
        let outbox = self.outbox.clone();
        // In a task: the end of the session may take a while, and the manager goes on delivering.
        tokio::spawn(async move {
            asleep.ended().await;
            if let SessionRequest::Command(origin, _) = queued.into_request() {
                Responder::<()>::new(origin, &outbox).respond(Ok(())).await;
            }
        });
        None
    }

    /// Answers a request that no session will get.
    pub(super) async fn refuse(&self, queued: QueuedRequest, error: String) {
        queued.into_request().turn_away(&self.outbox, &error).await;
    }
}

impl Evicted {
    async fn ended(&self) {
        ended(&self.gone).await;
    }
}

/// The handles of open sessions, the least recently used one first.
fn by_last_use(open: &HashMap<Arc<str>, Open>) -> VecDeque<Arc<str>> {
    // Sorted once for each round of the search, since uses change with every request.
    let mut handles: Vec<&Arc<str>> = open.keys().collect();
    handles.sort_by_key(|handle| open.get(*handle).map(|open| open.used));
    handles.into_iter().map(Arc::clone).collect()
}

/// Waits, with a limit, until nothing is left of an evicted session.
pub(super) async fn ended(gone: &CancellationToken) {
    // If it takes longer, the lock of the file decides: opening it fails as long as the old session has it.
    let _late = tokio::time::timeout(limits::GONE_WAIT, gone.cancelled()).await;
}
