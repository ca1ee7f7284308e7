//! The command table: name, group, dialects, lane, parameters, handler and reply of every command. The command enums, the
//! handler traits, the parser, schema, TypeScript types and the reference are generated from these rows; there is no second
//! list.

#[macro_use]
mod generate;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::changes::{ChangesParams, RewindParams, UnrewindParams};
use crate::command::{
    BashParams, BranchParams, CompactParams, CompleteParams, EditQueuedParams, EnabledParams, EntriesParams,
    ExportParams, FallbackModelsParams, ForkParams, HelloParams, InterruptModeParams, LabelParams,
    ListParams, LoginParams, MessageParams, NavigateParams, NegotiateParams, NewSessionParams, NoParams,
    OpenSessionParams, PermissionModeParams, ProjectTrustParams, PromptParams, QueueModeParams,
    RemoveQueuedParams, ReplayParams, SessionNameParams, SetModelParams, ShortcutParams, StatsParams,
    SwitchParams, ThinkingParams, TodosParams,
};
use crate::dialect_set::{ALL, DialectSet, EVERY, H, HO, LATE, N, O, OWN, PI, W, XN};
use crate::hosted::{HostToolsParams, HostUriSchemesParams};
use crate::looking::{DeleteSessionParams, DirectoryParams, FindFilesParams};
use crate::mcp::{McpReconnectParams, McpServersParams};
use crate::omp::{ContinueSessionParams, EventFilterParams, MessagesPageParams};
use crate::process::{KillProcessParams, ReadProcessParams, ResizeProcessParams, WriteProcessParams};
use crate::response::Reply;
use crate::run_limits::SetLimitsParams;
use crate::subagent::{SubagentMessagesParams, SubagentSubscriptionParams};
use crate::tool::ActiveToolsParams;

/// How a command is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Runs at once, before commands that wait: aborts, answers to dialogs and client tools.
    Control,
    /// Starts in arrival order. Later commands do not wait for its response.
    Task,
    /// Runs in arrival order. Later commands wait for its response, except those of the lane `Control`.
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

/// Groups of commands. The reference has one page for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Messages, queues and aborts.
    Prompting,
    /// Compaction, retries and shell commands.
    Runs,
    /// State, messages and statistics of the session.
    State,
    /// Session files, branches and open sessions.
    Session,
    /// Models, thinking levels and logins.
    Models,
    /// Tools, slash commands, files, permissions and project trust.
    Tools,
    /// Answers to dialogs. The group has no commands, only frames.
    Dialogs,
    /// Tools and URIs that the client provides.
    Client,
    /// MCP servers.
    Mcp,
    /// Negotiation and replay.
    Connection,
}

impl Group {
    /// All groups, in the order of the reference.
    pub const ALL: [Self; 10] = [
        Self::Prompting,
        Self::Runs,
        Self::State,
        Self::Session,
        Self::Models,
        Self::Tools,
        Self::Dialogs,
        Self::Client,
        Self::Mcp,
        Self::Connection,
    ];

    /// Its name: the file name of its page.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompting => "prompting",
            Self::Runs => "runs",
            Self::State => "state",
            Self::Session => "session",
            Self::Models => "models",
            Self::Tools => "tools",
            Self::Dialogs => "dialogs",
            Self::Client => "client",
            Self::Mcp => "mcp",
            Self::Connection => "connection",
        }
    }

    /// The heading of its page.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Prompting => "Prompts and queues",
            Self::Runs => "Compaction, retries, shell",
            Self::State => "State and messages",
            Self::Session => "Sessions and branches",
            Self::Models => "Models and logins",
            Self::Tools => "Tools, commands, permissions",
            Self::Dialogs => "Dialogs",
            Self::Client => "Client tools and URIs",
            Self::Mcp => "MCP servers",
            Self::Connection => "Connection",
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
    /// The group of the reference in which it is described.
    pub group: Group,
    /// The dialects that have it; `OWN` if it is Pinion's alone.
    pub dialects: DialectSet,
    /// How it is scheduled.
    pub lane: Lane,
    /// Schema of the parameters.
    #[cfg(feature = "schema")]
    pub params: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// Schema of `data`; `()` when there is none.
    #[cfg(feature = "schema")]
    pub reply: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// Path of the type of the parameters, for generated code.
    #[cfg(feature = "schema")]
    pub params_type: fn() -> &'static str,
    /// Path of the type of `data`, for generated code.
    #[cfg(feature = "schema")]
    pub reply_type: fn() -> &'static str,
    /// Whether clients can read the type of `data` with serde.
    #[cfg(feature = "schema")]
    pub reply_is_readable: bool,
}

