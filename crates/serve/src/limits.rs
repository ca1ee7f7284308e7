//! Every number that bounds what this crate keeps, accepts or waits for.

use std::time::Duration;

/// Longest line that is accepted, in bytes without the line feed.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// Bytes asked of the input at once, and the size to which the reader's buffer shrinks after a long line.
pub const READ_CHUNK: usize = 64 * 1024;

/// Longest command name that is echoed whole in an error, in bytes.
pub const MAX_NAME_ECHO: usize = 1024;

/// Bytes of input lines that may wait in both lanes together; a longer line waits alone.
pub const INPUT_QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// Bytes after which a batch of output is handed over; a single line may be longer.
pub const BATCH_BYTES: usize = 256 * 1024;

/// Batches that exist at once: one is written while the next is filled.
pub const BATCHES: usize = 2;

/// Bytes that a pipe to the reader should hold, where the system lets us choose: with a small one a long line goes over in many
/// pieces, and each waits for the reader to be given the processor.
pub const PIPE_BYTES: usize = 1024 * 1024;

/// Capacity that a batch's buffer keeps after it was written, in bytes.
pub const BATCH_KEEP: usize = 1024 * 1024;

/// Answers up to this many bytes of content are updated with every batch of deltas, in bytes.
pub const SMALL_ANSWER: usize = 4 * 1024;

/// An update of a longer answer is due when it brings one part in this many of the answer. Each update repeats the answer
/// twice, so an answer costs about twice this many times its own size.
pub const UPDATE_SHARE: usize = 24;

/// An update is also due when the one before it would have passed at this rate, in bytes per second.
pub const UPDATE_RATE: u64 = 8_000_000;

/// Events that a connection keeps to send them again, when it was asked to number them.
pub const REPLAY_EVENTS: usize = 10_000;

/// Bytes of events that a connection keeps for the same purpose.
pub const REPLAY_BYTES: usize = 4 * 1024 * 1024;

/// Longest silence before a heartbeat that can be asked for, in seconds.
pub const MAX_HEARTBEAT: u64 = 3_600;

/// Wishes of one `hello` that are refused by name.
pub const MAX_REFUSALS: usize = 32;

/// Longest wait for the reader of stdout at a shutdown.
pub const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Stack of the threads that read stdin and write stdout, in bytes.
pub const IO_STACK: usize = 512 * 1024;

/// Stack of the thread that waits for stdout to be closed, in bytes.
pub const WATCH_STACK: usize = 64 * 1024;

/// Most handles that a `hello` may name.
pub const MAX_SESSIONS: usize = 4_096;

/// Clients of a web door at the same time: sockets, streams of events and commands that wait for their answer.
pub const WEB_CLIENTS: usize = 1_200;

/// Connections to a web door at the same time, sockets among them; more are told so with 503. Fewer where the system gives
/// the process fewer files.
pub const WEB_CONNECTIONS: usize = 2_000;

/// Connections beyond those that are told so and heard out at the same time; the others are told and closed.
pub const WEB_REFUSALS: usize = 200;

/// TLS handshakes under way at the same time, each no longer than [`WEB_HEAD_WAIT`]; more are closed. Fewer than
/// [`WEB_CONNECTIONS`], so that connections that say nothing cannot take all places.
pub const WEB_HANDSHAKES: usize = 1_000;

/// Connections that may wait until they are accepted.
pub const WEB_BACKLOG: i32 = 4_096;

/// Bytes of events that a web door keeps for clients that read slowly or come back.
pub const WEB_LOG_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of events that it keeps while a client that is there has not read them: two events with a long message each.
pub const WEB_UNREAD_BYTES: usize = 80 * 1024 * 1024;

/// Events that it keeps for them.
pub const WEB_LOG_ENTRIES: usize = 20_000;

/// Bytes of answers that may wait for one client of a web door.
pub const WEB_PRIVATE_BYTES: usize = 256 * 1024 * 1024;

/// About how many bytes a client is given at once.
pub const WEB_READ_BYTES: usize = 256 * 1024;

/// Longest message of a client, in bytes: an image of 20 MB in base64 with room to spare (web.md R6).
pub const WEB_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of messages of all clients that may wait for a session.
pub const WEB_INPUT_BYTES: usize = 256 * 1024 * 1024;

/// Buffer of a socket for what it reads, in bytes. It grows with what comes.
pub const WEB_SOCKET_BUFFER: usize = 4 * 1024;

/// Bytes of answers to pings that may wait for a client that reads nothing.
pub const WEB_REPLY_BYTES: usize = 64 * 1024;

/// Shortest time between two times that deltas are shown: a hundred a second. A thousand clients are told in some 6 ms, and the
/// last of them shall not know later than after 20, on a busy machine, too.
pub const WEB_PICTURE: Duration = Duration::from_millis(10);

/// Silence after which a client is asked whether it is there.
pub const WEB_PING: Duration = Duration::from_secs(20);

/// Pings in a row that a client may leave unanswered.
pub const WEB_PINGS_MISSED: u32 = 2;

/// Longest wait for a client to take a frame.
pub const WEB_SEND_WAIT: Duration = Duration::from_secs(30);

/// Messages that a client of a web door may send in a row; see [`WEB_MESSAGE_RATE`].
pub const WEB_MESSAGE_BURST: u32 = 10_000;

/// Messages that it may send per second after that; more are refused by an answer that says so.
pub const WEB_MESSAGE_RATE: u32 = 1_000;

/// How long a connection that we end is read on, so that its last words arrive.
pub const WEB_LINGER: Duration = Duration::from_secs(1);

/// Longest wait for the body of a request.
pub const WEB_BODY_WAIT: Duration = Duration::from_secs(300);

/// Longest wait for the answer to a command that came over plain HTTP.
pub const WEB_ANSWER_WAIT: Duration = Duration::from_secs(600);

/// Longest wait for the head of a request, also between requests of one connection.
pub const WEB_HEAD_WAIT: Duration = Duration::from_secs(15);

/// Longest head of a request, in bytes.
pub const WEB_HEAD_BYTES: usize = 32 * 1024;

/// Longest wait for clients to go when the agent ends.
pub const WEB_CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Longest wait for the last words of sessions when the agent ends, after they have ended.
pub const WEB_LAST_WORDS: Duration = Duration::from_millis(200);

/// Wrong tokens within [`WEB_WRONG_WINDOW`] after which tokens are looked at one by one, [`WEB_WRONG_PAUSE`] apart.
pub const WEB_WRONG_TOKENS: usize = 20;

/// See [`WEB_WRONG_TOKENS`]: ten guesses a second, however many connections they come from.
pub const WEB_WRONG_PAUSE: Duration = Duration::from_millis(100);

/// Requests that may wait for their turn then; more are refused with 429.
pub const WEB_WRONG_QUEUE: usize = 16;

/// See [`WEB_WRONG_TOKENS`].
pub const WEB_WRONG_WINDOW: Duration = Duration::from_secs(60);
