//! Every number that bounds what this crate keeps, accepts or waits for.

use std::time::Duration;

/// Longest line that is accepted, in bytes without the line feed.
// Promised to users (GUARANTEES.md, 6). Clients read this number in the reply of `get_protocol`.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// Bytes read from the input at once, and the size to which the input buffer shrinks after a long line.
pub const READ_CHUNK: usize = 64 * 1024;

/// Longest command name that is echoed whole in an error, in bytes.
pub const MAX_NAME_ECHO: usize = 1024;

/// Bytes of queued input lines. A longer line is queued alone.
pub const INPUT_QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// Bytes after which a batch of output is written. A single line can be longer.
pub const BATCH_BYTES: usize = 256 * 1024;

/// Output batches: one is written while the next is filled.
// The number bounds the memory for a reader that does not read (docs/internals/decisions/02-copied-text.md).
pub const BATCHES: usize = 2;

/// Size of the output pipe in bytes, where the system allows it. With a smaller pipe, a long line needs many context
/// switches.
pub const PIPE_BYTES: usize = 1024 * 1024;

/// Capacity that a batch's buffer keeps after it was written, in bytes.
pub const BATCH_KEEP: usize = 1024 * 1024;

/// Answers up to this many bytes of content are updated with every batch of deltas.
// This number, `UPDATE_SHARE` and `UPDATE_RATE` keep the cost of an answer linear (docs/internals/decisions/25-linear-updates.md).
pub const SMALL_ANSWER: usize = 4 * 1024;

/// A longer answer is updated when it has grown by one part in this many. Each cumulative update repeats the answer twice,
/// so an answer costs about twice this many times its own size.
pub const UPDATE_SHARE: usize = 24;

/// Bytes of `message_update` events for the starts and ends of blocks that every answer can cost in the cumulative form, in
/// addition to twice [`UPDATE_SHARE`] times its own size. With more, further blocks are not announced; `message_end`
/// holds them.
pub const ANNOUNCED_BYTES: usize = 4 * 1024 * 1024;

/// Size of an answer from which its text is not copied into batches, in bytes. Each segment costs a system call, so short
/// answers are copied.
pub const REPEATED_ANSWER: usize = 1024 * 1024;

/// Bytes of text after which a segment of an answer is shared with batches.
pub const ANSWER_SEGMENT: usize = 256 * 1024;

/// Size of a batch after which the next one is only filled once it was written: two of them would take too much memory.
pub const BATCH_ALONE: usize = 4 * 1024 * 1024;

/// An update is also sent when the previous one would have passed at this rate, in bytes per second.
pub const UPDATE_RATE: u64 = 8_000_000;

/// Events that a connection keeps for `replay`, if `sequence` is on.
// Clients read this number and the next one in the reply of `get_protocol`.
pub const REPLAY_EVENTS: usize = 10_000;

/// Bytes of events that a connection keeps for `replay`.
pub const REPLAY_BYTES: usize = 4 * 1024 * 1024;

/// Longest heartbeat interval that a client can request, in seconds.
// Clients read this number in the reply of `get_protocol`.
pub const MAX_HEARTBEAT: u64 = 3_600;

/// Refused options that the response to `hello` lists.
pub const MAX_REFUSALS: usize = 32;

/// Longest wait for the reader of stdout at shutdown.
pub const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Stack of the threads that read stdin and write stdout, in bytes.
pub const IO_STACK: usize = 512 * 1024;

/// Stack of the thread that waits for stdout to be closed, in bytes.
pub const WATCH_STACK: usize = 64 * 1024;

/// Longest line with its line feed that a client of protocol version 2 of oh-my-pi gets, in bytes (dialects.md 1).
pub const FRAME_BYTES: usize = 1024 * 1024;

/// Longest line that such a client puts together from chunks, in bytes without the line feed.
pub const REASSEMBLED_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of a line in one chunk, before base64.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Most session handles in a `hello`.
pub const MAX_SESSIONS: usize = 4_096;

/// Accepted prompts without a `prompt_result` that a connection remembers. The queue of a session holds fewer.
pub const OPEN_PROMPTS: usize = 2_048;
