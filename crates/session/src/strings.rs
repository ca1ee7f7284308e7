//! Error sentences that clients match on (behaviour.md 1.7, dialects.md 2 and 7). Their wording is part of the protocol.

use std::fmt;
use std::time::Duration;

use wire::hosted::UriOperation;

/// A prompt came during a run without saying what to do with it. Told in the client's words (dialects.md 5, row 12).
pub(crate) const BUSY: &str = wire::dialect::BUSY;

/// A prompt came while the conversation is compacted, or the session moves in its tree. Told in the client's words as well.
pub(crate) const COMPACTING: &str = wire::dialect::COMPACTING;

/// The sandbox has no network, so nothing leaves the machine through a tool.
pub(crate) const FETCH_SANDBOX: &str =
    "The sandbox has no network, so pages are not fetched. The user can allow it: sandbox.network";

/// `--offline`.
pub(crate) const FETCH_OFFLINE: &str = "Pages are not fetched with --offline or PI_OFFLINE";

/// Limits, fallback models or a schema came with a message that waits in a queue.
pub(crate) const LIMITS_OF_QUEUED: &str = "Limits, fallback models and outputSchema belong to a prompt that starts a run; a run is active. For a session, use set_limits or set_fallback_models";

/// A limit prevents every further request.
pub(crate) fn limit_reached(limit: wire::run_limits::ReachedLimit) -> String {
    format!("Limit reached: {limit}. Set a higher limit with set_limits")
}

/// A cost cannot be limited.
pub(crate) fn unknown_price(provider: &str, id: &str) -> String {
    format!(
        "The price of {provider}/{id} is unknown, so its cost cannot be limited. Name the price in models.json (cost), or limit tokens"
    )
}

/// A session name was empty.
pub(crate) const EMPTY_NAME: &str = "Session name cannot be empty";

/// A page asked for a session that is not there (web.md 1.5).
pub(crate) const NO_SESSION_FILE: &str = "Session file not found";

/// Stands for an image whose file is missing in a session of oh-my-pi.
pub(crate) const MISSING_IMAGE: &str = "[The file of this image is missing or cannot be read.]";

/// A model that is not there, or has no credentials.
pub(crate) fn model_not_found(provider: Option<&str>, id: Option<&str>) -> String {
    // `undefined` is how pi, in JavaScript, writes a parameter that is missing (behaviour.md 1.6).
    format!(
        "Model not found: {}/{}",
        provider.unwrap_or("undefined"),
        id.unwrap_or("undefined")
    )
}

/// A command that the asker cannot use, although others can.
pub(crate) fn not_available(command: &str) -> String {
    format!("{command} is not available here")
}

/// A task of Pinion panicked before it had an answer.
pub(crate) const TASK_PANICKED: &str =
    "An internal error of Pinion ended this; stderr has the details. Try it again";

/// An extension wanted something of a session that was left before it was done.
pub(crate) const SESSION_LEFT: &str = "The session was left before this was done";

/// An entry that is not there.
pub(crate) fn entry_not_found(id: &str) -> String {
    format!("{}{id}", wire::omp::NO_ENTRY)
}

/// A queue is full.
pub(crate) fn queue_full(limit: usize) -> String {
    format!("The queue is full ({limit} messages); clear_queue empties it")
}

/// Too many shell commands run already.
pub(crate) fn too_many_commands(limit: usize) -> String {
    format!("{limit} bash commands are running already; abort_bash ends them")
}

/// A rewind while files or the conversation may change.
pub(crate) const REWIND_BUSY: &str =
    "Files cannot be rewound while a run or a bash command is active; abort it first";

/// A command of checkpoints in a session without them.
pub(crate) const CHECKPOINTS_OFF: &str =
    "Checkpoints are off; the option --checkpoints or the setting checkpoints turns them on";

/// A command of checkpoints in a session without a file.
pub(crate) const NO_CHECKPOINTS_IN_MEMORY: &str =
    "The session is not stored in a file, so it has no checkpoints";

