//! Every number that bounds what a server can make the agent hold, show or wait for.

use std::time::Duration;

/// Longest line of a server over stdio, in bytes: that of HTTP answers. A longer one ends the connection.
pub const LINE: usize = 16 << 20;

/// Lines in a row that are no messages before the connection is ended.
pub const GARBAGE: usize = 10_000;

/// Messages of a server that wait to be dealt with.
pub const INBOX: usize = 16;

/// Bytes of a line of a server's standard error that are logged.
pub const LOG_LINE: usize = 1_000;

/// Lines of a connection's standard error that are logged.
pub const LOG_LINES: usize = 2_000;

/// Lines of its standard error that are kept for a failure to show.
pub const TAIL_LINES: usize = 10;

/// How long a server may take not to read what it is sent.
pub const WRITE: Duration = Duration::from_secs(10);

/// How long a server may take to start and to introduce itself. `npx` may have to fetch it first.
pub const START: Duration = Duration::from_secs(60);

/// How long a server may take to end after its input was closed.
pub const STOP: Duration = Duration::from_secs(2);

/// How long a call that lost its server waits for that to be known.
pub const NOTICE: Duration = Duration::from_secs(1);

/// How long a request waits when the configuration does not say. Progress begins it anew.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Longest wait that a configuration can ask for.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);

/// How many times its time-out a request may take in all, progress or not.
pub const TIMEOUT_FACTOR: u32 = 10;

/// Waits before a server that failed is tried again: the first, and the longest.
pub const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Failures in a row after which a server is left alone until somebody wants something of it.
pub const ATTEMPTS: u32 = 5;

/// How long a connection must hold for its failures to be forgotten.
pub const STEADY: Duration = Duration::from_secs(30);

/// How long lists that change are waited with, for more changes.
pub const SETTLE: Duration = Duration::from_millis(100);

/// Pages of one list.
pub const PAGES: usize = 50;

/// Tools, prompts or resources of one server; what is beyond is left out.
pub const ITEMS: usize = 500;

/// Bytes of descriptions and schemas of all tools of one server.
pub const TOOLS_BYTES: usize = 2 << 20;

/// Bytes of one tool's schema; a larger one is replaced by one that takes everything.
pub const SCHEMA_BYTES: usize = 128 << 10;

/// Bytes of a description.
pub const DESCRIPTION: usize = 16 << 10;

/// Bytes of a name or title as it is shown.
pub const NAME: usize = 128;

/// Bytes of a name on the wire, which the server must be called by.
pub const RAW_NAME: usize = 1_024;

/// Bytes of a server's instructions.
pub const INSTRUCTIONS: usize = 16 << 10;

/// Longest name of a tool that every model takes.
pub const TOOL_NAME: usize = 64;

/// Bytes of an error text.
pub const ERROR: usize = 2_000;

/// Blocks of one result.
pub const BLOCKS: usize = 1_000;

/// Progress of one call that waits to be shown; newer ones are dropped.
pub const PROGRESS: usize = 16;

/// Questions of one server to the user that are out; more are declined.
pub const QUESTIONS: usize = 4;

/// Fields of one question.
pub const FIELDS: usize = 32;

/// Servers of one session.
pub const SERVERS: usize = 64;

/// Bytes of a configuration file.
pub const CONFIG: u64 = 1 << 20;

/// Bytes of an answer of an authorisation server.
pub const OAUTH_BODY: usize = 1 << 20;

/// How long an authorisation server may take.
pub const OAUTH: Duration = Duration::from_secs(30);
