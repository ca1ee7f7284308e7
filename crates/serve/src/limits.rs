//! Every number that bounds what this crate keeps, accepts or waits for.

use std::time::Duration;

/// Longest line that is accepted, in bytes without the line feed.
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
pub const BATCHES: usize = 2;

/// Size of the output pipe in bytes, where the system allows it. With a smaller pipe, a long line needs many context
/// switches.
pub const PIPE_BYTES: usize = 1024 * 1024;

/// Capacity that a batch's buffer keeps after it was written, in bytes.
pub const BATCH_KEEP: usize = 1024 * 1024;

/// Answers up to this many bytes of content are updated with every batch of deltas.
pub const SMALL_ANSWER: usize = 4 * 1024;

/// A longer answer is updated when it has grown by one part in this many. Each cumulative update repeats the answer twice,
/// so an answer costs about twice this many times its own size.
pub const UPDATE_SHARE: usize = 24;

/// Bytes of `message_update` events for the starts and ends of blocks that every answer can cost in the cumulative form,
/// besides twice [`UPDATE_SHARE`] times its own size. With more, further blocks are not announced; `message_end` holds them.
pub const ANNOUNCED_BYTES: usize = 4 * 1024 * 1024;

/// Size of a batch after which the next one is only filled once it was written: two of them would take too much memory.
pub const BATCH_ALONE: usize = 4 * 1024 * 1024;

/// An update is also sent when the previous one would have passed at this rate, in bytes per second.
pub const UPDATE_RATE: u64 = 8_000_000;

/// Events that a connection keeps for `replay`, if `sequence` is on.
pub const REPLAY_EVENTS: usize = 10_000;

/// Bytes of events that a connection keeps for `replay`.
pub const REPLAY_BYTES: usize = 4 * 1024 * 1024;

/// Longest heartbeat interval that a client can request, in seconds.
pub const MAX_HEARTBEAT: u64 = 3_600;

/// Refused options that the response to `hello` lists.
pub const MAX_REFUSALS: usize = 32;

/// Longest wait for the reader of stdout at shutdown.
pub const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Stack of the threads that read stdin and write stdout, in bytes.
pub const IO_STACK: usize = 512 * 1024;

/// Stack of the thread that waits for stdout to be closed, in bytes.
pub const WATCH_STACK: usize = 64 * 1024;

/// Most session handles in a `hello`.
pub const MAX_SESSIONS: usize = 4_096;

/// Concurrent clients of the web server: sockets, event streams and commands that wait for their response.
pub const WEB_CLIENTS: usize = 1_200;

/// Concurrent connections to the web server; further ones get the status 503. The number is lower if the system allows
/// fewer open files.
pub const WEB_CONNECTIONS: usize = 2_000;

/// Refused connections whose request is read before the status 503 is sent. Further ones are closed at once.
pub const WEB_REFUSALS: usize = 200;

/// Concurrent TLS handshakes, each no longer than [`WEB_HEAD_WAIT`]; further ones are closed. Fewer than
/// [`WEB_CONNECTIONS`], so that silent connections cannot use all of them.
pub const WEB_HANDSHAKES: usize = 1_000;

/// Connections in the listen backlog.
pub const WEB_BACKLOG: i32 = 4_096;

/// Bytes of events that the web server keeps for clients that read slowly or reconnect.
pub const WEB_LOG_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of events and responses that wait for a web client that reads slowly: two events with a long message each. With
/// more, the client is disconnected with the close code 1013. One longer response is sent if nothing else waits.
pub const WEB_UNREAD_BYTES: usize = 60 * 1024 * 1024;

/// Events that the web server keeps for such clients.
pub const WEB_LOG_ENTRIES: usize = 20_000;

/// Bytes that are written to a client at once.
pub const WEB_READ_BYTES: usize = 256 * 1024;

/// Longest message of a client, in bytes: an image of 20 MB in base64 with room to spare (web.md R6).
pub const WEB_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that all web clients hold together: incomplete requests and messages, messages that wait for a session, and
/// responses that wait for a reader. Further ones are refused with the status 503 or the close code 1013.
pub const WEB_MEMORY_BYTES: usize = 192 * 1024 * 1024;

/// Bytes of [`WEB_MEMORY_BYTES`] that one web client can hold: the longest message with room to spare.
pub const WEB_CLIENT_BYTES: usize = 80 * 1024 * 1024;

/// Bytes that each web client can hold besides [`WEB_MEMORY_BYTES`], so that large messages never keep small ones out.
pub const WEB_FREE_BYTES: usize = 16 * 1024;

/// Time without a byte after which an incomplete message or body longer than [`WEB_FREE_BYTES`] is given up.
pub const WEB_IDLE_WAIT: Duration = Duration::from_secs(60);

/// Initial read buffer of a socket in bytes.
pub const WEB_SOCKET_BUFFER: usize = 4 * 1024;

/// Bytes of answers to pings that are queued for a client that does not read.
pub const WEB_REPLY_BYTES: usize = 64 * 1024;

/// Shortest interval between two broadcasts of deltas. A thousand clients take about 6 ms, and the last one must not wait
/// longer than 20 ms on a busy machine.
pub const WEB_PICTURE: Duration = Duration::from_millis(10);

/// Idle time after which the server pings a client.
pub const WEB_PING: Duration = Duration::from_secs(20);

/// Unanswered pings after which a client is disconnected.
pub const WEB_PINGS_MISSED: u32 = 2;

/// Timeout for sending a frame to a client.
pub const WEB_SEND_WAIT: Duration = Duration::from_secs(30);

/// Messages that a web client can send in a burst.
pub const WEB_MESSAGE_BURST: u32 = 10_000;

/// Messages per second that a web client can send after a burst of [`WEB_MESSAGE_BURST`]. Further ones get an error
/// response.
pub const WEB_MESSAGE_RATE: u32 = 1_000;

/// Time for which a closed connection is still read.
pub const WEB_LINGER: Duration = Duration::from_secs(1);

/// Timeout for the body of a request.
pub const WEB_BODY_WAIT: Duration = Duration::from_secs(300);

/// Timeout for the response to a command over HTTP.
pub const WEB_ANSWER_WAIT: Duration = Duration::from_secs(600);

/// Timeout for the head of a request, also between requests of one connection.
pub const WEB_HEAD_WAIT: Duration = Duration::from_secs(15);

/// Longest head of a request, in bytes.
pub const WEB_HEAD_BYTES: usize = 32 * 1024;

/// Longest wait for clients to disconnect at shutdown.
pub const WEB_CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Longest wait for the last events of sessions at shutdown.
pub const WEB_LAST_WORDS: Duration = Duration::from_millis(200);

/// Wrong tokens within [`WEB_WRONG_WINDOW`] after which tokens are checked one at a time, [`WEB_WRONG_PAUSE`] apart.
pub const WEB_WRONG_TOKENS: usize = 20;

/// Interval between checks of tokens after [`WEB_WRONG_TOKENS`] wrong ones: ten guesses a second for all connections
/// together.
pub const WEB_WRONG_PAUSE: Duration = Duration::from_millis(100);

/// Requests that are queued for such a check; further ones get the status 429.
pub const WEB_WRONG_QUEUE: usize = 16;

/// Period in which wrong tokens are counted.
pub const WEB_WRONG_WINDOW: Duration = Duration::from_secs(60);
