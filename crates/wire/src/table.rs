//! The command table: of every command its name, what it takes, what it answers and in which lane it runs. Parser, schema,
//! TypeScript types and the reference page all come from these rows; there is no second list.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::command::{
    BashParams, BranchParams, CompactParams, CompleteParams, EditQueuedParams, EnabledParams, EntriesParams,
    ExportParams, ForkParams, HelloParams, InterruptModeParams, LabelParams, ListParams, LoginParams,
    MessageParams, NavigateParams, NegotiateParams, NewSessionParams, NoParams, OpenSessionParams,
    PermissionModeParams, ProjectTrustParams, PromptParams, QueueModeParams, RemoveQueuedParams,
    ReplayParams, SessionNameParams, SetModelParams, ShortcutParams, StatsParams, SwitchParams,
    ThinkingParams, TodosParams,
};
use crate::hosted::{HostToolsParams, HostUriSchemesParams};
use crate::looking::{DeleteSessionParams, DirectoryParams, FindFilesParams};
use crate::mcp::{McpReconnectParams, McpServersParams};
use crate::tool::ActiveToolsParams;

/// How a command is scheduled (DESIGN.md, "The house").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Overtakes everything: aborts, answers to dialogs and host tools.
    Control,
    /// Starts in arrival order and runs beside the reader.
    Task,
    /// Runs in arrival order.
    Ordered,
}

