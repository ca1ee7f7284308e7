//! What commands on their way to sessions are for.

use std::path::Path;

use serde_json::{Map, Value, json};
use session::SessionRequest;
use wire::mcp::McpServersParams;

use crate::mcp_servers;
use crate::rpc::{Failure, INVALID_PARAMS, session_id};

/// A command or frame for a session, and the session's handle.
pub(crate) type Command = (SessionRequest, Option<Box<str>>);

/// A prompt that has ended: the id of its request and the outcome.
pub(crate) type Ended = (Value, Result<Value, Failure>);

/// What a command on its way is for. Values are ids of requests, strings ids of sessions.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// A request that opens a session.
    Opening(Step, Opening),
    /// `session/list`.
    List {
        request: Value,
        cwd: Option<String>,
        cursor: Option<String>,
    },
    /// `session/close`.
    Close(Value, String),
    /// The file of a session that `session/delete` names.
    FindToDelete(Value, String),
    /// `session/delete`.
    Delete(Value),
    /// `authenticate`.
    LogIn(Value),
    /// `logout`. No session gets a command for it.
    LogOut(Value),
    /// Configuration options.
    Config(Read, String, After),
    /// Tokens and cost. The prompt that has ended gets its response then.
    Usage(String, Option<Ended>),
    /// Slash commands.
    Commands(String),
    /// Todos.
    Plan(String),
    /// `session/prompt`.
    Prompt(String),
    /// No response follows.
    Other,
}

impl Purpose {
    /// Id of the request that gets its response when the command is answered.
    pub(crate) fn request(&self) -> Option<&Value> {
        match self {
            Self::Opening(_, opening) => Some(&opening.request),
            Self::List { request, .. } => Some(request),
            Self::Close(request, _)
            | Self::FindToDelete(request, _)
            | Self::Delete(request)
            | Self::LogIn(request)
            | Self::LogOut(request) => Some(request),
            Self::Config(_, _, after) => after.request(),
            Self::Usage(_, ended) => ended.as_ref().map(|(request, _)| request),
            Self::Commands(_) | Self::Plan(_) | Self::Prompt(_) | Self::Other => None,
        }
    }

    /// The request that opens a session with the command.
    pub(crate) fn opening(&self) -> Option<&Opening> {
        match self {
            Self::Opening(_, opening) | Self::Config(_, _, After::Opening(opening)) => Some(opening),
            _ => None,
        }
    }
}

/// Which request opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `session/new`
    New,
    /// `session/load`: the client gets the history.
    Load,
    /// `session/resume`: the client has the history.
    Resume,
    /// `session/fork`: a new session begins as a copy.
    Fork,
}

/// A request that opens a session, while its commands run.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Id of the request.
    pub(crate) request: Value,
    pub(crate) kind: Kind,
    /// Id of the session. Empty until a new one has its id.
    pub(crate) session: String,
    pub(crate) cwd: String,
    pub(crate) servers: McpServersParams,
    /// The request has opened the session. A session that was open before stays open if the request fails.
    pub(crate) has_opened: bool,
    /// The client cancelled the request.
    pub(crate) is_cancelled: bool,
    /// Usage and plan of the stored session.
    pub(crate) updates: Vec<Value>,
}

/// What the answer to a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The list of sessions contains the file.
    Find,
    Open,
    History,
    Stats,
    Servers,
}

impl Opening {
    pub(crate) fn read(request: &Value, kind: Kind, params: &Map<String, Value>) -> Result<Self, Failure> {
        let cwd = params.get("cwd").and_then(Value::as_str);
        let cwd = cwd.filter(|cwd| Path::new(cwd).is_absolute());
        let cwd =
            cwd.ok_or_else(|| Failure::new(INVALID_PARAMS, "The member cwd must be an absolute path"))?;
        let session = match kind {
            Kind::New => "",
            Kind::Load | Kind::Resume | Kind::Fork => session_id(params)?,
        };
        // session/resume and session/fork may leave the servers out.
        let servers = match (kind, params.get("mcpServers")) {
            (Kind::Resume | Kind::Fork, None) => McpServersParams::default(),
            _ => mcp_servers::read(params)?,
        };
        Ok(Self {
            request: request.clone(),
            kind,
            session: session.to_owned(),
            cwd: cwd.to_owned(),
            servers,
            has_opened: false,
            is_cancelled: false,
            updates: Vec::new(),
        })
    }
}

impl Opening {
    /// The session that the request has opened. It is closed if the request fails.
    pub(crate) fn opened(&self) -> Option<&str> {
        self.has_opened.then_some(self.session.as_str())
    }

    /// The result of the request.
    pub(crate) fn result(&self, options: Value, modes: Value) -> Value {
        match self.kind {
            Kind::New | Kind::Fork => {
                json!({"sessionId": self.session, "configOptions": options, "modes": modes})
            }
            Kind::Load | Kind::Resume => json!({"configOptions": options, "modes": modes}),
        }
    }
}

/// What follows when the options were read.
#[derive(Debug)]
pub(crate) enum After {
    /// The response to a request that opens a session.
    Opening(Opening),
    /// The response to `session/set_config_option`, with the id of the request and the option.
    Option(Value, &'static str),
    /// The response to `session/set_mode`.
    Mode(Value),
    /// An update, if something changed.
    Update,
}

impl After {
    /// The session that the request has opened.
    pub(crate) fn opened(&self) -> Option<&str> {
        match self {
            Self::Opening(opening) => opening.opened(),
            Self::Option(..) | Self::Mode(_) | Self::Update => None,
        }
    }

    /// Id of the request that gets its response.
    pub(crate) fn request(&self) -> Option<&Value> {
        match self {
            Self::Opening(opening) => Some(&opening.request),
            Self::Option(request, _) | Self::Mode(request) => Some(request),
            Self::Update => None,
        }
    }
}

/// What the answer to a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// A change was made.
    Changed,
    State,
    Levels,
    Models,
}
