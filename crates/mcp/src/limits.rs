//! Every number that bounds what a server can make the agent hold, show or wait for.

use std::time::Duration;

/// Longest line of a server over stdio, in bytes. A longer one ends the connection.
pub const LINE: usize = 16 << 20;

/// Longest answer over HTTP with which a request is refused, in bytes.
pub const REFUSAL: usize = 64 << 10;

/// Consecutive invalid lines after which the connection is closed.
pub const GARBAGE: usize = 10_000;

/// Queued messages of a server.
pub const INBOX: usize = 16;

/// Answers to a server's own requests that it has not read. With more, the connection ends.
pub const ANSWERS: usize = 256;

/// Bytes of a line of a server's standard error that are logged.
pub const LOG_LINE: usize = 1_000;

/// Lines of a connection's standard error that are logged.
pub const LOG_LINES: usize = 2_000;

/// Lines of its standard error that are kept for a failure to show.
pub const TAIL_LINES: usize = 10;

/// Timeout for writing to a server.
pub const WRITE: Duration = Duration::from_secs(10);

/// Timeout for start and handshake of a server. `npx` may have to download it first.
pub const START: Duration = Duration::from_secs(60);

/// Wait for the answer to `server/discover`, after which a server counts as one of an older revision.
pub const PROBE: Duration = Duration::from_secs(3);

/// Rounds in which a server may ask for more input before it answers a request.
pub const ROUNDS: usize = 10;

/// Time for a server to end after its stdin was closed.
pub const STOP: Duration = Duration::from_secs(2);

/// Time until a call without a server fails.
pub const NOTICE: Duration = Duration::from_secs(1);

/// Default timeout of a request. Progress restarts it. It stands still while the server asks the user.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Longest timeout in a configuration.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);

/// Total time of a request, as a multiple of its timeout.
pub const TIMEOUT_FACTOR: u32 = 10;

/// First and longest delay before a reconnect.
pub const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Streams of events that one HTTP connection opens within [`STREAMS_PERIOD`].
pub const STREAMS: usize = 10;

/// Period in which streams of events are counted.
pub const STREAMS_PERIOD: Duration = Duration::from_secs(10);

/// Consecutive failures after which a server is only reconnected on demand.
pub const ATTEMPTS: u32 = 5;

/// Duration of a connection after which earlier failures no longer count.
pub const STEADY: Duration = Duration::from_secs(30);

/// Delay after a list change, to combine changes.
pub const SETTLE: Duration = Duration::from_millis(100);

/// Pages of one list.
pub const PAGES: usize = 50;

/// Bytes of all pages of one list, as JSON. No further page is read then.
pub const LIST_BYTES: usize = 16 << 20;

/// Tools, prompts or resources of one server. Further ones are ignored.
pub const ITEMS: usize = 500;

/// Bytes of descriptions and schemas of all tools of one server.
pub const TOOLS_BYTES: usize = 2 << 20;

/// Bytes of the schema of a tool. Pinion replaces a larger schema by an empty one, which accepts everything.
pub const SCHEMA_BYTES: usize = 128 << 10;

/// Bytes of a description.
pub const DESCRIPTION: usize = 16 << 10;

/// Bytes of a displayed name or title.
pub const NAME: usize = 128;

/// Bytes of a name in the protocol.
pub const RAW_NAME: usize = 1_024;

/// Bytes of a server's instructions.
pub const INSTRUCTIONS: usize = 16 << 10;

/// Longest name of a tool that all models accept.
pub const TOOL_NAME: usize = 64;

/// Bytes of an error text.
pub const ERROR: usize = 2_000;

/// Blocks of one result.
pub const BLOCKS: usize = 1_000;

/// Queued progress messages of one call. Further ones are dropped.
pub const PROGRESS: usize = 16;

/// Open dialogs of one server. Further ones are declined.
pub const QUESTIONS: usize = 4;

/// Fields of one question.
pub const FIELDS: usize = 32;

/// Servers of one session.
pub const SERVERS: usize = 64;

/// Bytes of a configuration file.
pub const CONFIG: u64 = 1 << 20;

/// Bytes of a response of an authorisation server.
pub const OAUTH_BODY: usize = 1 << 20;

/// Timeout of an authorisation server.
pub const OAUTH: Duration = Duration::from_secs(30);

/// Wait at the end of the process for refreshes of logins that are under way, as for logins at providers of models.
pub const FINISH: Duration = Duration::from_secs(20);