impl Lane {
    /// Its name, for the reference page and `get_protocol`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Task => "task",
            Self::Ordered => "ordered",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec {
    /// The `type` on the wire.
    pub name: &'static str,
    /// What it does, for the reference page.
    pub doc: &'static str,
    /// How it is scheduled.
    pub lane: Lane,
    /// Schema of the parameters.
    #[cfg(feature = "schema")]
    pub params: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// Schema of `data`; `()` when there is none.
    #[cfg(feature = "schema")]
    pub reply: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

/// Why a line is not a command.
#[derive(Debug, thiserror::Error)]
pub enum BadCommand {
    /// No row has this name.
    #[error("Unknown command: {0}")]
    Unknown(String),
    /// The parameters do not fit.
    #[error("Invalid {0} command: {1}")]
    Params(&'static str, serde_json::Error),
}

macro_rules! commands {
    ($( $(#[doc = $doc:literal])+ $variant:ident($params:ty) = $name:literal, $lane:ident -> $reply:ty; )+) => {
        /// A command with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Command {
            $( $(#[doc = $doc])+ $variant($params), )+
        }

        /// All commands, in the order of the reference page.
        pub static TABLE: &[CommandSpec] = &[
            $( CommandSpec {
                name: $name,
                doc: concat!($($doc),+),
                lane: Lane::$lane,
                #[cfg(feature = "schema")]
                params: |generator| generator.subschema_for::<$params>(),
                #[cfg(feature = "schema")]
                reply: |generator| generator.subschema_for::<$reply>(),
            }, )+
        ];

        impl Command {
            /// The wire name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => $name, )+ }
            }

            /// How it is scheduled.
            #[must_use]
            pub fn lane(&self) -> Lane {
                match self { $( Self::$variant(_) => Lane::$lane, )+ }
            }

            /// Makes a command of its name and the whole line.
            ///
            /// # Errors
            /// When no row has the name, or the line's fields do not fit the row.
            pub fn parse(name: &str, line: &str) -> Result<Self, BadCommand> {
                match name {
                    $( $name => serde_json::from_str(line)
                        .map(Self::$variant)
                        .map_err(|error| BadCommand::Params($name, error)), )+
                    _ => Err(BadCommand::Unknown(name.to_owned())),
                }
            }
        }
    };
}

#[cfg(feature = "schema")]
use crate::connection::{Protocol, Replayed, Welcome};
#[cfg(feature = "schema")]
use crate::hosted::{HostToolNames, HostUriSchemes};
#[cfg(feature = "schema")]
use crate::looking::{DeletedSession, Directory, FoundFiles};
#[cfg(feature = "schema")]
use crate::mcp::McpServers;
#[cfg(feature = "schema")]
use crate::reply::{
    Accepted, Cancelled, Commands, Completions, ContextUsageReply, CycledModel, CycledThinking, Entries,
    Exported, ForkMessages, Forked, LastText, LoggedIn, LoginProviders, Messages, Models, Navigated,
    Negotiated, OpenSessions, OpenedSession, PermissionModeReply, ProjectTrust, QueueItems, Queues,
    SessionOutline, SessionTree, Sessions, Shortcuts, ThinkingLevels, Todos,
};
#[cfg(feature = "schema")]
use crate::state::{BashResult, SessionState, SessionStats};
#[cfg(feature = "schema")]
use crate::tool::{ActiveTools, Tools};

commands! {
    /// Says something to the model and runs until it stops. The response comes before every event of the run and before any
    /// network traffic.
    Prompt(PromptParams) = "prompt", Task -> Accepted;
    /// Queues a message that the model gets after the current turn.
    Steer(MessageParams) = "steer", Ordered -> Accepted;
    /// Queues a message that the model gets when it would stop.
    FollowUp(MessageParams) = "follow_up", Ordered -> Accepted;
    /// The older name of `steer`, from when there was one queue: what is left of a turn's tool calls is skipped.
    QueueMessage(MessageParams) = "queue_message", Ordered -> Accepted;
    /// Ends the run, a retry wait or a compaction. The response comes when all is quiet; queues are kept.
    Abort(NoParams) = "abort", Control -> ();
    /// Ends the run, then says something.
    AbortAndPrompt(MessageParams) = "abort_and_prompt", Control -> Accepted;
    /// Empties both queues and answers what was in them.
    ClearQueue(NoParams) = "clear_queue", Ordered -> Queues;
    /// The messages that wait in both queues, each with its id.
    GetQueue(NoParams) = "get_queue", Ordered -> QueueItems;
    /// Says something else in a message that waits. Refused when it does not wait any more.
    EditQueued(EditQueuedParams) = "edit_queued", Ordered -> ();
    /// Takes a message out of its queue. Refused when it does not wait any more.
    RemoveQueued(RemoveQueuedParams) = "remove_queued", Ordered -> ();
    /// Asks the model once more without a new message, after a run that died: the newest message is the user's, a tool's
    /// result or an answer that failed. Refused when the last run ended properly.
    Continue(NoParams) = "continue", Task -> Accepted;
    /// Ends the run properly and starts an empty session in a file of its own.
    NewSession(NewSessionParams) = "new_session", Task -> Cancelled;
    /// The older name of `new_session`.
    Reset(NoParams) = "reset", Task -> Cancelled;
    /// The session's state.
    GetState(NoParams) = "get_state", Ordered -> SessionState;
    /// The conversation.
    GetMessages(NoParams) = "get_messages", Ordered -> Messages;
    /// Entries of the session file, all branches, in the order they were appended.
    GetEntries(EntriesParams) = "get_entries", Ordered -> Entries;
    /// Chooses the model. A run that is under way keeps its model.
    SetModel(SetModelParams) = "set_model", Ordered -> crate::model::Model;
    /// Goes on to the next model; null when there is no other.
    CycleModel(NoParams) = "cycle_model", Ordered -> Option<CycledModel>;
    /// Models with credentials.
    GetAvailableModels(NoParams) = "get_available_models", Ordered -> Models;
    /// Sets the thinking level, clamped to what the model offers.
    SetThinkingLevel(ThinkingParams) = "set_thinking_level", Ordered -> ();
    /// Goes on to the next thinking level; null when the model cannot reason.
    CycleThinkingLevel(NoParams) = "cycle_thinking_level", Ordered -> Option<CycledThinking>;
    /// Thinking levels of the current model.
    GetAvailableThinkingLevels(NoParams) = "get_available_thinking_levels", Ordered -> ThinkingLevels;
    /// How many steering messages are taken at once.
    SetSteeringMode(QueueModeParams) = "set_steering_mode", Ordered -> ();
    /// How many follow-up messages are taken at once.
    SetFollowUpMode(QueueModeParams) = "set_follow_up_mode", Ordered -> ();
    /// The older name of both: sets how many messages are taken at once from either queue.
    SetQueueMode(QueueModeParams) = "set_queue_mode", Ordered -> ();
    /// When steering takes effect. Read when a run starts.
    SetInterruptMode(InterruptModeParams) = "set_interrupt_mode", Ordered -> ();
    /// Ends the run, then puts a summary in the place of the older part of the conversation.
    Compact(CompactParams) = "compact", Task -> crate::event::CompactionResult;
    /// Switches automatic compaction on or off.
    SetAutoCompaction(EnabledParams) = "set_auto_compaction", Ordered -> ();
    /// Switches automatic retries on or off.
    SetAutoRetry(EnabledParams) = "set_auto_retry", Ordered -> ();
    /// Ends a retry wait; the run has then failed for good.
    AbortRetry(NoParams) = "abort_retry", Control -> ();
    /// Runs a shell command on the user's behalf; the model sees it with the next prompt.
    Bash(BashParams) = "bash", Task -> BashResult;
    /// Kills every running `bash` command.
    AbortBash(NoParams) = "abort_bash", Control -> ();
    /// Text of the newest answer.
    GetLastAssistantText(NoParams) = "get_last_assistant_text", Ordered -> LastText;
    /// Counts, tokens and cost of the conversation as it is now; what each model cost in the whole session, if wanted.
    GetSessionStats(StatsParams) = "get_session_stats", Ordered -> SessionStats;
    /// Writes the session as one page that needs no network. Nothing but an older export is ever overwritten.
    ExportHtml(ExportParams) = "export_html", Task -> Exported;
    /// Ends the run properly and goes on in another session file. A file that is missing becomes a new session.
    SwitchSession(SwitchParams) = "switch_session", Task -> Cancelled;
    /// Ends the run properly and goes on in a new session that holds what came before a user message.
    Fork(ForkParams) = "fork", Task -> Forked;
    /// The older name of `fork`. Takes `entryIndex` too.
    Branch(BranchParams) = "branch", Task -> Forked;
    /// Ends the run properly and goes to another entry of the session's tree, in the same file. The branch that is left can
    /// be summarised first.
    NavigateTree(NavigateParams) = "navigate_tree", Task -> Navigated;
    /// Labels an entry, or removes its label.
    SetEntryLabel(LabelParams) = "set_entry_label", Ordered -> ();
    /// Ends the run properly and goes on in a copy of the current branch.
    Clone(NoParams) = "clone", Task -> Cancelled;
    /// User messages that `fork` takes, of all branches.
    GetForkMessages(NoParams) = "get_fork_messages", Ordered -> ForkMessages;
    /// The same for `branch`, with the index of each.
    GetBranchMessages(NoParams) = "get_branch_messages", Ordered -> ForkMessages;
    /// The session's tree of entries.
    GetTree(NoParams) = "get_tree", Ordered -> SessionTree;
    /// The same without what was said: of every entry where it belongs, its label and a few words.
    GetSessionTree(NoParams) = "get_session_tree", Ordered -> SessionOutline;
    /// Sessions on disk, newest first.
    ListSessions(ListParams) = "list_sessions", Task -> Sessions;
    /// Opens one more session in this process. Commands that name its handle as `session` go to it.
    OpenSession(OpenSessionParams) = "open_session", Task -> OpenedSession;
    /// Ends the run of the session that is named, properly, and closes it.
    CloseSession(NoParams) = "close_session", Task -> ();
    /// Deletes a session that is not open: its file is moved into `.trash` beside it, from where it can be put back. Refused for
    /// everything but sessions where this agent keeps them.
    DeleteSession(DeleteSessionParams) = "delete_session", Task -> DeletedSession;
    /// The sessions that are open in this process.
    ListOpenSessions(NoParams) = "list_open_sessions", Ordered -> OpenSessions;
    /// The directories in a directory, for somebody who chooses one to work in.
    ListDirectory(DirectoryParams) = "list_directory", Task -> Directory;
    /// Files and directories of the session's working directory that fit what somebody is typing; ignored files are left out.
    /// A later query of the same client ends one that is under way.
    FindFiles(FindFilesParams) = "find_files", Task -> FoundFiles;
    /// Slash commands that a prompt may begin with.
    GetCommands(NoParams) = "get_commands", Ordered -> Commands;
    /// What may follow in the arguments of an extension's slash command.
    CompleteArguments(CompleteParams) = "complete_arguments", Task -> Completions;
    /// All tools, and which of them the model may call.
    GetTools(NoParams) = "get_tools", Ordered -> Tools;
    /// Chooses which tools the model may call, from its next request on.
    SetActiveTools(ActiveToolsParams) = "set_active_tools", Ordered -> ActiveTools;
    /// Reads again what files say about the session: settings, context files, skills, prompt templates, extensions. Refused
    /// while a run is under way. Answered like `get_commands`, when the extensions are there.
    ReloadResources(NoParams) = "reload_resources", Task -> Commands;
    /// Keys that extensions want to be told of. A client that has keys may offer them.
    GetShortcuts(NoParams) = "get_shortcuts", Ordered -> Shortcuts;
    /// The user pressed keys of an extension. Answered when it has dealt with them; a failure is told as `extension_error`.
    RunShortcut(ShortcutParams) = "run_shortcut", Task -> ();
    /// How full the context is.
    GetContextUsage(NoParams) = "get_context_usage", Ordered -> ContextUsageReply;
    /// Agrees on the framing, for clients of oh-my-pi. Only version 1 is spoken: one line for each object.
    NegotiateProtocol(NegotiateParams) = "negotiate_protocol", Ordered -> Negotiated;
    /// Providers that people can log in to: the agent's own and those of extensions.
    GetLoginProviders(NoParams) = "get_login_providers", Ordered -> LoginProviders;
    /// Logs in to a provider. Pages to visit and questions come as `extension_ui_request`; the answer comes at the end.
    Login(LoginParams) = "login", Task -> LoggedIn;
    /// Puts another todo list in the place of the session's and answers it with every id and status filled in. It is kept
    /// with the session.
    SetTodos(TodosParams) = "set_todos", Ordered -> Todos;
    /// Names the session.
    SetSessionName(SessionNameParams) = "set_session_name", Ordered -> ();
    /// Chooses which tool calls may run without asking, for this session. Answers what holds from now on: what the project's
    /// settings forbid stays forbidden.
    SetPermissionMode(PermissionModeParams) = "set_permission_mode", Ordered -> PermissionModeReply;
    /// Whether the project is trusted, and what it brings that does not count because of that.
    GetProjectTrust(NoParams) = "get_project_trust", Ordered -> ProjectTrust;
    /// Decides whether the project is trusted, from the next session or reload on.
    SetProjectTrust(ProjectTrustParams) = "set_project_trust", Ordered -> ProjectTrust;
    /// What the agent speaks: versions, dialect, commands with their lanes, events, capabilities, limits.
    GetProtocol(NoParams) = "get_protocol", Ordered -> Protocol;
    /// Agrees on the dialect and on what is sent on this connection. What it grants holds for everything after its answer.
    Hello(Box<HelloParams>) = "hello", Ordered -> Welcome;
    /// Sends the events after a number once more, or a snapshot of the session when they are gone or no number is given.
    Replay(ReplayParams) = "replay", Ordered -> Replayed;
    /// Lends the agent tools that the client carries out. They take the place of those lent before, from the next request to
    /// the model on; calls that are open go on.
    SetHostTools(HostToolsParams) = "set_host_tools", Ordered -> HostToolNames;
    /// Lets the client serve URIs to the tools `read` and `write`. The schemes take the place of those set before.
    SetHostUriSchemes(HostUriSchemesParams) = "set_host_uri_schemes", Ordered -> HostUriSchemes;
    /// The session's MCP servers and how they are doing. They are started if they were not. From here on the session tells
    /// `mcp_servers_change`.
    GetMcpServers(NoParams) = "get_mcp_servers", Ordered -> McpServers;
    /// Gives the session MCP servers besides those of files; of one name, these count. They take the place of those set
    /// before, and stay when the session goes on in another file. Nothing changes unless all of them are as they must be.
    SetMcpServers(McpServersParams) = "set_mcp_servers", Ordered -> McpServers;
    /// Connects an MCP server anew, or all of them; answered before it is known what comes of it.
    McpReconnect(McpReconnectParams) = "mcp_reconnect", Ordered -> ();
}

/// What is read of a line before its type is known.
#[derive(Debug, Deserialize)]
pub struct LineHead<'a> {
    /// The `id`, any JSON value.
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
    /// The `session`, any JSON value.
    #[serde(borrow, default, deserialize_with = "present")]
    pub session: Option<&'a RawValue>,
    /// The `type`, any JSON value.
    #[serde(borrow, default, rename = "type", deserialize_with = "present")]
    pub kind: Option<&'a RawValue>,
}

/// Keeps an explicit `null` apart from a missing field.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
