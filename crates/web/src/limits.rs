//! Every number that bounds what the web server keeps, accepts or waits for.

use std::time::Duration;

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

/// Bytes of memory that events and responses take while they wait for a web client that reads slowly. Text that several events
/// repeat counts once, so that the longest answer fits. With more, the client is disconnected with the close code 1013. One longer
/// response is sent if nothing else waits.
pub const WEB_UNREAD_BYTES: usize = 60 * 1024 * 1024;

/// Events that the web server keeps for such clients.
pub const WEB_LOG_ENTRIES: usize = 20_000;

/// Bytes of a file of `--serve-ui` that are read at once. A client that does not read it costs no more than that.
pub const WEB_FILE_BYTES: usize = 32 * 1024;

/// Bytes that are written to a client at once.
pub const WEB_READ_BYTES: usize = 256 * 1024;

/// Longest message of a client, in bytes: an image of 20 MB in base64 with room to spare (web.md R6).
pub const WEB_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Bytes that all web clients hold together: incomplete requests and messages, messages that wait for a session, and
/// responses that wait for a reader. Further ones are refused with the status 503 or the close code 1013. A command whose response does not
/// fit fails with an error over HTTP.
pub const WEB_MEMORY_BYTES: usize = 192 * 1024 * 1024;

/// Bytes of [`WEB_MEMORY_BYTES`] that one web client can hold: the longest message with room to spare.
pub const WEB_CLIENT_BYTES: usize = 80 * 1024 * 1024;

/// Bytes that each web client can hold in addition to [`WEB_MEMORY_BYTES`], so that large messages never keep small ones out.
pub const WEB_FREE_BYTES: usize = 16 * 1024;

/// Length from which a message is parsed on another thread, in bytes. Parsing 64 MiB takes long enough to delay all other clients.
pub const WEB_PARSE_BYTES: usize = 64 * 1024;

/// Frames and pieces of frames that are read from a client before the others get their turn.
pub const WEB_FRAMES_AT_ONCE: u32 = 64;

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

/// Sessions of workers that a gateway has open at a time.
pub const WEB_ROOMS: usize = 1_000;

/// Events of a session that a gateway loads when the first client comes, so that clients can continue by number.
pub const WEB_GATEWAY_EVENTS: u64 = 2_000;

/// Longest wait for a session of a worker when the first client comes.
pub const WEB_ROOM_WAIT: Duration = Duration::from_secs(30);

/// Time without clients after which a gateway closes its connection to a session.
pub const WEB_ROOM_IDLE: Duration = Duration::from_secs(60);

/// Pause between two looks for such sessions.
pub const WEB_ROOM_LOOK: Duration = Duration::from_secs(10);
