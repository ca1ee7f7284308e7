//! The replies that commands have. The line that carries one is in `response`.

use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::entry::Entry;
use crate::message::Message;
use crate::model::{Model, ThinkingLevel};
use crate::state::{ContextUsage, PermissionMode, TrustState};
use crate::todo::TodoPhase;

/// What happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// It started a run.
    Started,
    /// It was queued.
    Queued,
    /// An extension handled it.
    Handled,
}

/// Response to `prompt`, `steer` and `follow_up`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accepted {
    /// What happened to the message.
    pub disposition: Disposition,
    /// If it was queued: its id for `edit_queued` and `remove_queued`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where a slash command of an extension stands. Never on the wire.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub stage: CommandStage,
}

/// Where a slash command of an extension stands when its prompt is answered. Clients of today's oh-my-pi get the response when the
/// command begins, and `prompt_result` when it ends (dialects.md 5, row 42).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommandStage {
    /// The response says all: no command runs, or it has ended.
    #[default]
    Whole,
    /// The command has begun. A second response follows. Clients of oh-my-pi get this one, all others the second.
    Begun,
    /// The second response: the command has ended. Contains true if a run of the command follows.
    Ended(bool),
    /// The second response: the command was given up with its session. Contains the error for clients that did not get the first one.
    GivenUp(&'static str),
}

impl Accepted {
    /// Something became of a message that waits in no queue.
    #[must_use]
    pub fn new(disposition: Disposition) -> Self {
        Self {
            disposition,
            id: None,
            stage: CommandStage::Whole,
        }
    }

    /// An extension has the message, and its command stands there.
    #[must_use]
    pub fn by_command(stage: CommandStage) -> Self {
        Self {
            stage,
            ..Self::new(Disposition::Handled)
        }
    }
}

/// Response to `clear_queue`: the messages that were queued.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queues {
    /// Steering messages.
    pub steering: Vec<String>,
    /// Follow-up messages.
    pub follow_up: Vec<String>,
}

/// The queue of a message, as in `streamingBehavior`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum QueuedKind {
    /// Delivered after the current turn.
    Steer,
    /// Delivered when the run would otherwise end.
    FollowUp,
}

/// A queued message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueItem {
    /// Its id, unique in the session.
    pub id: String,
    /// Its queue.
    pub kind: QueuedKind,
    /// Its text.
    pub text: String,
    /// Number of images.
    pub images: usize,
}

/// Response to `get_queue`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueItems {
    /// Steering messages, then follow-up messages, in the order of delivery.
    pub items: Vec<QueueItem>,
}

/// Response to commands that an extension can refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// Whether an extension refused.
    pub cancelled: bool,
}

/// Response to `get_messages`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Messages {
    /// The conversation, oldest first, without the answer that is being streamed.
    pub messages: Vec<Arc<Message>>,
}

/// Response to `get_entries`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    /// Entries of all branches, in the order they were appended.
    pub entries: Vec<Arc<Entry>>,
    /// Id of the current entry: the parent of the next one.
    pub leaf_id: Option<String>,
}

/// Response to `cycle_model`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CycledModel {
    /// The new model.
    pub model: Model,
    /// The new thinking level.
    pub thinking_level: ThinkingLevel,
    /// Whether `--models` limits the list.
    pub is_scoped: bool,
}

/// Response to `get_available_models`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Models {
    /// Models with credentials.
    pub models: Vec<Model>,
}

/// Response to `cycle_thinking_level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CycledThinking {
    /// The new level.
    pub level: ThinkingLevel,
}

/// Response to `get_available_thinking_levels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkingLevels {
    /// Levels of the current model, weakest first.
    pub levels: Vec<ThinkingLevel>,
}

/// Response to `get_last_assistant_text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LastText {
    /// Text of the last answer, trimmed; null if there is none.
    pub text: Option<String>,
}

/// Response to `export_html`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exported {
    /// Path of the file.
    pub path: String,
}

/// Response to `fork`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forked {
    /// Text of the user message, for editing.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub text: Option<String>,
    /// Whether an extension refused.
    pub cancelled: bool,
}

impl Serialize for Forked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        // Absent in one case only, a refused `fork`: pi sends no text then. Clients of `branch` want it all the same.
        if let Some(text) = &self.text {
            map.serialize_entry("text", text)?;
        }
        map.serialize_entry("cancelled", &self.cancelled)?;
        map.end()
    }
}

/// Response to `navigate_tree`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    /// Whether it was aborted or refused by an extension. Nothing has changed then.
    pub cancelled: bool,
    /// Text of the target, if it is a user message, for editing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// Id of the summary entry, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_entry_id: Option<String>,
}

