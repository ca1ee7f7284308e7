//! Every number that bounds what a session holds and waits for.

use std::time::Duration;

/// Queued events and responses. With more, the session waits.
pub const OUTBOX: usize = 1024;

/// Time for a client to take the `tool_execution_start` of an `edit` or `write`, until which the file stays as it was.
// Editors read the file when they receive that event, and must find it as it was (see `Toolbox::turn` of the crate `tools`).
pub const START_LINE_WAIT: Duration = Duration::from_secs(10);

/// Bytes of queued deltas of about the same length. With more, the session waits. Deltas of all lengths together can take seven
/// times as much.
pub const OUTBOX_DELTA_BYTES: usize = 1 << 20;

/// Bytes of queued responses of about the same length. With more, the session waits. One longer response is queued if nothing else
/// is.
// The number of places alone bounds no memory: 1,000 requests for trees or texts took 0.5 GB.
pub const OUTBOX_RESPONSE_BYTES: usize = 8 << 20;

/// Least output limit, in tokens, to which a session lowers that of the model so that it fits into the context window.
// With less room the limit of the model stays, since an estimate of the context can be too high (pi-1.5-delta.md 5).
pub const LEAST_OUTPUT: u64 = 1_024;

/// Longest wait of a start or of `switch_session` for another process to close the session file.
pub const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Pause between two attempts to open a session file that another process has open.
pub const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Queued commands of a session. With more, the reader waits.
pub const MAILBOX: usize = 1024;

/// Most messages that a client can ask for in a page of `get_messages_page`.
// This number and the next two are those of oh-my-pi (dialects.md 14).
pub const PAGE_MESSAGES: usize = 256;

/// Messages in a page if the client names no limit.
pub const PAGE_MESSAGES_USUAL: usize = 100;

/// Largest page of several messages, in bytes of JSON.
pub const PAGE_BYTES: usize = 768 * 1024;

/// Queued reports of tools.
pub const REPORTS: usize = 256;

/// Queued reports of commands that clients run with `bash`. With more, the commands wait.
pub const SHELL_REPORTS: usize = 8;

/// How often a session whose queue has no room looks whether its senders are gone.
pub const END_POLL: Duration = Duration::from_millis(100);

/// Time for a session without a client to end and save its run.
pub const END_WAIT: Duration = Duration::from_secs(2);

/// Time for the session of `--print` to end after the answer.
pub const SINGLE_END: Duration = Duration::from_secs(5);

/// Time for a cancelled tool to end. Its result is ignored afterwards.
pub const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// Lists of models that a session requests from local servers at a time. Further ones wait.
pub const MODEL_LISTINGS: usize = 4;

/// Concurrent commands of a session that only read, waiting ones included. Further ones are refused.
pub const QUERIES: usize = 256;

/// Partial results of a client tool that its call has not taken yet.
pub const CLIENT_UPDATES: usize = 16;

/// Open sessions, not counting the first. Pinion refuses further ones.
// Documented for users (docs/guides/sessions.md).
pub const OPEN_SESSIONS: usize = 4_096;

/// Time for which a session waits for a place while all open sessions are busy. Then its requests are refused.
// Promised to users (GUARANTEES.md, 49).
pub const ROOM_WAIT: Duration = Duration::from_secs(10);

/// Sessions that wait for a place. Further ones are refused.
pub const ROOM_WAITERS: usize = 256;

/// Pause after all open sessions were found busy.
pub const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// Sessions in one place that were left while entries waited to be written. With more, the session cannot be left.
// Documented for users (docs/guides/sessions.md).
pub const LEFT_SESSIONS: usize = 16;

/// First and longest pause between attempts to write entries that could not be written.
pub const STORAGE_RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// Time for a session to report whether it is idle.
// An idle session answers at once. With less, a stall of the machine evicts another session than the least recently used one.
pub const RETIRE_WAIT: Duration = Duration::from_secs(1);

/// Time for which no other request is delivered while a session is asked whether it is idle.
// A session that hangs must not delay the abort of another one for the whole of `RETIRE_WAIT`. Once the client is gone, sessions wait
// so long for a place.
pub const RETIRE_HOLD: Duration = Duration::from_millis(250);