/// A framing that is not spoken.
pub(crate) fn unknown_protocol(version: &serde_json::Value) -> String {
    // As JavaScript writes a value into a text.
    let shown = match version {
        serde_json::Value::Null => "undefined".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("Unsupported RPC protocol version: {shown}")
}

/// A cursor that no page has.
// The words of oh-my-pi, as in the next two texts (dialects.md 14).
pub(crate) const BAD_PAGE_CURSOR: &str = "Invalid RPC message cursor";

/// A page of too many or too few messages.
pub(crate) fn page_limit(most: usize) -> String {
    format!("RPC message page limit must be between 1 and {most}")
}

/// Fast mode for a model that has none.
pub(crate) const NO_FAST_MODE: &str = "Fast mode is unavailable for the current model.";

/// A background process that does not exist.
pub(crate) fn no_such_process(id: &str, known: &[&str]) -> String {
    let known = if known.is_empty() {
        "none"
    } else {
        &known.join(", ")
    };
    format!("There is no process \"{id}\". Processes: {known}")
}

/// More background processes than there may be.
pub(crate) fn too_many_processes(most: usize) -> String {
    format!("{most} background processes run already. End one of them first")
}

/// Input for a background process that has ended.
pub(crate) fn process_ended(id: &str) -> String {
    format!("Process {id} has ended")
}

/// Input for a background process whose line other input has changed since permission rules judged it.
pub(crate) fn line_changed(id: &str) -> String {
    format!(
        "Nothing was written: other input for {id} has changed the line since permissions checked this call. \
         Write it again, one call at a time"
    )
}

/// Input for a background process that does not read it.
pub(crate) fn process_does_not_read(id: &str) -> String {
    format!("Process {id} does not read its input")
}

/// A size for a background process that has no terminal.
pub(crate) fn no_terminal(id: &str) -> String {
    format!("Process {id} has no terminal")
}

/// A terminal for a command that does not run in the background.
pub(crate) const PTY_WITHOUT_BACKGROUND: &str = "pty needs background: true";

/// A wait for a port in a sandbox without network.
pub(crate) const PORT_WITHOUT_NETWORK: &str =
    "The sandbox has no network, so the process cannot listen on a port. Wait for text instead";

/// A process that ended does not wake the session once more.
pub(crate) fn too_many_wakeups(most: usize) -> String {
    format!(
        "{most} background processes have woken the session since the last prompt. Further ends do not wake it before the next prompt"
    )
}

/// A process that ended cannot wake the session.
pub(crate) fn not_woken(reason: &str) -> String {
    format!("A background process has ended, and the model cannot be told: {reason}")
}

/// A run that a compaction interrupted cannot go on.
pub(crate) fn not_resumed(reason: &str) -> String {
    format!("The run does not go on after the compaction: {reason}")
}

/// A second compaction while one is made for which a run was interrupted.
pub(crate) const ALREADY_COMPACTING: &str = "Compaction already in progress";

/// A compaction has no short summary.
pub(crate) fn no_short_summary(reason: impl fmt::Display) -> String {
    format!("The compaction is stored without a short summary: {reason}")
}

/// Input whose last line is too long to be judged.
pub(crate) fn line_too_long(most: usize) -> String {
    format!("A line of input may have at most {most} bytes")
}

/// A call of `task` for an agent that does not exist.
pub(crate) fn unknown_agent(name: &str, known: &[&str]) -> String {
    format!("There is no agent \"{name}\". Agents: {}", known.join(", "))
}

/// A call of `task` without a task.
pub(crate) const EMPTY_TASK: &str = "The prompt is empty";

/// A call of `task` that the model did not make.
pub(crate) const NO_TASKS_HERE: &str = "Only the model can give tasks to sub-agents";

/// A task of which the limits leave nothing.
pub(crate) fn nothing_left(limit: &str) -> String {
    format!("Nothing is left of the limit {limit}, so no sub-agent can work")
}

/// A sub-agent that a limit ended.
pub(crate) fn subagent_limit(limit: wire::run_limits::ReachedLimit, text: &str) -> String {
    let text = if text.trim().is_empty() { "nothing" } else { text };
    format!("The sub-agent was ended by a limit: {limit}. What it said last: {text}")
}

/// A sub-agent that gave no result.
pub(crate) const SUBAGENT_SILENT: &str = "The sub-agent ended without a result";

/// A task whose prompt no model gets.
pub(crate) const TASK_HANDLED: &str =
    "A hook or an extension has handled the prompt of this task, so no sub-agent works on it";

/// A sub-agent whose session ended.
pub(crate) const SUBAGENT_GONE: &str = "The session of the sub-agent has ended";

/// Messages of no sub-agent.
// The words of oh-my-pi, as in the next text (dialects.md 14).
pub(crate) const WHICH_SUBAGENT: &str = "get_subagent_messages requires subagentId or sessionFile";

/// Messages of a sub-agent that does not exist.
pub(crate) fn unknown_subagent(id: Option<&str>) -> String {
    id.map_or_else(
        || "Unknown subagent session file".to_owned(),
        |id| format!("Unknown subagent or session file unavailable: {id}"),
    )
}

/// A handoff during a run.
// The words of oh-my-pi, as in the next three texts (dialects.md 14).
pub(crate) const HANDOFF_BUSY: &str = "Cannot hand off while a response is in progress";

/// A handoff of an empty conversation.
pub(crate) const NOTHING_TO_HAND_OFF: &str = "Nothing to hand off (no messages yet)";

/// A handoff that would leave nothing out.
pub(crate) const NO_HANDOFF: &str = "Nothing to hand off (already compacted)";

/// A directory of sessions for a session without a file.
pub(crate) const NOT_STORED: &str = "open_session requires session persistence (omit --no-session)";

/// A fork at something that is no user message.
// The words of pi (pi-core.md 2.9).
pub(crate) const BAD_FORK: &str = "Invalid entry ID for forking";

/// `open_session` names a file to open and a file to copy.
pub(crate) const OPEN_OR_FORK: &str = "sessionPath and forkPath exclude each other";
/// `close_session` without a handle.
pub(crate) const FIRST_STAYS: &str = "The first session cannot be closed; it ends with the process";
/// A command that came after `close_session`.
pub(crate) const CLOSED: &str = "The session was closed";
/// Sessions are being closed.
pub(crate) const ENDING: &str = "The process is ending";
/// A directory could not be read in time.
pub(crate) const LIST_TOO_SLOW: &str = "The directory did not answer in time";
/// Sessions did not say what they are.
pub(crate) const NO_ANSWER: &str = "The sessions did not answer in time";

/// A handle that no open session has.
pub(crate) fn no_such_session(handle: &str) -> String {
    format!("No open session: {handle}")
}

/// A handle that an open session has.
pub(crate) fn handle_taken(handle: &str) -> String {
    format!("Session is open already: {handle}")
}

/// A handle that is empty or long.
pub(crate) fn bad_handle(limit: usize) -> String {
    format!("A session handle has 1 to {limit} bytes")
}

/// Too many sessions.
pub(crate) fn too_many_sessions(limit: usize) -> String {
    format!("{limit} sessions are open already; close_session ends one")
}

/// Too many sessions, and none can be evicted.
pub(crate) fn all_busy(limit: usize) -> String {
    format!("{limit} sessions are open already and none of them is at rest; close_session ends one")
}

/// An evicted session cannot be opened again.
pub(crate) fn cannot_go_on(handle: &str, file: Option<&str>, error: &str) -> String {
    let file = file.unwrap_or("no file");
    format!("Session {handle} was put away while nobody used it ({file}) and cannot be opened again: {error}")
}

/// A file that is no session of this agent.
pub(crate) fn not_our_session(path: &std::path::Path) -> String {
    format!("Not a session of this agent: {}", path.display())
}

/// A session that is open elsewhere.
pub(crate) fn session_is_open(path: &std::path::Path) -> String {
    format!("The session is open: {}", path.display())
}

/// A working directory that is not there.
pub(crate) fn no_such_directory(dir: &std::path::Path) -> String {
    format!("No such directory: {}", dir.display())
}

/// A session whose own directory is gone.
pub(crate) fn works_elsewhere(stored: &std::path::Path, cwd: &std::path::Path) -> String {
    format!(
        "The session's working directory {} does not exist any more: it works in {}",
        stored.display(),
        cwd.display()
    )
}

/// What a person means is not there.
pub(crate) fn no_path(path: &std::path::Path) -> String {
    format!("Path does not exist: {}", path.display())
}

/// What a person means is something else.
pub(crate) fn no_directory(path: &std::path::Path) -> String {
    format!("Path is not a directory: {}", path.display())
}

/// A branch at something that is no user message, by id and by line.
pub(crate) const BAD_BRANCH: &str = "Invalid entry ID for branching";
/// See [`BAD_BRANCH`].
pub(crate) const BAD_BRANCH_INDEX: &str = "Invalid entry index for branching";

/// A clone of a session without messages, for clients of today's pi.
pub(crate) const NOT_SAVED: &str =
    "This session has not been saved yet. Send a message before cloning or forking it.";
/// A clone of an empty session.
// Instead of `Entry <id> not found`, which pi answers for an empty session (behaviour.md 1.7).
pub(crate) const NOTHING_TO_CLONE: &str = "Cannot clone session: no current entry selected";

/// A queued message that does not wait any more.
pub(crate) fn not_queued(id: &str) -> String {
    format!("No queued message has the id {id}")
}

/// An extension wants another place of the tree during a run.
// The words of pi 1.5, as in the next text.
pub(crate) const MOVE_IN_RUN: &str =
    "Wait for the current response to finish before navigating the session tree.";

/// An extension wants another place of the tree while the session is compacted, or moves already.
pub(crate) const MOVE_BUSY: &str =
    "Wait for the current compaction or tree navigation to finish before navigating the session tree.";

/// `continue` during a run.
pub(crate) const CONTINUE_BUSY: &str = "Cannot continue: the agent is already processing";

/// `continue` when the last run did not die.
pub(crate) const NOTHING_TO_CONTINUE: &str =
    "Nothing to continue: the conversation does not wait for an answer";
/// A tool of the host has no name.
pub(crate) fn nameless_host_tool(index: usize) -> String {
    format!("Host tool at index {index} must provide a non-empty name")
}

/// A tool of the host has no description.
pub(crate) fn undescribed_host_tool(name: &str) -> String {
    format!("Host tool \"{name}\" must provide a non-empty description")
}

/// The parameters of a tool of the host are no object.
pub(crate) fn host_tool_without_schema(name: &str) -> String {
    format!("Host tool \"{name}\" must provide a JSON Schema object")
}

/// Two tools of the host have one name.
pub(crate) const DOUBLE_HOST_TOOL: &str = "RPC host tool names must be unique";

/// A tool of the host has the name of one of ours.
pub(crate) fn host_tool_conflicts(name: &str) -> String {
    format!("RPC host tool \"{name}\" conflicts with an existing tool")
}

/// The host lends more than we take.
pub(crate) fn too_many_host_tools(count: usize, limit: usize) -> String {
    format!("{count} host tools are too many; the limit is {limit}")
}

/// A definition is too large.
pub(crate) fn host_tool_too_large(name: &str, limit: usize) -> String {
    format!("Host tool \"{name}\" is larger than {limit} bytes")
}

/// All definitions together are too large.
pub(crate) fn host_tools_too_large(limit: usize) -> String {
    format!("The host tools together are larger than {limit} bytes")
}

/// A scheme has no name.
pub(crate) const EMPTY_SCHEME: &str = "Host URI scheme must be a non-empty string";

/// A scheme's name has letters that it must not have.
pub(crate) fn odd_scheme(given: &str) -> String {
    format!("Host URI scheme contains invalid characters: {given}")
}

/// A scheme that no host may serve.
pub(crate) fn reserved_scheme(scheme: &str) -> String {
    format!("Host URI scheme is reserved by OMP: {scheme}://")
}

/// The host serves more schemes than we take.
pub(crate) fn too_many_schemes(count: usize, limit: usize) -> String {
    format!("{count} host URI schemes are too many; the limit is {limit}")
}

/// A scheme's definition is too large.
pub(crate) fn scheme_too_large(scheme: &str, limit: usize) -> String {
    format!("Host URI scheme {scheme}:// is larger than {limit} bytes")
}

/// The scheme is read-only.
pub(crate) fn read_only_scheme(scheme: &str) -> String {
    format!("Host URI scheme is read-only: {scheme}://")
}

/// A call of the host was aborted.
pub(crate) fn host_tool_aborted(name: &str) -> String {
    format!("Host tool \"{name}\" was aborted")
}

/// The host says that a call failed, and nothing more.
pub(crate) const HOST_TOOL_FAILED: &str = "Host tool execution failed";

/// The client went away during a call.
pub(crate) const HOST_GONE_TOOL: &str = "RPC client disconnected before host tool execution completed";

/// The client went away while a URI was read or written.
pub(crate) const HOST_GONE_URI: &str = "RPC client disconnected before host URI request completed";

/// The client went away while a question waited.
pub(crate) const UI_GONE: &str = "RPC client disconnected before extension UI response completed";

/// Reading or writing a URI was aborted.
pub(crate) fn host_uri_aborted(operation: UriOperation, url: &str) -> String {
    format!("Host URI {} for {url} was aborted", operation.as_str())
}

/// The host says that reading or writing failed, and nothing more.
pub(crate) fn host_uri_failed(operation: UriOperation, url: &str) -> String {
    format!("Host URI {} failed for {url}", operation.as_str())
}

/// An update without content.
pub(crate) fn bad_update(id: &str) -> String {
    format!("Failed to parse command: host_tool_update \"{id}\" needs an array as partialResult.content")
}

/// A result without content.
pub(crate) fn bad_result(id: &str) -> String {
    format!(
        "Failed to parse command: host_tool_result \"{id}\" needs an array as result.content; the call is still open"
    )
}

/// A URI's content is no text.
pub(crate) fn bad_uri_result(id: &str) -> String {
    format!(
        "Failed to parse command: host_uri_result \"{id}\" needs a text as content; the request is still open"
    )
}

/// A call that the user does not want.
pub(crate) const USER_DENIED: &str = "Permission denied: the user does not allow this call.";

/// A file whose diff a question should show was not read in time.
pub(crate) const SLOW_FILE: &str = "It could not be read in time.";

/// A call that the user does not want, and why.
pub(crate) fn user_denied(reason: &str) -> String {
    format!("{USER_DENIED} The reason: {reason}")
}

/// A call that the user did not answer about in time.
pub(crate) fn denied_automatically(waited: Duration) -> String {
    let seconds = format!("{:.2}", waited.as_secs_f64());
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
    format!(
        "Permission denied: the user has to allow this call. Denied automatically, since nobody answered within {seconds} s."
    )
}

/// A call that the user was not asked about, or gave no answer to.
pub(crate) fn not_permitted(why: impl fmt::Display) -> String {
    format!("Permission denied: the user has to allow this call, but {why}.")
}

/// A call that was aborted before it ran.
pub(crate) const ABORTED: &str = "Operation aborted";

/// Extensions are not loaded anew in the middle of something (pi-1.5-delta.md 2).
pub(crate) const RELOAD_BUSY: &str = "Cannot reload while the agent is working; wait until it is idle";

/// An extension that looks at the user's commands failed.
pub(crate) const UNSEEN_COMMAND: &str = "The command was not run: an extension that looks at commands failed";

/// An extension sent output of a command of the user, and then no result.
pub(crate) const NO_RESULT: &str = "The extension that ran the command returned no result";

/// An extension sent output of a command of the user that had ended, or that never was.
pub(crate) const COMMAND_ENDED: &str = "The command of this output is not running";

/// A slash command of an extension came as steering or as a follow-up.
// The words of pi (pi-core.md 1.7).
pub(crate) fn not_queueable(name: &str) -> String {
    format!(
        "Extension command \"/{name}\" cannot be queued. Use prompt() or execute the command when not streaming."
    )
}

/// The arguments that an extension made of others are no object.
pub(crate) const ODD_ARGUMENTS: &str = "prepareArguments must give an object";

/// A call was blocked by an extension that did not say why (dialects.md 10.2).
pub(crate) const BLOCKED: &str = "Tool execution was blocked";

/// The extension that checks calls is not there, so none may run.
pub(crate) const GUARD_GONE: &str =
    "Tool execution was blocked: the extension that checks tool calls is not running";

/// A call could not be checked.
pub(crate) fn unchecked(error: &extensions::ProcessError) -> String {
    format!("Tool execution was blocked: the extension that checks tool calls gave no answer. {error}")
}

/// There is no login for this provider (dialects.md 2).
#[must_use]
pub(crate) fn unknown_login(provider: &str) -> String {
    format!("Unknown OAuth provider: {provider}")
}

/// One login at a time: its questions would be taken for the other's.
pub(crate) const LOGIN_REPLACED: &str = "Another login has begun";

/// An entry that can never be written.
pub(crate) fn not_written(error: &str) -> String {
    format!("The session file could not be written: {error}")
}

/// Entries wait in memory.
pub(crate) fn written_later(error: &str) -> String {
    format!(
        "The session file could not be written: {error}. New entries are kept in memory and written when that works again."
    )
}

/// A command of the user ran, but is not in the session file.
pub(crate) fn ran_unstored(exit_code: Option<i32>, error: Option<&str>) -> String {
    let code = exit_code.map_or_else(
        || "was ended".to_owned(),
        |code| format!("ended with code {code}"),
    );
    let error = error.unwrap_or("unknown error");
    format!(
        "The command ran and {code}, but its result could not be written to the session file: {error}. It is kept in memory \
         and written when that works again."
    )
}

/// A session with entries that are in memory only is not left.
pub(crate) fn unstored_entries(pending: usize, error: Option<&str>) -> String {
    let error = error.unwrap_or("unknown error");
    format!(
        "The session cannot be left: {pending} of its entries could not be written to the session file: {error}. Make room \
         and try again."
    )
}

/// A read-only command while too many others are running.
pub(crate) fn too_many_queries(limit: usize) -> String {
    format!(
        "Too many queries are running (at most {limit}). Send this command again when one has been answered."
    )
}

/// A call that may change files is not run, since its checkpoint cannot be stored.
pub(crate) fn checkpoint_failed(error: &dyn std::fmt::Display) -> String {
    format!("Nothing was changed, since the checkpoint could not be stored: {error}")
}

/// The answer to a prompt when a guard could not be loaded and no client sees that the agent is locked down.
pub(crate) fn guards_missing(faults: &str) -> String {
    format!("Hooks or extensions that may check tool calls could not be loaded, so nothing runs:\n{faults}")
}
