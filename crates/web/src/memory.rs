//! The memory that all clients of the web server hold together: requests and messages that are not complete, messages that
//! wait for a session, responses that wait for a reader. A [`Reservation`] returns its bytes when it is dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{WEB_CLIENT_BYTES, WEB_FREE_BYTES, WEB_MEMORY_BYTES};

/// The client, or all clients together, hold as much as they may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// Bytes that all clients may hold. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Memory(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    limit: usize,
    held: AtomicUsize,
}

/// What one client holds. Clones mean the same client.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pool: Arc<Pool>,
    own: Arc<Mutex<usize>>,
}

/// Bytes that a client holds until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    account: Account,
    bytes: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(WEB_MEMORY_BYTES)
    }
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Pool {
            limit,
            held: AtomicUsize::new(0),
        }))
    }

    /// The account of a new client.
    pub(crate) fn account(&self) -> Account {
        Account {
            pool: Arc::clone(&self.0),
            own: Arc::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.0.held.load(Ordering::Acquire)
    }
}

impl Account {
    /// An empty reservation.
    pub(crate) fn empty(&self) -> Reservation {
        Reservation {
            account: self.clone(),
            bytes: 0,
        }
    }

    /// Reserves bytes.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reservation, Full> {
        let mut reservation = self.empty();
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// Reserves bytes for something that is longer than a client's part, but cannot be divided: only the limit of all clients
    /// counts.
    pub(crate) fn reserve_whole(&self, bytes: usize) -> Result<Reservation, Full> {
        self.add(bytes, usize::MAX)?;
        let mut reservation = self.empty();
        reservation.bytes = bytes;
        Ok(reservation)
    }

    /// Returns true while so many more bytes would fit.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.reserve(bytes).is_ok()
    }

    /// The bytes below [`WEB_FREE_BYTES`] are every client's own, so that large messages never keep small ones out.
    fn add(&self, bytes: usize, most: usize) -> Result<(), Full> {
        let mut own = self.own();
        let sum = own.checked_add(bytes).ok_or(Full)?;
        if sum > most && bytes > 0 {
            return Err(Full);
        }
        let shared = charged(sum) - charged(*own);
        let fits = |held: usize| held.checked_add(shared).filter(|held| *held <= self.pool.limit);
        if shared > 0 {
            let pool = &self.pool.held;
            pool.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits)
                .map_err(|_| Full)?;
        }
        *own = sum;
        Ok(())
    }

    fn remove(&self, bytes: usize) {
        let mut own = self.own();
        let rest = own.saturating_sub(bytes);
        let shared = charged(*own) - charged(rest);
        self.pool.held.fetch_sub(shared, Ordering::AcqRel);
        *own = rest;
    }

    /// A counter has no broken state, so a poisoned lock is as good as any.
    fn own(&self) -> MutexGuard<'_, usize> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the part of a client's bytes that counts against the limit of all clients.
fn charged(bytes: usize) -> usize {
    bytes.saturating_sub(WEB_FREE_BYTES)
}

impl Reservation {
    /// Bytes that are reserved.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves more bytes; nothing changes when they do not fit.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Full> {
        self.account.add(bytes, WEB_CLIENT_BYTES)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Returns bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.account.remove(bytes);
        self.bytes -= bytes;
    }

    /// Returns true while so many more bytes would fit.
    pub(crate) fn could_grow(&self, bytes: usize) -> bool {
        self.account.fits(bytes)
    }

    /// An empty reservation of the same client.
    pub(crate) fn empty(&self) -> Self {
        self.account.empty()
    }

    /// The whole reservation; an empty one of the same client stays.
    pub(crate) fn take(&mut self) -> Self {
        let empty = self.account.empty();
        std::mem::replace(self, empty)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.remove(self.bytes);
    }
}
