//! Every number that bounds what a session holds and waits for.

use std::time::Duration;

/// Events and responses that wait for the writer; a session waits when there are more.
pub const OUTBOX: usize = 1024;

/// Commands that wait for the session; the reader waits when there are more.
pub const MAILBOX: usize = 1024;

/// Reports of tools that wait for the session.
pub const REPORTS: usize = 256;

/// How long a session whose client is gone may take to end its run and write it down.
pub const END_WAIT: Duration = Duration::from_secs(2);

/// How long a cancelled tool may take to end before its result no longer counts.
pub const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Messages in both queues together; more are refused.
pub const QUEUED: usize = 1_000;

/// Context window, in tokens, of a model that does not say (pi-core.md 3.7).
pub const DEFAULT_WINDOW: u64 = 128_000;

/// User shell commands that run at the same time; more are refused.
pub const BASH_RUNNING: usize = 64;
