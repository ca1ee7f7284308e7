//! How many sessions stay in memory, and for how long: the least recently used session is evicted when another one needs its
//! place, and idle sessions are evicted after a while. Their handles stay, and the next command to one opens it again.
//!
//! Only a session itself knows whether it may be evicted (`Session::retired`). The first session is never evicted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use wire::table::Respond;

use crate::limits;
use crate::outbox::Responder;
use crate::requests::{QueuedRequest, RequestSender, SessionRequest};
use crate::retired::Retired;
use crate::strings;

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
                tokio::time::sleep((idle / 10).clamp(limits::SWEEP.0, limits::SWEEP.1)).await;
            }
            None => std::future::pending().await,
        }
    }

    /// Evicts idle sessions.
    pub(super) async fn sweep(&mut self) {
        let Some(idle) = self.eviction.idle else { return };
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

    /// Makes room for one more session.
    ///
    /// # Errors
    /// The error for the client when all sessions are busy.
    pub(super) async fn make_room(&mut self) -> Result<(), String> {
        if self.asleep.len() + self.open.len() >= limits::OPEN_SESSIONS {
            // An evicted session is the cheapest to forget: its file stays, only its handle is lost.
            let oldest = self.asleep.iter().min_by_key(|(_, asleep)| asleep.since);
            let Some(oldest) = oldest.map(|(handle, _)| Arc::clone(handle)) else {
                return Err(strings::too_many_sessions(limits::OPEN_SESSIONS));
            };
            self.asleep.remove(&oldest);
        }
        if self.open.len() < self.eviction.most {
            return Ok(());
        }
        let mut open: Vec<(Instant, Arc<str>)> = self
            .open
            .iter()
            .map(|(handle, open)| (open.used, Arc::clone(handle)))
            .collect();
        // Tries are bounded: each one may take the whole wait, and the client waits for all of them.
        open.sort();
        for (_, handle) in open.into_iter().take(limits::RETIRE_TRIES) {
            if self.put_away(&handle).await {
                return Ok(());
            }
        }
        Err(strings::all_busy(self.eviction.most))
    }

    /// Puts a session away, if it agrees.
    async fn put_away(&mut self, handle: &Arc<str>) -> bool {
        let Some(open) = self.open.get(handle) else {
            return false;
        };
        let (answer, mut wait) = oneshot::channel();
        // A full queue means work.
        if !open.slot.try_send(SessionRequest::Retire(answer)) {
            return false;
        }
        // A session that cannot answer at once is busy. An answer in the last moment counts all the same.
        let answered = match tokio::time::timeout(limits::RETIRE_WAIT, &mut wait).await {
            Ok(answered) => answered.ok(),
            Err(_) => {
                // Closed before the last look: a session that answers after it stays open, since its answer cannot be sent.
                wait.close();
                wait.try_recv().ok()
            }
        };
        let Some(retired) = answered.flatten() else {
            return false;
        };
        if let Some(open) = self.open.remove(handle) {
            let asleep = Evicted {
                retired,
                since: Instant::now(),
                gone: open.gone,
            };
            self.asleep.insert(Arc::clone(handle), asleep);
        }
        true
    }

    /// Opens an evicted session again that a request is for, and notes its use. Requests that end such a
    /// session, and answers to questions that are closed, do not open it.
    ///
    /// # Errors
    /// Why it cannot be delivered.
    pub(super) async fn wake(&mut self, queued: &QueuedRequest) -> Result<(), String> {
        let Some(handle) = queued.to() else { return Ok(()) };
        if let Some(open) = self.open.get_mut(handle) {
            open.used = Instant::now();
            return Ok(());
        }
        let Some((handle, _)) = self.asleep.get_key_value(handle) else {
            return Ok(());
        };
        let handle = Arc::clone(handle);
        // Making room may itself forget the session that was to be woken.
        if let Err(error) = self.make_room().await {
            let asleep = self.asleep.get(&handle);
            return Err(asleep.map_or(error.clone(), |asleep| asleep.retired.lost(&handle, &error)));
        }
        if let Some(asleep) = self.asleep.remove(&handle) {
            self.begin(handle, Start::Again(asleep.retired, asleep.gone));
        }
        Ok(())
    }

    /// Closes an evicted session; gives back requests for other sessions.
    pub(super) fn close_asleep(&mut self, queued: QueuedRequest) -> Option<QueuedRequest> {
        let asleep = queued.to().and_then(|handle| self.asleep.remove(handle));
        let Some(asleep) = asleep else { return Some(queued) };
        let outbox = self.outbox.clone();
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

/// Waits, with a limit, until nothing is left of an evicted session.
pub(super) async fn ended(gone: &CancellationToken) {
    let _late = tokio::time::timeout(limits::GONE_WAIT, gone.cancelled()).await;
}
