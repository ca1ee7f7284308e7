//! Every number that bounds what this crate keeps, accepts or waits for.

use std::time::Duration;

/// Longest line that is accepted, in bytes without the line feed.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// Lines that the reading thread hands over before it waits. One more is being read.
pub const INPUT_LINES: usize = 1;

/// Commands on their way to sessions. While they wait, no further line is read.
pub const COMMANDS: usize = 16;

/// Sessions in one response to `session/list`.
pub const LISTED_SESSIONS: usize = 100;

/// Longest title of a listed session, in characters.
pub const TITLE: usize = 200;

/// Requests of the client that may be open at once.
pub const MAX_OPEN_REQUESTS: usize = 4_096;

/// Bytes after which a batch of messages is written. A single message can be longer.
pub const BATCH_BYTES: usize = 256 * 1024;

/// Longest file whose text the diff of a `write` contains, in bytes. The diff of a longer file has the new text only.
pub const OLD_TEXT: u64 = 1024 * 1024;

/// Time to read the file that a `write` replaces. Longer than the 6 ms that the tool waits before it changes the file, because
/// a slow disk delays both.
pub const OLD_TEXT_WAIT: Duration = Duration::from_secs(1);