/// Time for an evicted session to end before it is opened again.
pub const GONE_WAIT: Duration = Duration::from_secs(15);

/// Shortest and longest interval of the search for idle sessions.
pub const SWEEP: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));

/// Opened sessions that the writer does not know yet.
pub const JOINING: usize = 16;

/// Longest handle of a session, in bytes.
pub const HANDLE: usize = 64;

/// Timeout for listing a directory.
pub const LIST_WAIT: Duration = Duration::from_secs(5);

/// Most directories in a listing.
pub const LISTED_DIRECTORIES: usize = 10_000;

/// Time limit of `find_files`.
pub const FIND_WAIT: Duration = Duration::from_millis(200);

/// Default number of results of `find_files`.
pub const FOUND_FILES: usize = 50;

/// Maximum number of results of `find_files`.
pub const FOUND_FILES_MAX: usize = 500;

/// Concurrent `find_files` commands.
pub const LOOKING: usize = 16;

/// Bytes of output of a running `bash` command that are kept for snapshots.
pub const RUNNING_OUTPUT: usize = 64 << 10;

/// Statuses, widgets and titles that are kept for snapshots.
pub const SHOWN: usize = 256;

/// Time for sessions to report their state for `list_open_sessions`.
pub const DESCRIBE_WAIT: Duration = Duration::from_secs(2);

/// Messages in both queues together. Further ones are refused.
// Clients read this number in the reply of `get_protocol`.
pub const QUEUED: usize = 1_000;

/// Default context window of a model, in tokens.
// The number is that of pi, for budgets of branch summaries (pi-core.md 3.7).
pub const DEFAULT_WINDOW: u64 = 128_000;

/// Client tools.
pub const HOST_TOOLS: usize = 512;

/// Bytes of the definition of a client tool.
pub const HOST_TOOL_BYTES: usize = 256 << 10;

/// Bytes of the definitions of all client tools.
pub const HOST_TOOLS_BYTES: usize = 4 << 20;

/// Bytes of the description of a client tool in the system prompt.
pub const HOST_HINT: usize = 200;

/// URI schemes of a client.
pub const HOST_SCHEMES: usize = 64;

/// Bytes of the definition of a URI scheme.
pub const HOST_SCHEME_BYTES: usize = 4 << 10;

/// Open dialogs of a session. Further ones return their default.
// Clients read this number in the reply of `get_protocol`.
pub const OPEN_DIALOGS: usize = 64;

/// Factor for the timeout of a dialog with an editor.
// Documented for users (docs/guides/dialogs.md).
pub const EDITOR_FACTOR: u32 = 6;

/// Queued dialogs and notifications.
pub const UI_WISHES: usize = 16;

/// Time for a permission dialog to read the file of an edit. Without it, the dialog shows the replacements.
pub const ASKED_WAIT: Duration = Duration::from_secs(5);

/// Characters of the user's reason for a denial that the model receives.
pub const DENIAL_REASON: usize = 2_000;

/// Restarts of an extension process within [`RESTART_WINDOW`].
// Promised to users (GUARANTEES.md, 32).
pub const RESTARTS: usize = 3;

/// Period in which restarts are counted.
pub const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// Time for which commands wait for extensions that are loading.
pub const OPEN_WAIT: Duration = Duration::from_secs(10);

/// Time for which a run waits for the response to the extension command that started it.
pub const ANSWER_FIRST: Duration = Duration::from_millis(10);

/// Time for which the response to a new model waits for the extensions that hear of it.
// As in today's pi, handlers hear of it before the client does. A handler that hangs must not keep the response back.
pub const MODEL_HANDLERS: Duration = Duration::from_secs(10);

/// Time for which an answer of the model waits for the extensions that hear of the response.
pub const RESPONSE_HANDLERS: Duration = Duration::from_secs(10);

/// Time for which the end of a compaction waits for the extensions that hear of it.
pub const COMPACTION_HANDLERS: Duration = Duration::from_secs(10);

/// Time for which the response to a new thinking level waits for the extensions that hear of it.
pub const LEVEL_HANDLERS: Duration = Duration::from_secs(1);