/// Says of a type whether serde can read it.
#[cfg(feature = "schema")]
struct Readable<T>(std::marker::PhantomData<T>);

#[cfg(feature = "schema")]
impl<T: serde::de::DeserializeOwned> Readable<T> {
    const IS: bool = true;
}

/// What holds for a type for which the constant of [`Readable`] itself does not exist.
#[cfg(feature = "schema")]
trait Unreadable {
    const IS: bool = false;
}

#[cfg(feature = "schema")]
impl<T> Unreadable for Readable<T> {}

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

/// A command: who carries it out, and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// A session does.
    Session(SessionCommand),
    /// The part of the program that owns the sessions does.
    Manager(ManagerCommand),
    /// The connection does, which knows dialects and the numbers of events.
    Connection(ConnectionCommand),
}

impl Command {
    /// The wire name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Session(command) => command.name(),
            Self::Manager(command) => command.name(),
            Self::Connection(command) => command.name(),
        }
    }
}

/// Sends the reply to one command. The type of the reply is the command's, so no other one can be sent.
pub trait Respond<R> {
    /// Sends the reply, or the sentence that the client gets as `error`.
    fn respond(self, outcome: Result<R, String>) -> impl Future<Output = ()>;
}

/// What carries out commands that are answered in the stream of events.
pub trait Responding {
    /// Who sent a command, and how the reply finds back.
    type Origin;
    /// Sends the reply to one command.
    type Responder<R: Into<Reply>>: Respond<R>;

    /// Returns the responder for a command.
    fn responder<R: Into<Reply>>(&mut self, origin: Self::Origin) -> Self::Responder<R>;
}

use crate::changes::{Changes, Rewound};
use crate::connection::{Protocol, Replayed, Welcome};
use crate::hosted::{HostToolNames, HostUriSchemes};
use crate::looking::{DeletedSession, Directory, FoundFiles};
use crate::mcp::McpServers;
use crate::omp::{AvailableCommands, ContinuedSession, EventFilter, FastMode, Handoff, MessagesPage};
use crate::process::{ProcessData, ProcessInfo, ProcessesReply};
use crate::reply::{
    Accepted, Cancelled, Commands, Completions, ContextUsageReply, CycledModel, CycledThinking, Entries,
    Exported, FallbackModels, ForkMessages, Forked, LastText, LoggedIn, LoginProviders, Messages, Models,
    Navigated, Negotiated, OpenSessions, OpenedSession, PermissionModeReply, ProjectTrust, QueueItems,
    Queues, SessionOutline, SessionTree, Sessions, Shortcuts, ThinkingLevels, Todos,
};
use crate::run_limits::SessionLimits;
use crate::state::{BashResult, SessionState, SessionStats};
use crate::subagent::{SubagentMessages, SubagentSubscription, Subagents};
use crate::tool::{ActiveTools, Tools};

