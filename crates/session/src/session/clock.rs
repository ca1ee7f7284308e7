//! The one place of a session that reads the time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix time in milliseconds.
pub(super) fn now_ms() -> i64 {
    // A clock that stands before 1970 must not end the session: it counts as 1970.
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
