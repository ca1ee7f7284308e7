//! Leases: one message per session that the server removes when it was not renewed in time. A worker stops using its lease after
//! four fifths of that time by its own monotonic clock, counted from before the request that renewed it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{SessionId, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Bus, Fault, Publication, Until};

/// What a worker knows about its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseState {
    /// The session must not be used after this.
    pub(crate) valid_until: Instant,
    /// Sequence of the lease's message.
    sequence: u64,
    /// True when the lease was taken over or could not be renewed.
    pub(crate) is_lost: bool,
}

impl LeaseState {
    #[cfg(test)]
    pub(crate) fn until(valid_until: Instant) -> Self {
        Self {
            valid_until,
            sequence: 1,
            is_lost: false,
        }
    }

    /// True while the session may be used.
    pub(crate) fn is_valid(&self) -> bool {
        !self.is_over(Instant::now())
    }

    /// True if the session must not be used at this time, unless the lease is renewed.
    pub(crate) fn is_over(&self, at: Instant) -> bool {
        self.is_lost || at >= self.valid_until
    }
}

/// The lease of one session, renewed by a task until it is dropped.
pub(crate) struct Lease {
    bus: Arc<Bus>,
    state: watch::Receiver<LeaseState>,
    task: JoinHandle<()>,
}

impl Lease {
    /// Takes the lease of a session. Returns none if another worker has it.
    pub(crate) async fn take(
        bus: &Arc<Bus>,
        session: &SessionId,
        worker: &str,
    ) -> Result<Option<Self>, StoreError> {
        let sent = Instant::now();
        let valid_until = sent + usable(bus.lease_time);
        let subject = bus.subject("lease", session);
        let publication = Publication::new(subject.clone(), worker.to_owned(), Some(0));
        let sequence = match bus.leases.publish(publication, &Until::Time(valid_until)).await {
            Ok(sequence) => sequence,
            Err(Fault::Fenced) => return Ok(None),
            Err(Fault::Unavailable(reason) | Fault::TooLarge(reason)) => {
                return Err(StoreError::Engine {
                    action: "take a lease",
                    reason,
                });
            }
        };
        let (sender, state) = watch::channel(LeaseState {
            valid_until,
            sequence,
            is_lost: false,
        });
        let task = tokio::spawn(keep(Arc::clone(bus), subject, worker.to_owned(), sender));
        Ok(Some(Self {
            bus: Arc::clone(bus),
            state,
            task,
        }))
    }

    /// The present state. An expired lease counts as lost.
    pub(crate) fn state(&self) -> LeaseState {
        let mut state = *self.state.borrow();
        state.is_lost = !state.is_valid();
        state
    }

    /// The state for others, which see each renewal.
    pub(crate) fn watch(&self) -> watch::Receiver<LeaseState> {
        self.state.clone()
    }

    /// Waits until the lease is lost.
    pub(crate) async fn lost(&self) {
        let mut state = self.state.clone();
        drop(state.wait_for(|state| state.is_lost).await);
    }

    /// Ends the lease so that another worker can take it at once.
    pub(crate) async fn release(self) {
        self.task.abort();
        let sequence = self.state.borrow().sequence;
        // A lease that cannot be removed ends by itself.
        drop(self.bus.leases.remove(sequence).await);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The part of the lease time in which a worker uses its lease. The rest allows for a clock that is slow by a fifth.
fn usable(lease: Duration) -> Duration {
    lease * 4 / 5
}

/// The time after which a lease is renewed. A stream whose leader is lost stores nothing for 4 to 9 seconds; with a lease of 10 seconds, most
/// leases last longer than that.
fn renewal(lease: Duration) -> Duration {
    lease / 4
}

async fn keep(bus: Arc<Bus>, subject: String, worker: String, state: watch::Sender<LeaseState>) {
    let mut known = *state.borrow();
    loop {
        tokio::time::sleep(renewal(bus.lease_time)).await;
        let sent = Instant::now();
        // A process that was stopped wakes up here, long after.
        let renewed = if sent < known.valid_until {
            let publication = Publication::new(subject.clone(), worker.clone(), Some(known.sequence));
            let until = Until::Time(known.valid_until);
            bus.leases.publish(publication, &until).await.ok()
        } else {
            None
        };
        match renewed {
            Some(sequence) => {
                known = LeaseState {
                    valid_until: sent + usable(bus.lease_time),
                    sequence,
                    is_lost: false,
                };
                state.send_replace(known);
            }
            None => {
                known.is_lost = true;
                state.send_replace(known);
                return;
            }
        }
    }
}
