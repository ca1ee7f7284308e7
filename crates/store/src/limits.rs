//! Every number that bounds what this crate reads, writes or keeps. No logic here.

use std::time::Duration;

/// Pause between two looks at a torn last line, which another writer may still be writing.
pub const SETTLE_PAUSE: Duration = Duration::from_millis(2);

/// Looks in a row without change after which a torn line is taken for one.
pub const SETTLE_QUIET: usize = 5;

/// Most looks at a torn line in all.
pub const SETTLE_TRIES: usize = 500;

/// Longest line, in bytes without its line feed, that is read or written. Longer lines are skipped and reported.
pub const MAX_LINE: usize = 256 << 20;

/// Largest session file, in bytes, that is opened.
pub const MAX_FILE: u64 = 4 << 30;

/// Bytes of a session file that are in memory at once while it is opened, unless a line is longer.
pub const LOAD_BLOCK: usize = 1 << 20;

/// Most skipped lines that a damage report names one by one; the rest is only counted.
pub const REPORTED_LINES: usize = 100;

/// Lines at the start of a file in which a session header or an entry must turn up.
pub const PROBE_LINES: usize = 64;

/// Most bytes of a damaged first line that are searched for remains of a header.
pub const HEADER_REMAINS: usize = 64 << 10;

/// Random 8-digit entry ids tried before a full UUID is taken (pi-core.md 2.3).
pub const ID_TRIES: usize = 100;

/// Times the path is looked up again when the file was replaced between opening and locking it.
pub const LOCK_TRIES: usize = 8;

/// Names tried for a migration's backup (`.bak`, `.bak2`, ...).
pub const BACKUP_NAMES: usize = 1000;

/// Session files scanned at the same time when listing.
pub const SCAN_THREADS: usize = 4;

/// Bytes read at once while a file is scanned for the listing.
pub const SCAN_CHUNK: usize = 256 << 10;

/// Longest line, in bytes, that a listing keeps in memory. Of a longer one, for example a message with images, it sees the
/// beginning and the end.
pub const LISTED_LINE: usize = 4 << 20;

/// Bytes at the beginning of such a line that a listing sees.
pub const LISTED_HEAD: usize = 256 << 10;

/// Bytes at the end of a line in which a listing looks for the time of a message before it parses the line.
pub const GLANCE_TAIL: usize = 1 << 10;

/// Largest cache of a listing, in bytes; what does not fit is not kept.
pub const CACHE_BYTES: usize = 8 << 20;

/// Largest row of that cache, in bytes: sessions with a longer first message are scanned each time.
pub const CACHE_ROW: usize = 16 << 10;

/// Bytes at the beginning of a session and before the point that a scan reached, by which it is known again when it grew.
pub const CACHE_PRINT: usize = 256;

/// A file that was changed so short a time ago is not cached: another change may leave the same time behind.
pub const CACHE_SETTLED: Duration = Duration::from_millis(50);

/// Age at which the temporary file of a cache was left by a process that died.
pub const CACHE_LITTER: Duration = Duration::from_secs(10);

/// Most bytes of a first line that are read when only the header is wanted.
pub const HEADER_LINE: usize = 64 << 10;

/// Deepest nesting of values in a message of the usual form; others are read by the general parser.
pub const USUAL_DEPTH: usize = 64;

/// Most bytes of messages at the end of a session that are read as a whole, in search of an answer that reports its tokens, when
/// the texts of the others are left out.
pub const DEFERRED_TAIL: usize = 1 << 20;

/// Smallest session file, in bytes, whose texts are left out at first.
pub const DEFERRED_FILE: u64 = 1 << 20;

/// Longest file that may be a session without messages, in bytes.
pub const EMPTY_SESSION: u64 = 16 << 10;

/// Most bytes of message text kept per session by a listing with texts.
pub const ALL_TEXT: usize = 4 << 20;

/// Longest directory name made from a working directory, in bytes; longer ones are cut and get a hash.
pub const DIR_NAME: usize = 250;

/// Longest part of a file name made from a session id, in bytes.
pub const ID_IN_NAME: usize = 120;

/// Longest id of a session in a store, in bytes. Encoded, it fits into a subject and into an object's name.
pub const STORED_ID: usize = 128;

/// Bytes of lines after which one load from a store ends; the line that reaches it is included.
pub const LOADED_AT_ONCE: usize = 4 << 20;

/// Longest line that is made in a buffer that grows, in bytes. The length of a longer one is counted first.
pub const SHORT_LINE: usize = 1024 * 1024;
