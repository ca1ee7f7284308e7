//! Answers to commands, and the response line that carries them (behaviour.md 1.2, 1.8).

use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connection::{Protocol, Replayed, Welcome};
use crate::entry::Entry;
use crate::event::CompactionResult;
use crate::hosted::{HostToolNames, HostUriSchemes};
use crate::looking::{DeletedSession, Directory, FoundFiles};
use crate::mcp::McpServers;
use crate::message::Message;
use crate::model::{Model, ThinkingLevel};
use crate::state::{BashResult, ContextUsage, PermissionMode, SessionState, SessionStats, TrustState};
use crate::todo::TodoPhase;
use crate::tool::{ActiveTools, Tools};

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// It started a run.
    Started,
    /// It waits in a queue.
    Queued,
    /// An extension dealt with it.
    Handled,
}

/// Answer of `prompt`, `steer` and `follow_up`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accepted {
    /// What became of the message.
    pub disposition: Disposition,
    /// When it waits in a queue: its id there, for `edit_queued` and `remove_queued`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Accepted {
    /// Something became of a message that waits in no queue.
    #[must_use]
    pub fn new(disposition: Disposition) -> Self {
        Self {
            disposition,
            id: None,
        }
    }
}

/// Answer of `clear_queue`: what was in the queues.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queues {
    /// Texts that waited for the next turn.
    pub steering: Vec<String>,
    /// Texts that waited for the end of the run.
    pub follow_up: Vec<String>,
}

/// Which queue a message waits in; the same words as `streamingBehavior`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum QueuedKind {
    /// Until the current turn ends.
    Steer,
    /// Until the run would stop.
    FollowUp,
}

/// A message that waits in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueItem {
    /// Its id; never used for another message of the same session.
    pub id: String,
    /// Which queue.
    pub kind: QueuedKind,
    /// Its text.
    pub text: String,
    /// How many images it has.
    pub images: usize,
}

/// Answer of `get_queue`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueItems {
    /// Steering messages, then follow-ups, each in the order in which they will be taken.
    pub items: Vec<QueueItem>,
}

/// Answer of commands that an extension may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// Did an extension refuse?
    pub cancelled: bool,
}

/// Answer of `get_messages`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Messages {
    /// The conversation, oldest first; the answer that is streaming in is not part of it.
    pub messages: Vec<Arc<Message>>,
}

/// Answer of `get_entries`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    /// Entries of all branches, in the order they were appended.
    pub entries: Vec<Arc<Entry>>,
    /// The entry that the next one will follow.
    pub leaf_id: Option<String>,
}

/// Answer of `cycle_model`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CycledModel {
    /// The model from now on.
    pub model: Model,
    /// The thinking level from now on.
    pub thinking_level: ThinkingLevel,
    /// Is cycling limited by `--models`?
    pub is_scoped: bool,
}

/// Answer of `get_available_models`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Models {
    /// Models with credentials.
    pub models: Vec<Model>,
}

/// Answer of `cycle_thinking_level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CycledThinking {
    /// The level from now on.
    pub level: ThinkingLevel,
}

/// Answer of `get_available_thinking_levels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkingLevels {
    /// Levels of the current model, weakest first.
    pub levels: Vec<ThinkingLevel>,
}

/// Answer of `get_last_assistant_text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LastText {
    /// Text of the newest answer, trimmed; null when there is none.
    pub text: Option<String>,
}

/// Answer of `export_html`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Exported {
    /// The file, as it was asked for.
    pub path: String,
}

/// Answer of `fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forked {
    /// Text of the message that was forked at, for the user to change.
    pub text: String,
    /// Did an extension refuse?
    pub cancelled: bool,
}

/// Answer of `navigate_tree`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    /// Did somebody abort it, or an extension refuse? Then nothing has changed.
    pub cancelled: bool,
    /// Text of the user message that was gone to, for the user to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// Entry of the summary, when one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_entry_id: Option<String>,
}

/// A provider that people can log in to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginProvider {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Can it be logged in to here?
    pub available: bool,
    /// Does a login open it now?
    pub authenticated: bool,
}

/// Answer of `get_login_providers`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoginProviders {
    /// The agent's own, then those of extensions.
    pub providers: Vec<LoginProvider>,
}

/// Answer of `login`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LoggedIn {
    /// The provider.
    pub provider_id: String,
}

/// Answer of `negotiate_protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Negotiated {
    /// The version that is spoken.
    pub protocol_version: u64,
}

/// A user message that `fork` takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkMessage {
    /// Its entry.
    pub entry_id: String,
    /// Its line in the session file, the header being line 0; only in the answer of `get_branch_messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_index: Option<usize>,
    /// Its text.
    pub text: String,
}

/// Answer of `get_fork_messages`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForkMessages {
    /// In the order they were said.
    pub messages: Vec<ForkMessage>,
}

/// Answer of `get_tree`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionTree {
    /// The roots: `{entry, children, label?, labelTimestamp?}`, children of the same shape.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Value>"))]
    pub tree: Box<RawValue>,
    /// The entry that the next one will follow.
    pub leaf_id: Option<String>,
}