/// A provider that supports a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginProvider {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether a login is possible here.
    pub available: bool,
    /// Whether a login is stored.
    pub authenticated: bool,
}

/// Response to `get_login_providers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginProviders {
    /// Built-in providers, then those of extensions.
    pub providers: Vec<LoginProvider>,
}

/// Response to `login`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoggedIn {
    /// The provider.
    pub provider_id: String,
}

/// Response to `negotiate_protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Negotiated {
    /// The version in use.
    pub protocol_version: u64,
}

/// A user message that `fork` accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkMessage {
    /// Id of its entry.
    pub entry_id: String,
    /// Its line in the session file; the header is line 0. Only in the response to `get_branch_messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_index: Option<usize>,
    /// Its text.
    pub text: String,
}

/// Response to `get_fork_messages`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForkMessages {
    /// The messages in their order.
    pub messages: Vec<ForkMessage>,
}

/// Response to `get_tree`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionTree {
    /// The roots: `{entry, children, label?, labelTimestamp?}`, children of the same shape.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Value>"))]
    pub tree: Box<RawValue>,
    /// Id of the current entry: the parent of the next one.
    pub leaf_id: Option<String>,
}

/// Response to `get_session_tree`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionOutline {
    /// Id of the current entry: the parent of the next one.
    pub leaf_id: Option<String>,
    /// The roots: `{entry: {id, parentId, type, timestamp, label?, preview?}, children}`, children of the same shape; a preview
    /// has at most 140 characters.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Value>"))]
    pub nodes: Box<RawValue>,
}

/// A session on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    /// The file.
    pub path: String,
    /// Session id.
    pub id: String,
    /// Its working directory.
    pub cwd: String,
    /// Name of the session, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Path of the parent session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_path: Option<String>,
    /// Creation time, ISO 8601.
    pub created: String,
    /// Time of the newest message, ISO 8601.
    pub modified: String,
    /// Number of messages.
    pub message_count: u64,
    /// Text of the first user message.
    pub first_message: String,
    /// All text, for a search; empty unless requested.
    pub all_messages_text: String,
}

/// Response to `list_sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sessions {
    /// The sessions, most recent first.
    pub sessions: Vec<ListedSession>,
}

/// Response to `open_session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenedSession {
    /// Handle for the field `session` of commands. Events and responses of the session contain it.
    pub session: String,
    /// Session id.
    pub session_id: String,
    /// Path of the session file, which may not exist yet; null with `--no-session`.
    pub session_file: Option<String>,
    /// Its working directory.
    pub cwd: String,
}

/// An open session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenSession {
    /// Its handle; absent for the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Session id.
    pub session_id: String,
    /// Path of the session file; null with `--no-session`.
    pub session_file: Option<String>,
    /// Name of the session, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// Its working directory.
    pub cwd: String,
    /// Whether a run is active.
    pub is_streaming: bool,
    /// Number of messages in its conversation.
    pub message_count: usize,
    /// True if it was evicted. The next command to it opens it again. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub evicted: bool,
}

/// Response to `list_open_sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenSessions {
    /// The first session, then the others by handle.
    pub sessions: Vec<OpenSession>,
}

/// Response to `get_commands`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Commands {
    /// `{name, description?, source, sourceInfo, ...}` each.
    pub commands: Vec<Value>,
}

/// Response to `complete_arguments`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completions {
    /// Completions of the extension, each `{value, label, description?}`.
    pub items: Vec<Value>,
}

/// Response to `get_shortcuts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shortcuts {
    /// In the order in which the extensions were loaded. If two have the same keys, the first applies.
    pub shortcuts: Vec<Shortcut>,
}

/// A keyboard shortcut of an extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Shortcut {
    /// The keys, such as `ctrl+shift+p`.
    pub shortcut: String,
    /// What the shortcut does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The extension's file.
    pub extension_path: String,
}

/// Response to `set_todos`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Todos {
    /// The list with all ids and statuses filled in.
    pub todo_phases: Vec<TodoPhase>,
}

/// Response to `get_context_usage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextUsageReply {
    /// Absent if the context window of the model is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ContextUsage>,
}

/// Response to `set_permission_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionModeReply {
    /// The resulting mode: the requested one, or a stricter one of the project settings.
    pub permission_mode: PermissionMode,
}

/// Response to `get_project_trust` and `set_project_trust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectTrust {
    /// Directory of the project.
    pub cwd: String,
    /// Trust state of the loaded session.
    pub project_trust: TrustState,
}

/// Response to `set_fallback_models` and `get_fallback_models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FallbackModels {
    /// The models in the order in which they are tried, as `provider/id`.
    pub models: Vec<String>,
}
