//! Every number that bounds memory or time in this crate. No behaviour lives here.

use std::time::Duration;

/// Longest accepted head (request line and headers) of a request, bytes.
pub const MAX_HEAD: usize = 64 * 1024;
/// Longest accepted request body, bytes; longer ones are answered with 413.
pub const MAX_BODY: usize = 256 * 1024 * 1024;
/// Requests kept for [`crate::llm::ScriptedServer::requests`] unless the options say otherwise; older ones are forgotten.
pub const MAX_RECORDED: usize = 20_000;
/// Connections served at the same time; one more is closed at once.
pub const MAX_CONNECTIONS: usize = 1024;
/// An idle connection, or a client that does not read, is given up after this time.
pub const CONNECTION_IDLE: Duration = Duration::from_secs(120);
/// Pause between two looks at whether a client has gone, while a reply is held back.
pub const POLL: Duration = Duration::from_millis(10);
/// How long dropping a server waits for its connection threads.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// Size of one piece of generated filler, bytes.
pub const FILL_PIECE: usize = 64 * 1024;
/// Most tool calls or deltas one generator may ask for.
pub const MAX_GENERATED: u64 = 10_000_000;

/// Longest output line of an agent that is kept; the rest of such a line is counted and thrown away.
pub const MAX_LINE: usize = 64 * 1024 * 1024;
/// Bytes of output lines kept unless the configuration says otherwise.
pub const KEPT_OUTPUT: usize = 512 * 1024 * 1024;
/// Bytes of stderr kept (the last ones).
pub const KEPT_STDERR: usize = 1024 * 1024;
/// Bytes read from a pipe at a time.
pub const READ_PIECE: usize = 64 * 1024;
/// Time a write to an agent's stdin may take unless the configuration says otherwise.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time a step of a script may take unless it says otherwise.
pub const STEP_TIMEOUT: Duration = Duration::from_secs(40);
/// Output lines shown in a timeout error.
pub const CONTEXT_LINES: usize = 8;
/// Characters shown of each such line, and of stderr times eight.
pub const CONTEXT_CHARS: usize = 300;
/// How long a failed wait waits for the exit status of an agent whose output has ended.
pub const EXIT_GRACE: Duration = Duration::from_secs(10);
/// How long dropping an agent waits for the killed process to be collected.
pub const REAP_GRACE: Duration = Duration::from_secs(5);