/// Timeout of `session_shutdown`.
// Also the time that handlers have after an abort (`AbortGrace`). For `message_end` it is promised (GUARANTEES.md, 36).
pub const FAREWELL: Duration = Duration::from_secs(2);

/// Time for the extension process to handle pending events at the end of a session.
pub const CLOSE: Duration = Duration::from_secs(1);

/// Queued failures of extensions during a request.
pub const FAILURES: usize = 64;

/// Concurrent tool calls from tools of extensions. Further ones are refused.
pub const NESTED_CALLS: usize = 256;

/// Commands and tools of one extension. Further ones are ignored.
pub const REGISTRATIONS: usize = 1_000;

/// Concurrent model requests of the extensions of a session.
pub const EXTENSION_REQUESTS: usize = 64;

/// Running slash commands that extensions sent as messages, in a session.
pub const SENT_COMMANDS: usize = 64;

/// Timeout for an extension to change its models after a login.
pub const CHANGE_MODELS: Duration = Duration::from_secs(2);

/// Age from which the list of models of another process is removed. Long, since the age is all that tells of its end.
pub const OLD_MODEL_LISTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Timeout for an extension to list its models.
pub const REFRESH_MODELS: Duration = Duration::from_secs(10);

/// Retries of such a request.
pub const EXTENSION_RETRIES: u32 = 10;
/// Time for which prompts wait for MCP servers that are connecting.
// Promised to users (GUARANTEES.md, 39).
pub const MCP_WAIT: Duration = Duration::from_secs(10);

/// Interval between two progress reports of an MCP call to clients.
pub const MCP_PROGRESS: Duration = Duration::from_millis(100);

/// Bytes of the text of an MCP result that the model receives. The whole text is in a file.
// Documented for users (docs/guides/mcp.md).
pub const MCP_TEXT: usize = 20 << 10;

/// Bytes of structured content of an MCP result for clients.
pub const MCP_STRUCTURED: usize = 256 << 10;

/// Concurrent `bash` commands of the user. Further ones are refused.
// Clients read this number in the reply of `get_protocol`.
pub const BASH_RUNNING: usize = 64;

/// Background processes of one session that run at the same time.
// Promised to users, and so is `PROCESS_OUTPUT` (GUARANTEES.md, 92).
pub(crate) const PROCESSES: usize = 50;

/// Ended background processes that a session keeps.
pub(crate) const ENDED_PROCESSES: usize = 50;

/// Bytes of the output of a background process that are kept.
pub(crate) const PROCESS_OUTPUT: usize = 512 * 1024;

/// Bytes of the output of a background process that the model gets at once.
// Documented for users, and so is `PROCESS_FIRST_WAIT` (docs/guides/background-processes.md).
pub(crate) const PROCESS_TEXT: usize = 50 * 1024;

/// Bytes that are read of a background process at once.
pub(crate) const PROCESS_READ: usize = 64 * 1024;

/// How long a background process that prints much is not read, for each two processes that are read.
pub(crate) const PROCESS_PAUSE: Duration = Duration::from_millis(1);

/// How long the output of an ended background process is read.
pub(crate) const PROCESS_DRAIN: Duration = Duration::from_millis(250);

/// How long a background process may take to read its input.
pub(crate) const PROCESS_INPUT_WAIT: Duration = Duration::from_secs(5);

/// Bytes of a line that the model types in several calls. Rules judge the line as a whole.
pub(crate) const PROCESS_LINE: usize = 16 * 1024;

/// How long `bash` waits for a background process that fails at once.
pub(crate) const PROCESS_FIRST_WAIT: Duration = Duration::from_millis(300);

/// How long a model waits for a background process if it does not say.
// The model reads this number and the next one in the schema of the tool `process`.
pub(crate) const PROCESS_WAIT: Duration = Duration::from_secs(30);

/// How long a model can wait for a background process.
pub(crate) const PROCESS_WAIT_MAX: Duration = Duration::from_secs(600);

/// How often ends of background processes wake a session without a prompt in between.
pub(crate) const PROCESS_WAKEUPS: usize = 5;

