//! Every number that bounds what this crate keeps or waits for.

use std::time::Duration;

/// Longest line in either direction, in bytes without the line feed.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// Bytes of lines that wait for a child that does not read. More than that, and it is given up.
pub const UNREAD_BYTES: usize = 64 * 1024 * 1024;

/// Calls and reports of a child that wait for the agent; a child that floods waits when there are more.
pub const SAID: usize = 256;

/// Updates of one call that wait; further ones take the place of the newest.
pub const UPDATES: usize = 64;

/// Bytes of a stream's updates that wait to be taken; a call that says more than that fails.
pub const STREAM_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of lines that wait for a child, above which nothing is added to a stream for it until it has read.
pub const STREAM_UNREAD: usize = 1024 * 1024;

/// How long a child may take to say that it is there.
pub const READY_WAIT: Duration = Duration::from_secs(10);

/// How often a child is asked whether it lives, while something is awaited of it.
pub const PING_EVERY: Duration = Duration::from_secs(2);

/// Silence after a question whether it lives, before a child is given up.
pub const PONG_WAIT: Duration = Duration::from_secs(10);

/// Longest line of a child's standard error that is passed on, in bytes; the rest of it is dropped.
pub const ERROR_LINE: usize = 8 * 1024;

/// Bytes read from a child at once.
pub const READ_CHUNK: usize = 64 * 1024;

/// How often the memory of a child is looked at.
pub const MEMORY_EVERY: Duration = Duration::from_secs(1);

/// Bytes of memory that a child may hold unless something else is said.
pub const MEMORY: u64 = 3 << 30;

/// Things that a child may say unasked within [`FLOOD_WINDOW`] before it is ended.
pub const FLOOD: u32 = 20_000;

/// See [`FLOOD`].
pub const FLOOD_WINDOW: Duration = Duration::from_secs(5);

/// Lines of a child that are none and are told of, one by one; of further ones nothing is told.
pub const ODD_LINES: u32 = 20;

/// Places of a line that is none at which one may still begin.
pub const LITTER: usize = 4;
