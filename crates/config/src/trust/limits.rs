//! Limits of the stored decisions on trust.

use std::time::Duration;

/// Longest file of decisions that is read.
pub(super) const FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Attempts to get the lock, one every `LOCK_WAIT`.
pub(super) const LOCK_TRIES: u32 = 100;
pub(super) const LOCK_WAIT: Duration = Duration::from_millis(20);

/// Age after which a lock is stale.
pub(super) const LOCK_STALE: Duration = Duration::from_secs(10);

/// Most directories above a project that are looked into.
pub(super) const ANCESTORS: usize = 128;
