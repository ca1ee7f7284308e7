//! Limits of the stored decisions on trust.

use std::time::Duration;

/// Longest file of decisions that is read.
pub(super) const FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Timeout for the lock of pi on a file of decisions or settings.
pub(super) const LOCK: Duration = Duration::from_secs(2);

/// Most directories above a project that are looked into.
pub(super) const ANCESTORS: usize = 128;
