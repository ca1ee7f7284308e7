//! Named gates at which a reply waits for the test. Waiting here knows nothing of sockets; `body` looks after the
//! client in between.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// State of one gate.
#[derive(Debug, Default, Clone, Copy)]
struct Gate {
    reached: bool,
    open: bool,
}

/// All gates of a server. A released gate stays open.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    map: Mutex<HashMap<String, Gate>>,
    changed: Condvar,
}

impl Gates {
    /// Opens a gate, even before a reply has reached it.
    pub(crate) fn release(&self, name: &str) {
        self.with(name, |g| g.open = true);
    }

    /// Notes that a reply stands at the gate.
    pub(crate) fn reach(&self, name: &str) {
        self.with(name, |g| g.reached = true);
    }

    /// Waits for the gate to open; true if it did.
    pub(crate) fn wait_open(&self, name: &str, timeout: Duration) -> bool {
        self.wait(name, timeout, |g| g.open)
    }

    /// Waits for a reply to come to the gate; true if one did.
    pub(crate) fn wait_reached(&self, name: &str, timeout: Duration) -> bool {
        self.wait(name, timeout, |g| g.reached)
    }

    /// Wakes every waiter, for the end of the server.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    fn with(&self, name: &str, change: impl FnOnce(&mut Gate)) {
        let mut map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        change(map.entry(name.to_owned()).or_default());
        self.changed.notify_all();
    }

    fn wait(&self, name: &str, timeout: Duration, done: impl Fn(&Gate) -> bool) -> bool {
        let end = Instant::now() + timeout;
        let mut map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if map.get(name).is_some_and(&done) {
                return true;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            map = self
                .changed
                .wait_timeout(map, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}
