//! Limits of the stored decisions on trust.

use std::time::Duration;

/// Longest file of decisions that is read.
pub(super) const FILE_BYTES: u64 = 4 * 1024 * 1024;

/// How often a lock that is taken is tried again, and how long lies between.
pub(super) const LOCK_TRIES: u32 = 100;
pub(super) const LOCK_WAIT: Duration = Duration::from_millis(20);

/// A lock older than this was left behind by a process that died.
pub(super) const LOCK_STALE: Duration = Duration::from_secs(10);

/// Most directories above a project that are looked into.
pub(super) const ANCESTORS: usize = 128;
