//! Error sentences that clients match on (behaviour.md 1.7, dialects.md 2). Their wording is part of the protocol.

/// A prompt came during a run without saying what to do with it. Told in the client's words (dialects.md 5, row 12).
pub(crate) const BUSY: &str = wire::dialect::BUSY;

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

/// A framing that is not spoken.
pub(crate) fn unknown_protocol(version: &serde_json::Value) -> String {
    format!("Unsupported RPC protocol version: {version}")
}

/// A fork at something that is no user message.
pub(crate) const BAD_FORK: &str = "Invalid entry ID for forking";

/// A branch at something that is no user message, by id and by line.
pub(crate) const BAD_BRANCH: &str = "Invalid entry ID for branching";
/// See [`BAD_BRANCH`].
pub(crate) const BAD_BRANCH_INDEX: &str = "Invalid entry index for branching";

/// A clone of an empty session.
pub(crate) const NOTHING_TO_CLONE: &str = "Cannot clone session: no current entry selected";
