//! Times and ids as session files write them. File names made from them live in `paths`.

use jiff::Timestamp;
use uuid::Uuid;

use crate::limits::ID_TRIES;

/// The present time as ISO 8601 in UTC with milliseconds, for example `2026-11-20T23:46:11.841Z`.
pub fn now_iso() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Unix time in milliseconds of an ISO 8601 time; none when it is not one.
#[must_use]
pub fn iso_to_ms(iso: &str) -> Option<i64> {
    iso.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// The opposite of [`iso_to_ms`]; the beginning of time when it is out of range.
#[must_use]
pub fn ms_to_iso(ms: i64) -> String {
    Timestamp::from_millisecond(ms)
        .unwrap_or_default()
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}

/// A new session id, a UUIDv7 (pi-core.md 2.1).
pub(crate) fn session_id() -> String {
    Uuid::now_v7().to_string()
}

/// A new entry id: 8 hex digits that `taken` does not know, or a whole UUID when luck is out (pi-core.md 2.3).
pub(crate) fn entry_id(taken: impl Fn(&str) -> bool) -> String {
    for _ in 0..ID_TRIES {
        let mut id = Uuid::new_v4().simple().to_string();
        id.truncate(8);
        if !taken(&id) {
            return id;
        }
    }
    Uuid::new_v4().to_string()
}
