//! Every number that bounds a login or a renewal.

use std::time::Duration;

/// Timeout of a login in the browser.
pub const LOGIN: Duration = Duration::from_secs(600);

/// Timeout of a request to a token endpoint.
pub const HTTP: Duration = Duration::from_secs(20);

/// Most bytes of a response of a token endpoint.
pub const MAX_ANSWER: usize = 256 << 10;

/// Longest error message of a token endpoint in bytes.
pub const MAX_REASON: usize = 300;

/// Timeout for the lock on `auth.json`.
pub const LOCK: Duration = Duration::from_secs(45);

/// Interval of attempts to get the lock.
pub const LOCK_POLL: Duration = Duration::from_millis(20);

/// Age after which the lock of pi is stale.
pub const PI_LOCK_STALE: Duration = Duration::from_secs(30);

/// Most bytes of a request to the local callback.
pub const MAX_CALLBACK: usize = 16 << 10;

/// Timeout for the request of the browser to the callback.
pub const CALLBACK_READ: Duration = Duration::from_secs(10);

/// Concurrent connections to the callback.
pub const CALLBACK_CONNECTIONS: usize = 16;

/// Timeout for enabling the models of Copilot.
pub const POLICIES: Duration = Duration::from_secs(20);

/// Concurrent requests for enabling models.
pub const POLICIES_AT_ONCE: usize = 4;

/// Longest key that is stored, in bytes.
pub const MAX_KEY: usize = 64 << 10;

/// Bytes by which new tokens may enlarge `auth.json`. Before a refresh token is spent, the disk must have room for them.
pub const TOKEN_ROOM: usize = 16 << 10;

/// Timeout for an extension to refresh its login.
pub const RENEWAL: Duration = Duration::from_secs(20);

/// Largest `models.json` or `auth.json` that is read, in bytes; a larger one counts as damaged.
pub const MAX_FILE: u64 = 8 << 20;
