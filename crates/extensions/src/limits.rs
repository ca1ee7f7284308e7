//! Every number that bounds what this crate keeps or waits for.

use std::time::Duration;

/// Longest line in either direction, in bytes without the line feed.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// Bytes that are queued for a process that does not read. With more, the process is killed.
pub const UNREAD_BYTES: usize = 64 * 1024 * 1024;

/// Calls and reports of a process that are queued. With more, Pinion stops reading from the process.
pub const SAID: usize = 256;

/// Queued updates of one call. Further ones replace the newest.
pub const UPDATES: usize = 64;

/// Bytes of queued updates of a stream. With more, the call fails.
pub const STREAM_BYTES: usize = 32 * 1024 * 1024;

/// Queued bytes for a process above which its streams are paused.
pub const STREAM_UNREAD: usize = 1024 * 1024;

/// Timeout for `ready`.
pub const READY_WAIT: Duration = Duration::from_secs(10);

/// Interval of `ping` while an answer of a process is pending.
pub const PING_EVERY: Duration = Duration::from_secs(2);

/// Silence after a `ping` until a process is killed.
pub const PONG_WAIT: Duration = Duration::from_secs(10);

/// How long the outputs of a process that ended are read to their end.
pub const LAST_WORDS: Duration = Duration::from_millis(500);

/// Longest line of stderr that is logged, in bytes. The rest is dropped.
pub const ERROR_LINE: usize = 8 * 1024;

/// Interval of memory checks.
pub const MEMORY_EVERY: Duration = Duration::from_secs(1);

/// Default memory limit of a process in bytes.
pub const MEMORY: u64 = 3 << 30;

/// Unsolicited messages within [`FLOOD_WINDOW`] after which a process is killed.
pub const FLOOD: u32 = 20_000;

/// Period in which unsolicited messages are counted.
pub const FLOOD_WINDOW: Duration = Duration::from_secs(5);

/// Invalid lines of a process that are reported. Further ones are ignored silently.
pub const ODD_LINES: u32 = 20;

/// Positions in an invalid line at which the parser searches for a valid one.
pub const LITTER: usize = 4;
