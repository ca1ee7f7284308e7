//! Every number that bounds what this crate keeps or accepts.

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