commands! {
    /// Send a user message and start a run. The response comes before every event of the run and before any network request.
    /// While a run is active, `streamingBehavior` says whether the message is queued; without it the command fails.
    Prompt(PromptParams) = "prompt", Prompting, EVERY, Task, Session::prompt => Accepted;
    /// Queue a steering message. The model receives it after the current turn.
    Steer(MessageParams) = "steer", Prompting, LATE, Ordered, Session::steer => Accepted;
    /// Queue a follow-up message. The model receives it when it would otherwise stop.
    FollowUp(MessageParams) = "follow_up", Prompting, LATE, Ordered, Session::follow_up => Accepted;
    /// Old name of `steer`, from versions with one queue. The remaining tool calls of the current turn are skipped.
    QueueMessage(MessageParams) = "queue_message", Prompting, HO, Ordered, Session::queue_message -> Accepted;
    /// Stop the run, a retry delay or a compaction. The response comes when nothing is running any more. Queued messages are
    /// kept.
    Abort(NoParams) = "abort", Prompting, EVERY, Control, Session::abort => ();
    /// Stop the run, then send a user message and start a new run.
    AbortAndPrompt(MessageParams) = "abort_and_prompt", Prompting, XN, Control, Session::abort_and_prompt => Accepted;
    /// Empty both queues and return their messages.
    ClearQueue(NoParams) = "clear_queue", Prompting, W.and(PI), Ordered, Session::clear_queue -> Queues;
    /// List the messages in both queues with their ids.
    GetQueue(NoParams) = "get_queue", Prompting, OWN, Ordered, Session::get_queue -> QueueItems;
    /// Replace the text of a queued message. Fails if the message is no longer queued.
    EditQueued(EditQueuedParams) = "edit_queued", Prompting, OWN, Ordered, Session::edit_queued -> ();
    /// Remove a message from its queue. Fails if the message is no longer queued.
    RemoveQueued(RemoveQueuedParams) = "remove_queued", Prompting, OWN, Ordered, Session::remove_queued -> ();
    /// Request another answer without a new message, after a run that failed. The last message must be a user message, a tool
    /// result or a failed answer. Fails if the last run ended normally.
    Continue(NoParams) = "continue", Prompting, OWN, Task, Session::resume => Accepted;
    /// Stop the run and start an empty session in a new file.
    NewSession(NewSessionParams) = "new_session", Session, O.and(LATE), Ordered, Session::new_session => Cancelled;
    /// Old name of `new_session`.
    Reset(NoParams) = "reset", Session, H, Ordered, Session::reset => Cancelled;
    /// Return the state of the session: model, modes, queues, active work.
    GetState(NoParams) = "get_state", State, ALL, Ordered, Session::get_state => SessionState;
    /// Return all messages of the current branch.
    GetMessages(NoParams) = "get_messages", State, ALL, Ordered, Session::get_messages -> Messages;
    /// Return messages of the current branch in pages, for clients of oh-my-pi. Fails while a run or a compaction is active, and
    /// if the conversation has changed since the page before.
    GetMessagesPage(MessagesPageParams) = "get_messages_page", State, N, Ordered, Session::get_messages_page -> MessagesPage;
    /// Return the entries of the session file, of all branches, in the order in which they were appended.
    GetEntries(EntriesParams) = "get_entries", State, N.and(PI), Ordered, Session::get_entries -> Entries;
    /// Select the model. An active run keeps its model.
    SetModel(SetModelParams) = "set_model", Models, ALL, Ordered, Session::set_model => crate::model::Model;
    /// Select the next model of the list. Returns null if there is no other model.
    CycleModel(NoParams) = "cycle_model", Models, ALL, Ordered, Session::cycle_model => Option<CycledModel>;
    /// List the models for which credentials exist.
    GetAvailableModels(NoParams) = "get_available_models", Models, ALL, Task, Session::get_available_models => Models;
    /// Set the thinking level. A level that the model does not offer is replaced by the nearest one.
    SetThinkingLevel(ThinkingParams) = "set_thinking_level", Models, ALL, Ordered, Session::set_thinking_level => ();
    /// Select the next thinking level. Returns null if the model does not support thinking.
    CycleThinkingLevel(NoParams) = "cycle_thinking_level", Models, ALL, Ordered, Session::cycle_thinking_level => Option<CycledThinking>;
    /// Set fast mode, for clients of oh-my-pi. Pinion cannot ask a provider for faster answers, so it can only be off.
    SetFastMode(EnabledParams) = "set_fast_mode", Models, N, Ordered, Session::set_fast_mode -> FastMode;
    /// Set the models that a run falls back to when its model is overloaded after all retries, out of quota, or rejects the key.
    SetFallbackModels(FallbackModelsParams) = "set_fallback_models", Models, OWN, Ordered, Session::set_fallback_models -> FallbackModels;
    /// Return the fallback models of the session.
    GetFallbackModels(NoParams) = "get_fallback_models", Models, OWN, Ordered, Session::get_fallback_models -> FallbackModels;
    /// List the thinking levels of the current model.
    GetAvailableThinkingLevels(NoParams) = "get_available_thinking_levels", Models, N.and(PI), Ordered, Session::get_available_thinking_levels -> ThinkingLevels;
    /// Set how many steering messages are delivered at once.
    SetSteeringMode(QueueModeParams) = "set_steering_mode", Prompting, LATE, Ordered, Session::set_steering_mode -> ();
    /// Set how many follow-up messages are delivered at once.
    SetFollowUpMode(QueueModeParams) = "set_follow_up_mode", Prompting, LATE, Ordered, Session::set_follow_up_mode -> ();
    /// Old name of `set_steering_mode` and `set_follow_up_mode`: sets both.
    SetQueueMode(QueueModeParams) = "set_queue_mode", Prompting, HO, Ordered, Session::set_queue_mode -> ();
    /// Set when a steering message takes effect. The mode is read at the start of a run.
    SetInterruptMode(InterruptModeParams) = "set_interrupt_mode", Prompting, XN, Ordered, Session::set_interrupt_mode -> ();
    /// Stop the run and replace the older part of the conversation by a summary. In a process that starts with the dialect `omp-now`, the
    /// run goes on afterwards.
    Compact(CompactParams) = "compact", Runs, EVERY, Task, Session::compact => crate::event::CompactionResult;
    /// Replace the older part of the conversation by a document for the person or agent that continues, for clients of oh-my-pi. Fails
    /// while a run is active.
    Handoff(CompactParams) = "handoff", Runs, N, Task, Session::handoff => Handoff;
    /// Enable or disable automatic compaction.
    SetAutoCompaction(EnabledParams) = "set_auto_compaction", Runs, ALL, Ordered, Session::set_auto_compaction -> ();
    /// Enable or disable automatic retries.
    SetAutoRetry(EnabledParams) = "set_auto_retry", Runs, ALL, Ordered, Session::set_auto_retry -> ();
    /// Cancel a retry delay. The run then ends as failed.
    AbortRetry(NoParams) = "abort_retry", Runs, ALL, Control, Session::abort_retry => ();
    /// Run a shell command for the user. The model receives command and output with the next prompt.
    Bash(BashParams) = "bash", Runs, ALL, Task, Session::bash => BashResult;
    /// Kill all running `bash` commands.
    AbortBash(NoParams) = "abort_bash", Runs, ALL, Control, Session::abort_bash => ();
    /// Return the text of the last answer.
    GetLastAssistantText(NoParams) = "get_last_assistant_text", State, ALL, Ordered, Session::get_last_assistant_text -> LastText;
    /// Set the limits of the session: turns, tool calls, tokens, cost, seconds, repeated calls. A run that reaches one ends in order.
    /// Fails if a cost is limited and the price of the model is unknown.
    SetLimits(SetLimitsParams) = "set_limits", Runs, OWN, Control, Session::set_limits -> SessionLimits;
    /// Return the limits of the session and how much it has used of them.
    GetLimits(NoParams) = "get_limits", Runs, OWN, Ordered, Session::get_limits -> SessionLimits;
    /// Return message counts, tokens and cost of the conversation; with `byModel` also the cost of each model in the whole
    /// session.
    GetSessionStats(StatsParams) = "get_session_stats", State, ALL, Ordered, Session::get_session_stats -> SessionStats;
    /// Write the session as one HTML page that needs no network. Only an earlier export is overwritten.
    ExportHtml(ExportParams) = "export_html", Session, ALL, Task, Session::export_html => Exported;
    /// Stop the run and continue in another session file. A file that does not exist becomes a new session.
    SwitchSession(SwitchParams) = "switch_session", Session, ALL, Ordered, Session::switch_session => Cancelled;
    /// Stop the run and continue in a new session that contains everything before a user message.
    Fork(ForkParams) = "fork", Session, W.and(PI), Ordered, Session::fork => Forked;
    /// Old name of `fork`. Also accepts `entryIndex`.
    Branch(BranchParams) = "branch", Session, HO.and(XN), Ordered, Session::branch => Forked;
    /// Stop the run and move to another entry of the session tree, in the same file. The abandoned branch can be summarised
    /// first.
    NavigateTree(NavigateParams) = "navigate_tree", Session, W, Task, Session::navigate_tree => Navigated;
    /// Compare the files before and after the changes of a turn, a run or the whole session. Fails if checkpoints are off.
    GetChanges(ChangesParams) = "get_changes", Session, OWN, Task, Session::get_changes => Changes;
    /// Restore the files, the conversation or both as they were when an entry was the last one. Files that others have changed
    /// meanwhile stay as they are, unless `force`. Fails while a run or a `bash` command is active, and if checkpoints are off.
    Rewind(RewindParams) = "rewind", Session, OWN, Ordered, Session::rewind => Rewound;
    /// Take the newest `rewind` back. Fails if there is none.
    Unrewind(UnrewindParams) = "unrewind", Session, OWN, Ordered, Session::unrewind => Rewound;
    /// Set or remove the label of an entry.
    SetEntryLabel(LabelParams) = "set_entry_label", Session, W, Ordered, Session::set_entry_label -> ();
    /// Stop the run and continue in a new session that is a copy of the current branch.
    Clone(NoParams) = "clone", Session, PI, Ordered, Session::clone_session => Cancelled;
    /// List the user messages that `fork` accepts, of all branches.
    GetForkMessages(NoParams) = "get_fork_messages", Session, W.and(PI), Ordered, Session::get_fork_messages -> ForkMessages;
    /// List the user messages that `branch` accepts, of all branches, with their index.
    GetBranchMessages(NoParams) = "get_branch_messages", Session, HO.and(XN), Ordered, Session::get_branch_messages -> ForkMessages;
    /// Return the tree of entries of the session.
    GetTree(NoParams) = "get_tree", Session, N.and(PI), Ordered, Session::get_tree -> SessionTree;
    /// Return the tree of entries without message contents: position, label and a short preview of each entry.
    GetSessionTree(NoParams) = "get_session_tree", Session, W, Ordered, Session::get_session_tree -> SessionOutline;
    /// List the session files on disk, most recent first.
    ListSessions(ListParams) = "list_sessions", Session, W, Task, Session::list_sessions => Sessions;
    /// Open another session in this process. Commands with its handle in `session` go to it.
    OpenSession(OpenSessionParams) = "open_session", Session, N, Task, Manager::open_session => OpenedSession;
    /// Stop the run and continue the newest session of a directory that has messages. If there is none, start a session there.
    ContinueSession(ContinueSessionParams) = "continue_session", Session, OWN, Ordered, Session::continue_session => ContinuedSession;
    /// Stop the run of the session named in `session` and close the session.
    CloseSession(NoParams) = "close_session", Session, OWN, Ordered, Session::close_session => ();
    /// Delete a session that is not open. Pinion moves its file into `.trash` in the same directory. Only files in the
    /// session directory can be deleted.
    DeleteSession(DeleteSessionParams) = "delete_session", Session, OWN, Task, Manager::delete_session => DeletedSession;
    /// List the sessions that are open in this process.
    ListOpenSessions(NoParams) = "list_open_sessions", Session, OWN, Task, Manager::list_open_sessions => OpenSessions;
    /// List the subdirectories of a directory, for a directory picker.
    ListDirectory(DirectoryParams) = "list_directory", Tools, W, Task, Session::list_directory => Directory;
    /// Find files and directories below the working directory that match a partial name. Ignored files are left out. A later
    /// query of the same client cancels an earlier one.
    FindFiles(FindFilesParams) = "find_files", Tools, OWN, Task, Session::find_files => FoundFiles;
    /// List the slash commands that a prompt can begin with.
    GetCommands(NoParams) = "get_commands", Tools, W.and(PI), Ordered, Session::get_commands -> Commands;
    /// List the slash commands that a prompt can begin with, for clients of oh-my-pi.
    GetAvailableCommands(NoParams) = "get_available_commands", Tools, N, Ordered, Session::get_available_commands -> AvailableCommands;
    /// List the sub-agents of the session, that work now.
    GetSubagents(NoParams) = "get_subagents", Tools, N, Ordered, Session::get_subagents -> Subagents;
    /// Return messages of a sub-agent that has a session file.
    GetSubagentMessages(SubagentMessagesParams) = "get_subagent_messages", Tools, N, Ordered, Session::get_subagent_messages -> SubagentMessages;
    /// Set which events of sub-agents are sent.
    SetSubagentSubscription(SubagentSubscriptionParams) = "set_subagent_subscription", Tools, N, Ordered, Session::set_subagent_subscription -> SubagentSubscription;
    /// List the background processes of the session.
    ListProcesses(NoParams) = "list_processes", Tools, OWN, Ordered, Session::list_processes -> ProcessesReply;
    /// Read the output of a background process.
    ReadProcess(ReadProcessParams) = "read_process", Tools, OWN, Ordered, Session::read_process -> ProcessData;
    /// Write to the input of a background process.
    WriteProcess(WriteProcessParams) = "write_process", Tools, OWN, Task, Session::write_process => ();
    /// Change the size of the terminal of a background process.
    ResizeProcess(ResizeProcessParams) = "resize_process", Tools, OWN, Ordered, Session::resize_process -> ();
    /// Kill a background process and all that it started.
    KillProcess(KillProcessParams) = "kill_process", Tools, OWN, Task, Session::kill_process => ProcessInfo;
    /// Set whether the end of a background process may wake the session when it is idle. A run begins then, in which the model hears of it.
    SetProcessWakeups(EnabledParams) = "set_process_wakeups", Tools, OWN, Ordered, Session::set_process_wakeups -> ();
    /// Return completions for the arguments of a slash command of an extension.
    CompleteArguments(CompleteParams) = "complete_arguments", Tools, OWN, Task, Session::complete_arguments => Completions;
    /// List all tools and which of them the model can call.
    GetTools(NoParams) = "get_tools", Tools, W, Ordered, Session::get_tools -> Tools;
    /// Set which tools the model can call, starting with its next request.
    SetActiveTools(ActiveToolsParams) = "set_active_tools", Tools, W, Ordered, Session::set_active_tools -> ActiveTools;
    /// Read settings, context files, skills, prompt templates and extensions again. Fails while a run is active. Returns the
    /// same as `get_commands`, after the extensions have loaded.
    ReloadResources(NoParams) = "reload_resources", Tools, W, Ordered, Session::reload_resources => Commands;
    /// List the keyboard shortcuts that extensions have registered. A client with a keyboard can offer them.
    GetShortcuts(NoParams) = "get_shortcuts", Tools, OWN, Ordered, Session::get_shortcuts -> Shortcuts;
    /// Run a keyboard shortcut of an extension. The response comes when its handler has finished. A failure is reported as
    /// `extension_error`.
    RunShortcut(ShortcutParams) = "run_shortcut", Tools, OWN, Task, Session::run_shortcut => ();
    /// Return how many tokens of the context window are used.
    GetContextUsage(NoParams) = "get_context_usage", State, W, Ordered, Session::get_context_usage -> ContextUsageReply;
    /// Negotiate the framing, for clients of oh-my-pi. Version 2 splits objects above 1 MiB into several lines.
    NegotiateProtocol(NegotiateParams) = "negotiate_protocol", Connection, N, Ordered, Session::negotiate_protocol -> Negotiated;
    /// List the providers that support a login: built-in ones and those of extensions.
    GetLoginProviders(NoParams) = "get_login_providers", Models, N, Ordered, Session::get_login_providers -> LoginProviders;
    /// Log in to a provider. Pages to open and questions are sent as `extension_ui_request`. The response comes when the
    /// login has ended.
    Login(LoginParams) = "login", Models, N, Task, Session::login => LoggedIn;
    /// Replace the todo list of the session. Returns the list with all ids and statuses filled in. The list is stored with
    /// the session.
    SetTodos(TodosParams) = "set_todos", State, XN, Ordered, Session::set_todos -> Todos;
    /// Set the name of the session.
    SetSessionName(SessionNameParams) = "set_session_name", Session, LATE, Ordered, Session::set_session_name -> ();
    /// Set which tool calls run without a question, for this session. Returns the resulting mode. Calls that the project
    /// settings deny stay denied.
    SetPermissionMode(PermissionModeParams) = "set_permission_mode", Tools, OWN, Ordered, Session::set_permission_mode -> PermissionModeReply;
    /// Return whether the project is trusted, and which of its resources are not used because it is not.
    GetProjectTrust(NoParams) = "get_project_trust", Tools, OWN, Ordered, Session::get_project_trust -> ProjectTrust;
    /// Set whether the project is trusted. The change takes effect with the next session or `reload_resources`.
    SetProjectTrust(ProjectTrustParams) = "set_project_trust", Tools, OWN, Ordered, Session::set_project_trust -> ProjectTrust;
    /// Return versions, dialect, commands with their lanes, events, capabilities and limits.
    GetProtocol(NoParams) = "get_protocol", Connection, OWN, Ordered, Connection::get_protocol -> Protocol;
    /// Negotiate the dialect and the options of this connection. They apply to everything after the response.
    Hello(Box<HelloParams>) = "hello", Connection, OWN, Ordered, Connection::hello -> Welcome;
    /// Set which events of runs are sent, for clients of oh-my-pi. Responses, outcomes of prompts, dialogs and calls of the
    /// client's tools are always sent.
    SetEventFilter(EventFilterParams) = "set_event_filter", Connection, N, Ordered, Connection::set_event_filter -> EventFilter;
    /// Send the events after a sequence number again. If they are no longer stored, or without a number, return a snapshot of
    /// the session.
    Replay(ReplayParams) = "replay", Connection, OWN, Ordered, Connection::replay -> Replayed;
    /// Register tools that the client runs. They replace the tools registered before, starting with the next request to the
    /// model. Calls that are running continue.
    SetHostTools(HostToolsParams) = "set_host_tools", Client, XN, Ordered, Session::set_host_tools -> HostToolNames;
    /// Register URI schemes that the client serves to the tools `read` and `write`. They replace the schemes registered
    /// before.
    SetHostUriSchemes(HostUriSchemesParams) = "set_host_uri_schemes", Client, N, Ordered, Session::set_host_uri_schemes -> HostUriSchemes;
    /// List the MCP servers of the session and their status. Servers that are not running are started. After this command the
    /// session sends `mcp_servers_change`.
    GetMcpServers(NoParams) = "get_mcp_servers", Mcp, OWN, Ordered, Session::get_mcp_servers -> McpServers;
    /// Configure MCP servers for this session, in addition to those of configuration files. A server here replaces one of the
    /// same name there. The list replaces the one set before and is kept when the session continues in another file. If one
    /// server is invalid, nothing changes.
    SetMcpServers(McpServersParams) = "set_mcp_servers", Mcp, OWN, Ordered, Session::set_mcp_servers -> McpServers;
    /// Reconnect one MCP server, or all of them. The response comes before the connection is established.
    McpReconnect(McpReconnectParams) = "mcp_reconnect", Mcp, OWN, Ordered, Session::mcp_reconnect -> ();
}

/// The members of a line that are read before its type is known.
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