/// Time between two looks whether a process listens on a port.
pub(crate) const PORT_PAUSE: Duration = Duration::from_millis(100);

/// Sub-agents of one session that work at the same time, even if the settings allow more.
pub(crate) const SUBAGENTS: u32 = 32;

/// Characters of the arguments of a sub-agent's tool call in its progress.
pub(crate) const SUBAGENT_ARGS: usize = 200;

/// Ended tool calls in the progress of a sub-agent.
pub(crate) const SUBAGENT_RECENT_TOOLS: usize = 5;

/// Lines of the newest answer in the progress of a sub-agent.
pub(crate) const SUBAGENT_RECENT_LINES: usize = 8;

/// Milliseconds between two reports of progress of a sub-agent.
pub(crate) const SUBAGENT_PROGRESS_MS: u64 = 100;

/// Sub-agents of a session whose conversations clients can read.
pub(crate) const SUBAGENT_TRANSCRIPTS: usize = 256;

/// Bytes of a sub-agent's session file in one response.
pub(crate) const SUBAGENT_TRANSCRIPT_BYTES: u64 = 8 * 1024 * 1024;

/// Subordinate sessions of the extensions of one session.
// Promised to users (GUARANTEES.md, 34).
pub(crate) const SUBORDINATES: usize = 16;
/// Bytes of the output of a hook.
pub const HOOK_OUTPUT: usize = 16 << 20;

/// Bytes of stderr of a hook that are kept.
pub const HOOK_ERRORS: usize = 64 << 10;

/// Characters of stderr of a hook that users and models see.
pub const HOOK_WORDS: usize = 4 << 10;

/// Bytes that are read from a hook at once.
pub const HOOK_CHUNK: usize = 16 << 10;

/// Time for which output is read after a hook ended, if a child process holds the pipe open.
pub const HOOK_DRAIN: Duration = Duration::from_millis(250);

/// Concurrent hooks of one session, separately for hooks that are awaited and hooks that are not.
pub const HOOKS_AT_ONCE: usize = 4;

/// Queued runs of one hook. Further ones are skipped.
pub const HOOK_LANE: usize = 256;

/// Events that wait until the session passes them on to extensions and hooks. With more, sub-agents and background processes wait.
pub const LISTENER_EVENTS: usize = 1024;

/// Longest wait of a sub-agent or a background process for room in this queue. Then its event is queued all the same.
pub const LISTENER_WAIT: Duration = Duration::from_secs(5);

/// Characters (UTF-16 units) of the preview of an entry in `get_session_tree`.
// The pages of the web protocol expect at most this length (web.md 1.5).
pub const PREVIEW: usize = 140;

/// Queued lines of the record of inputs (`--record-inputs`), and bytes of them. Further lines are dropped.
pub const INPUT_RECORD_LINES: usize = 4_096;
/// See [`INPUT_RECORD_LINES`].
pub const INPUT_RECORD_QUEUE_BYTES: usize = 16 << 20;

/// Bytes of the record of inputs. It ends there.
// Documented for users (docs/guides/recording.md).
pub const INPUT_RECORD_FILE_BYTES: usize = 256 << 20;

/// Time for the last lines of the record of inputs to be written at the end of the process.
pub const INPUT_RECORD_END: Duration = Duration::from_secs(2);

/// How long after a request its entry in the provider's prompt cache is refreshed while a run continues.
// The figures of cache warming are those of pi 1.5.
pub const CACHE_WARMING_RUNNING: Duration = Duration::from_secs(3600);

/// The same while the session is idle.
pub const CACHE_WARMING_IDLE: Duration = Duration::from_secs(1800);

/// What at least remains of the lifetime of an entry when its refresh is sent.
pub const CACHE_WARMING_MARGIN: Duration = Duration::from_secs(10);

/// Bytes of an image that a session file of oh-my-pi refers to. A larger one is left out.
pub const BLOB_BYTES: u64 = 32 << 20;

/// Bytes of base64 of all these images of a conversation. Older ones that have no room are left out.
pub const BLOBS_BYTES: usize = 256 << 20;
