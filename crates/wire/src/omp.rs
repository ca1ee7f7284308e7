//! Commands of today's oh-my-pi that no other dialect has: parameters and replies (dialects.md 14).

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::Message;
use crate::state::SessionState;
use crate::tool::ToolSpec;

/// Error of `get_messages_page` while a run or a compaction is active.
pub const PAGE_BUSY: &str = "Cannot page messages while the session is changing";

/// Error of `get_messages_page` with the cursor of another conversation.
pub const PAGE_STALE: &str = "RPC message cursor is stale";

/// How the error about an entry that does not exist begins. Its id follows.
pub const NO_ENTRY: &str = "Entry not found: ";

/// [`NO_ENTRY`] of `get_entries` in today's oh-my-pi.
pub const UNKNOWN_CURSOR: &str = "Unknown entries cursor: ";

/// Error of `set_event_filter` with anything but names or null.
pub const BAD_EVENT_FILTER: &str = "events must be null or an array of non-empty event type strings";

/// Error of `get_messages_page` with a limit beyond the largest page, or none that is a whole number.
pub const BAD_PAGE_LIMIT: &str = "RPC message page limit must be between 1 and 256";

/// `customType` of the hidden message that asks the model again after an answer without text (dialects.md 5, row 41). Clients of today's
/// oh-my-pi see it with the role `developer`.
pub const SILENT_ANSWER: &str = "silent-answer";

/// Error of `get_subagent_messages` with a position that is no number.
pub const BAD_POSITION: &str = "fromByte must be a finite number";

/// The error of `set_subagent_subscription` with an unknown level; `undefined` stands for none.
#[must_use]
pub fn bad_subagent_level(level: &str) -> String {
    format!("Invalid subagent subscription level: {level}")
}

/// Parameters of `set_event_filter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventFilterParams {
    /// The events to send; null: all.
    #[serde(deserialize_with = "event_names")]
    pub events: Option<Vec<String>>,
}

/// Names that are not empty, or null. The member must be there.
fn event_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let names = Option::<Vec<String>>::deserialize(deserializer);
    let fits = |names: &Option<Vec<String>>| names.iter().flatten().all(|name| !name.is_empty());
    let names = names.ok().filter(fits);
    names.ok_or_else(|| serde::de::Error::custom(BAD_EVENT_FILTER))
}

/// Response to `set_event_filter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventFilter {
    /// The events that are sent; null: all.
    pub events: Option<Vec<String>>,
}

/// Response to `set_fast_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FastMode {
    /// Whether fast mode is on.
    pub enabled: bool,
    /// Whether requests use it.
    pub active: bool,
}

/// Response to `get_available_commands`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AvailableCommands {
    /// The slash commands that a prompt can begin with.
    pub commands: Vec<AvailableCommand>,
}

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AvailableCommand {
    /// Its name without the slash.
    pub name: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What follows its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<CommandInput>,
    /// Where it comes from: `skill`, `extension`, `file` or `mcp_prompt`.
    pub source: String,
}

/// The text after the name of a slash command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandInput {
    /// What to write there.
    pub hint: String,
}

/// Parameters of `get_messages_page`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MessagesPageParams {
    /// `nextCursor` of the page before. Default: the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Most messages of the page, 1 to 256. Default: 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

/// Response to `get_messages_page`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessagesPage {
    /// The messages of the page, at most 768 KiB unless it is one message.
    pub messages: Vec<Arc<Message>>,
    /// Where the next page begins; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Messages of the conversation.
    pub total_messages: usize,
}

/// Response to `get_state` of a process that starts with the dialect of today's oh-my-pi. Clients of other dialects get the state alone.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateWithPrompt {
    /// The state.
    #[serde(flatten)]
    pub state: SessionState,
    /// The system prompt of the next request, in parts.
    pub system_prompt: Vec<String>,
    /// The tools that the model can call.
    pub dump_tools: Vec<ToolSpec>,
}

/// Response to `handoff`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Handoff {
    /// A file with the document. Always absent: the session file contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_path: Option<String>,
}

/// Parameters of `continue_session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContinueSessionParams {
    /// The directory of the session files. It is created if it does not exist.
    #[serde(alias = "session_dir")]
    pub session_dir: String,
}

/// Response to `continue_session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ContinuedSession {
    /// True if an extension prevented it.
    pub cancelled: bool,
    /// True if the session existed before.
    pub resumed: bool,
    /// Id of the current session.
    pub session_id: String,
    /// Path of its file, which may not exist yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
}
