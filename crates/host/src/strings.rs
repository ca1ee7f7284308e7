//! Error sentences that clients match on (behaviour.md 1.7, dialects.md 2). Their wording is part of the protocol.

/// A prompt came during a run without saying what to do with it.
pub(crate) const BUSY: &str =
    "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.";

/// A session name was empty.
pub(crate) const EMPTY_NAME: &str = "Session name cannot be empty";

/// A model that is not there, or has no credentials.
pub(crate) fn model_not_found(provider: Option<&str>, id: Option<&str>) -> String {
    format!(
        "Model not found: {}/{}",
        provider.unwrap_or("undefined"),
        id.unwrap_or("undefined")
    )
}

/// An entry that is not there.
pub(crate) fn entry_not_found(id: &str) -> String {
    format!("Entry not found: {id}")
}

/// A queue is full.
pub(crate) fn queue_full(limit: usize) -> String {
    format!("The queue is full ({limit} messages); clear_queue empties it")
}

/// Too many shell commands run already.
pub(crate) fn too_many_commands(limit: usize) -> String {
    format!("{limit} bash commands are running already; abort_bash ends them")
}

/// A fork at something that is no user message.
pub(crate) const BAD_FORK: &str = "Invalid entry ID for forking";

/// `close_session` without a handle.
pub(crate) const FIRST_STAYS: &str = "The first session cannot be closed; it ends with the process";
/// Sessions are being closed.
pub(crate) const ENDING: &str = "The process is ending";
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

/// A working directory that is not there.
pub(crate) fn no_such_directory(dir: &std::path::Path) -> String {
    format!("No such directory: {}", dir.display())
}

/// A branch at something that is no user message, by id and by line.
pub(crate) const BAD_BRANCH: &str = "Invalid entry ID for branching";
/// See [`BAD_BRANCH`].
pub(crate) const BAD_BRANCH_INDEX: &str = "Invalid entry index for branching";

/// A clone of an empty session.
pub(crate) const NOTHING_TO_CLONE: &str = "Cannot clone session: no current entry selected";

/// A queued message that does not wait any more.
pub(crate) fn not_queued(id: &str) -> String {
    format!("No queued message has the id {id}")
}

/// `continue` during a run.
pub(crate) const CONTINUE_BUSY: &str = "Cannot continue: the agent is already processing";

/// `continue` when the last run did not die.
pub(crate) const NOTHING_TO_CONTINUE: &str =
    "Nothing to continue: the conversation does not wait for an answer";
