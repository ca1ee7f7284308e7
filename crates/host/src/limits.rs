//! Every number that bounds what a session holds and waits for.

use std::time::Duration;

/// Events and responses that wait for the writer; a session waits when there are more.
pub const OUTBOX: usize = 1024;

/// Commands that wait for the session; the reader waits when there are more.
pub const MAILBOX: usize = 1024;

/// Reports of tools that wait for the session.
pub const REPORTS: usize = 256;

/// How long a session whose client is gone may take to end its run and write it down.
pub const END_WAIT: Duration = Duration::from_secs(2);

/// How long the session of a single prompt may take to end once that is answered.
pub const SINGLE_END: Duration = Duration::from_secs(5);

/// How long a cancelled tool may take to end before its result no longer counts.
pub const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Sessions that are open besides the first; more are refused.
pub const OPEN_SESSIONS: usize = 4_096;

/// Sessions that are asked whether they can be put away when another needs a place.
pub const RETIRE_TRIES: usize = 8;

/// How long a session may take to say whether it can be put away.
pub const RETIRE_WAIT: Duration = Duration::from_millis(250);

/// How long a session that is put away may take to end before it is opened again all the same.
pub const GONE_WAIT: Duration = Duration::from_secs(15);

/// How often it is looked for sessions that nobody uses, at least and at most.
pub const SWEEP: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));

/// Sessions that have been opened and are not known to the writer yet.
pub const JOINING: usize = 16;

/// Longest handle of a session, in bytes.
pub const HANDLE: usize = 64;

/// How long a directory may take to be listed.
pub const LIST_WAIT: Duration = Duration::from_secs(5);

/// Directories that are listed of one directory.
pub const LISTED_DIRECTORIES: usize = 10_000;

/// How long files are looked for while somebody types.
pub const FIND_WAIT: Duration = Duration::from_millis(200);

/// Files that are answered unless another number is asked for.
pub const FOUND_FILES: usize = 50;

/// Files that are answered at most.
pub const FOUND_FILES_MAX: usize = 500;

/// Clients that look for files at the same time.
pub const LOOKING: usize = 16;

/// Bytes of a running shell command's output that are kept for clients that come later.
pub const RUNNING_OUTPUT: usize = 64 << 10;

/// Statuses, widgets and titles that are kept for them.
pub const SHOWN: usize = 256;

/// How long sessions may take to say what they are.
pub const DESCRIBE_WAIT: Duration = Duration::from_secs(2);

/// Messages in both queues together; more are refused.
pub const QUEUED: usize = 1_000;

/// Context window, in tokens, of a model that does not say (pi-core.md 3.7).
pub const DEFAULT_WINDOW: u64 = 128_000;

/// Tools that a host may lend.
pub const HOST_TOOLS: usize = 512;

/// Bytes of one tool's definition, as JSON.
pub const HOST_TOOL_BYTES: usize = 256 << 10;

/// Bytes of the definitions of all tools of a host.
pub const HOST_TOOLS_BYTES: usize = 4 << 20;

/// Bytes of a tool's description that the system prompt shows.
pub const HOST_HINT: usize = 200;

/// URI schemes that a host may serve.
pub const HOST_SCHEMES: usize = 64;

/// Bytes of one scheme's definition, as JSON.
pub const HOST_SCHEME_BYTES: usize = 4 << 10;

/// Questions to the user of one session that wait for an answer; more get their default.
pub const OPEN_DIALOGS: usize = 64;

/// How long a question waits for an answer when neither its asker nor the settings say.
pub const DIALOG_WAIT: Duration = Duration::from_secs(300);

/// An editor takes longer than a click.
pub const EDITOR_FACTOR: u32 = 6;

/// Questions and things to show that wait for the session.
pub const UI_WISHES: usize = 16;

/// Letters of a call that a question about it shows; what is beyond is counted.
pub const ASKED_CALL: usize = 8 << 10;

/// Calls that the user allowed for the session; the oldest go.
pub const GRANTS: usize = 1_000;

/// Starts of the extension process within [`RESTART_WINDOW`], besides the first; after that it is left alone.
pub const RESTARTS: usize = 3;

/// See [`RESTARTS`].
pub const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// How long commands wait for extensions that are being loaded.
pub const OPEN_WAIT: Duration = Duration::from_secs(10);

/// How long a run that an extension's command began waits for the answer to that command.
pub const ANSWER_FIRST: Duration = Duration::from_millis(10);

/// How long extensions may take to say goodbye to a session that is left.
pub const FAREWELL: Duration = Duration::from_secs(2);

/// How long the process of extensions may take to deal with what it was told before a session ended.
pub const CLOSE: Duration = Duration::from_secs(1);

/// Failures of extensions on the way to a request that wait to be told.
pub const FAILURES: usize = 64;

/// Calls of tools that tools of extensions have under way at the same time; more are refused.
pub const NESTED_CALLS: usize = 256;

/// Commands and tools of one extension; what is beyond is left out.
pub const REGISTRATIONS: usize = 1_000;

/// Requests to models that extensions of a session have under way.
pub const EXTENSION_REQUESTS: usize = 64;

/// How long an extension may take to change its models after a login.
pub const CHANGE_MODELS: Duration = Duration::from_secs(2);

/// How long an extension may take to find out which models there are.
pub const REFRESH_MODELS: Duration = Duration::from_secs(10);

/// How often such a request is repeated below the surface, at most.
pub const EXTENSION_RETRIES: u32 = 10;
/// How long prompts wait for MCP servers that are being connected.
pub const MCP_WAIT: Duration = Duration::from_secs(10);

/// Bytes of text of an MCP tool's result that the model is shown; the whole is in a file (pi 1.x).
pub const MCP_TEXT: usize = 20 << 10;

/// Bytes of structured content that a result carries for clients.
pub const MCP_STRUCTURED: usize = 256 << 10;

/// User shell commands that run at the same time; more are refused.
pub const BASH_RUNNING: usize = 64;

/// Most sessions that the extensions of one session may have open beside it.
pub(crate) const SUBORDINATES: usize = 16;
/// How long a hook may run that does not say otherwise (dialects.md 10.3).
pub const HOOK_WAIT: Duration = Duration::from_secs(30);

/// Bytes that a hook executable may answer.
pub const HOOK_OUTPUT: usize = 16 << 20;

/// Bytes of a hook executable's standard error that are kept.
pub const HOOK_ERRORS: usize = 64 << 10;

/// Letters of them that people and models get to see.
pub const HOOK_WORDS: usize = 4 << 10;

/// Bytes read from a hook executable at once.
pub const HOOK_CHUNK: usize = 16 << 10;

/// How long the outputs of a hook executable are read when it has ended and something of its own holds them open.
pub const HOOK_DRAIN: Duration = Duration::from_millis(250);

/// Hook executables of one session that run at the same time: so many that are asked, and so many that are only told.
pub const HOOKS_AT_ONCE: usize = 4;

/// Runs of one hook executable that wait because it has not dealt with what it was told before; more are left out.
pub const HOOK_LANE: usize = 256;

/// Bytes of a file that are looked at for its `#!` line.
pub const SHEBANG: usize = 512;

/// Hook executables of one session; more are refused.
pub const HOOKS: usize = 256;

/// Letters of an entry that an outline of the session's tree shows, counted as JavaScript does (web.md 1.5).
pub const PREVIEW: usize = 140;
