//! The wall clock, by which providers date tokens.

use std::time::{SystemTime, UNIX_EPOCH};

/// The stored time of expiry of a key that does not expire, in ms since 1970: the largest integer of JavaScript, as in pi.
pub const NEVER_MS: i64 = (1 << 53) - 1;

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// So many seconds after a time in ms.
pub(super) fn after(ms: i64, seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    let span = (seconds * 1000.0) as i64;
    ms.saturating_add(span)
}
