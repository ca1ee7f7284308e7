//! A number of bytes that threads may hold together. Who holds them and why is the caller's business.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that may be held at once.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    held: Mutex<usize>,
    released: Condvar,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            held: Mutex::new(0),
            released: Condvar::new(),
        })
    }

    /// Takes bytes; the calling thread waits until they fit. More than the limit fits when nothing else is held.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        // The first case keeps a line larger than the budget from waiting for ever.
        let fits = |held: &mut usize| *held == 0 || held.saturating_add(bytes) <= self.limit;
        let mut held = self
            .released
            .wait_while(self.lock(), |held| !fits(held))
            .unwrap_or_else(PoisonError::into_inner);
        *held += bytes;
        Held {
            budget: Arc::clone(self),
            bytes,
        }
    }

    /// A counter has no broken state, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        *self.lock()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.budget.lock();
        *held = held.saturating_sub(self.bytes);
        // Unlocked first, or the thread that is woken would wait for the lock at once.
        drop(held);
        // One is enough: a budget belongs to one reading thread.
        self.budget.released.notify_one();
    }
}
