//! The response line, and the union of all replies that it can carry (behaviour.md 1.2, 1.8).

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::changes::{Changes, Rewound};
use crate::connection::{Protocol, Replayed, Welcome};
use crate::event::CompactionResult;
use crate::hosted::{HostToolNames, HostUriSchemes};
use crate::looking::{DeletedSession, Directory, FoundFiles};
use crate::mcp::McpServers;
use crate::model::Model;
use crate::omp::{
    AvailableCommands, ContinuedSession, EventFilter, FastMode, Handoff, MessagesPage, StateWithPrompt,
};
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

/// The `data` of a successful response.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each variant is documented by the type it holds")]
pub enum Reply {
    /// No `data` at all.
    #[serde(skip)]
    Nothing,
    State(Box<SessionState>),
    StateWithPrompt(Box<StateWithPrompt>),
    Stats(Box<SessionStats>),
    Messages(Messages),
    Entries(Entries),
    Model(Box<Model>),
    CycledModel(Box<Option<CycledModel>>),
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
    MessagesPage(MessagesPage),
    AvailableCommands(AvailableCommands),
    EventFilter(EventFilter),
    FastMode(FastMode),
    SubagentSubscription(SubagentSubscription),
    Subagents(Subagents),
    SubagentMessages(Box<SubagentMessages>),
    Processes(ProcessesReply),
    ProcessData(Box<ProcessData>),
    Process(Box<ProcessInfo>),
    Handoff(Handoff),
    ContinuedSession(ContinuedSession),
    Limits(Box<SessionLimits>),
    FallbackModels(FallbackModels),
    Changes(Box<Changes>),
    Rewound(Box<Rewound>),
}

/// Lets a handler return the type that its row of the command table names.
macro_rules! reply_from {
    ([$( $variant:ident($reply:ty), )+] in boxes [$( $boxed:ident($large:ty), )+]) => {
        $( impl From<$reply> for Reply {
            fn from(reply: $reply) -> Self {
                Self::$variant(reply)
            }
        } )+
        $( impl From<$large> for Reply {
            fn from(reply: $large) -> Self {
                Self::$boxed(Box::new(reply))
            }
        } )+
    };
}

reply_from! {
    [
    Messages(Messages),
    Entries(Entries),
    Models(Models),
    CycledThinking(Option<CycledThinking>),
    ThinkingLevels(ThinkingLevels),
    Bash(BashResult),
    LastText(LastText),
    Accepted(Accepted),
    Queues(Queues),
    QueueItems(QueueItems),
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
    OpenSessions(OpenSessions),
    Directory(Directory),
    FoundFiles(FoundFiles),
    DeletedSession(DeletedSession),
    Commands(Commands),
    ContextUsage(ContextUsageReply),
    Todos(Todos),
    LoginProviders(LoginProviders),
    LoggedIn(LoggedIn),
    Exported(Exported),
    HostTools(HostToolNames),
    HostUriSchemes(HostUriSchemes),
    PermissionMode(PermissionModeReply),
    ProjectTrust(ProjectTrust),
    Completions(Completions),
    Shortcuts(Shortcuts),
    McpServers(McpServers),
    MessagesPage(MessagesPage),
    AvailableCommands(AvailableCommands),
    EventFilter(EventFilter),
    FastMode(FastMode),
    SubagentSubscription(SubagentSubscription),
    Subagents(Subagents),
    Handoff(Handoff),
    ContinuedSession(ContinuedSession),
    FallbackModels(FallbackModels),
    Processes(ProcessesReply),
    ] in boxes [
    State(SessionState),
    StateWithPrompt(StateWithPrompt),
    Stats(SessionStats),
    Model(Model),
    CycledModel(Option<CycledModel>),
    Protocol(Protocol),
    Hello(Welcome),
    Replayed(Replayed),
    OpenedSession(OpenedSession),
    Compacted(CompactionResult),
    Limits(SessionLimits),
    Changes(Changes),
    Rewound(Rewound),
    SubagentMessages(SubagentMessages),
    ProcessData(ProcessData),
    Process(ProcessInfo),
    ]
}

impl Reply {
    /// Returns the state of the session if this is a reply to `get_state`.
    #[must_use]
    pub fn state(&self) -> Option<&SessionState> {
        match self {
            Self::State(state) => Some(state),
            Self::StateWithPrompt(shown) => Some(&shown.state),
            _ => None,
        }
    }
}

impl From<()> for Reply {
    fn from((): ()) -> Self {
        Self::Nothing
    }
}

/// A response line. At most one is sent for each command, exactly one unless the process ends before.
#[derive(Debug, Clone)]
pub struct Response {
    /// The command's `id`, any JSON value; absent if it had none.
    pub id: Option<Box<RawValue>>,
    /// The command's name; `parse` when the line was no command. Absent when the line had no `type`.
    pub command: Option<Value>,
    /// The reply, or a sentence that says why the command failed.
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