/// Answer of `get_session_tree` (web.md 1.5): the tree as somebody looks at it who chooses a place in it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionOutline {
    /// The entry that the next one will follow.
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
    /// Its name, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The session it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session_path: Option<String>,
    /// ISO 8601.
    pub created: String,
    /// Time of the newest message, ISO 8601.
    pub modified: String,
    /// Messages in it.
    pub message_count: u64,
    /// What the user said first.
    pub first_message: String,
    /// All text, to search in; empty unless it was asked for.
    pub all_messages_text: String,
}

/// Answer of `list_sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sessions {
    /// Newest first.
    pub sessions: Vec<ListedSession>,
}

/// Answer of `open_session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenedSession {
    /// The handle for the `session` member of commands; events and responses of the session carry it.
    pub session: String,
    /// Session id.
    pub session_id: String,
    /// The session file, which may not exist yet; null without persistence.
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
    /// The session file; null without persistence.
    pub session_file: Option<String>,
    /// Its name, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// Its working directory.
    pub cwd: String,
    /// Is a run under way?
    pub is_streaming: bool,
    /// Messages in its conversation.
    pub message_count: usize,
    /// True: it was put away because nobody used it; the next command to it opens it again. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub evicted: bool,
}

/// Answer of `list_open_sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenSessions {
    /// The first one first, then by handle.
    pub sessions: Vec<OpenSession>,
}

/// Answer of `get_commands`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Commands {
    /// `{name, description?, source, sourceInfo, ...}` each.
    pub commands: Vec<Value>,
}

/// Answer of `complete_arguments`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completions {
    /// As the extension gives them: `{value, label, description?}` each.
    pub items: Vec<Value>,
}

/// Answer of `get_shortcuts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shortcuts {
    /// In the order in which extensions were loaded; of two for the same keys the first counts.
    pub shortcuts: Vec<Shortcut>,
}

/// Keys that an extension wants to be told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Shortcut {
    /// The keys as pi writes them: `ctrl+shift+p`.
    pub shortcut: String,
    /// What they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The extension's file.
    pub extension_path: String,
}

/// Answer of `set_todos`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Todos {
    /// The list as it is now, with every id and status filled in.
    pub todo_phases: Vec<TodoPhase>,
}

/// Answer of `get_context_usage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextUsageReply {
    /// Absent when the model's window is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ContextUsage>,
}

/// Answer of `set_permission_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionModeReply {
    /// The mode that holds: the one asked for, or a stricter one that the project wants.
    pub permission_mode: PermissionMode,
}

/// Answer of `get_project_trust` and `set_project_trust`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectTrust {
    /// The project: the session's working directory.
    pub cwd: String,
    /// What holds for the session as it is loaded now.
    pub project_trust: TrustState,
}

/// The `data` of a successful response.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is documented by the type it holds")]
pub enum Reply {
    /// No `data` at all.
    #[serde(skip)]
    Nothing,
    State(Box<SessionState>),
    Stats(Box<SessionStats>),
    Messages(Messages),
    Entries(Entries),
    Model(Box<Model>),
    CycledModel(Option<Box<CycledModel>>),
    Models(Models),
    CycledThinking(Option<CycledThinking>),
    ThinkingLevels(ThinkingLevels),
    Bash(BashResult),
    LastText(LastText),
    Accepted(Accepted),
    Queues(Queues),
    QueueItems(QueueItems),
    Protocol(Box<Protocol>),
    Hello(Box<Welcome>),
    Replayed(Box<Replayed>),
    Cancelled(Cancelled),
    Forked(Forked),
    Navigated(Navigated),
    Negotiated(Negotiated),
    ForkMessages(ForkMessages),
    Tree(SessionTree),
    Outline(SessionOutline),
    Tools(Tools),
    ActiveTools(ActiveTools),
    Sessions(Sessions),
    OpenedSession(Box<OpenedSession>),
    OpenSessions(OpenSessions),
    Directory(Directory),
    FoundFiles(FoundFiles),
    DeletedSession(DeletedSession),
    Commands(Commands),
    ContextUsage(ContextUsageReply),
    Todos(Todos),
    LoginProviders(LoginProviders),
    LoggedIn(LoggedIn),
    Compacted(Box<CompactionResult>),
    Exported(Exported),
    HostTools(HostToolNames),
    HostUriSchemes(HostUriSchemes),
    PermissionMode(PermissionModeReply),
    ProjectTrust(ProjectTrust),
    /// See [`Completions`].
    Completions(Completions),
    /// See [`Shortcuts`].
    Shortcuts(Shortcuts),
    McpServers(McpServers),
}

/// A response line. At most one is sent for each command, exactly one unless the process ends before.
#[derive(Debug, Clone)]
pub struct Response {
    /// The command's `id`, whatever JSON value it was; absent when it had none.
    pub id: Option<Box<RawValue>>,
    /// The command's name; `parse` when the line was no command. Absent when the line had no `type`.
    pub command: Option<Value>,
    /// The answer, or a sentence that says what is wrong.
    pub outcome: Result<Reply, String>,
}

impl Serialize for Response {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("type", "response")?;
        if let Some(command) = &self.command {
            map.serialize_entry("command", command)?;
        }
        map.serialize_entry("success", &self.outcome.is_ok())?;
        match &self.outcome {
            Ok(Reply::Nothing) => {}
            Ok(reply) => map.serialize_entry("data", reply)?,
            Err(error) => map.serialize_entry("error", error)?,
        }
        map.end()
    }
}
