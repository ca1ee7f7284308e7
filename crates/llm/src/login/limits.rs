//! Every number that bounds a login or a renewal.

use std::time::Duration;

/// How long a person may take for a login in the browser.
pub const LOGIN: Duration = Duration::from_secs(600);

/// How long one request to a token endpoint may take.
pub const HTTP: Duration = Duration::from_secs(20);

/// Most bytes of an answer of such an endpoint.
pub const MAX_ANSWER: usize = 256 << 10;

/// Longest reason that is taken from such an answer into an error, in bytes.
pub const MAX_REASON: usize = 300;

/// How long others may hold the lock on `auth.json`: longer than a renewal takes.
pub const LOCK: Duration = Duration::from_secs(45);

/// How often the lock is tried.
pub const LOCK_POLL: Duration = Duration::from_millis(20);

/// Age at which pi's lock counts as left behind (pi-core.md 8.4).
pub const PI_LOCK_STALE: Duration = Duration::from_secs(30);

/// A stored time of expiry lies this much before the true one, for the providers that have a margin (providers.md 9).
pub const MARGIN_MS: i64 = 300_000;

/// Most bytes of a request to the local callback.
pub const MAX_CALLBACK: usize = 16 << 10;

/// How long a browser may take to say what it wants of the callback.
pub const CALLBACK_READ: Duration = Duration::from_secs(10);

/// Most connections to the callback at a time; browsers open some that they never use.
pub const CALLBACK_CONNECTIONS: usize = 16;

/// How long switching on Copilot's models may take, all of them.
pub const POLICIES: Duration = Duration::from_secs(20);

/// How many of these requests are out at a time.
pub const POLICIES_AT_ONCE: usize = 4;

/// Longest key that is stored, in bytes.
pub const MAX_KEY: usize = 64 << 10;

/// Secrets shorter than this are not searched for in texts, in bytes.
pub const SHORTEST_SECRET: usize = 12;

/// How long an extension may take to renew its login, while others wait for the lock.
pub const RENEWAL: Duration = Duration::from_secs(20);
