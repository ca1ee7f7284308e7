//! The interface between a session and its tools. Built-in tools, the todo list, extensions, MCP servers and clients implement
//! [`Tool`]; what calls one is `ToolCalls`. Nothing here knows which kinds of tool there are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tools::{StartLine, ToolOutcome, Toolbox};
use wire::{ToolCall, ToolSpec};

use permissions::{Call, Proposal, Source};

use super::report::ProgressSender;
use super::task::TaskOwner;
use crate::session::checkpoints::TurnCheckpoint;

/// A call that runs. Dropping it ends what it started.
pub(crate) type Running = Pin<Box<dyn Future<Output = ToolOutcome> + Send>>;

/// Arguments that the owner of a tool rewrites; the error is the text for the model.
pub(crate) type Rewriting = Pin<Box<dyn Future<Output = Result<Map<String, Value>, String>> + Send>>;

/// What the model, the system prompt and extensions learn about a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// Name, description and schema, for the request.
    pub(crate) spec: ToolSpec,
    /// One line for the tool list of the system prompt, which leaves out tools without one.
    pub(crate) snippet: Option<String>,
    /// Rules for the system prompt. `None` for tools that cannot bring any.
    pub(crate) guidelines: Option<Vec<String>>,
}

/// What a call gets access to, as permission rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// A command line for the shell.
    Command(String),
    /// A file or a directory, by its absolute path.
    File(PathBuf),
    /// A URI that the client serves, or the address of a page that `fetch` reads.
    Uri(String),
    /// Input for a program, which may be a shell. Rules for commands of bash judge it.
    Input(String),
    /// Something that rules cannot look into.
    Unknown,
    /// Nothing outside of the run.
    Nothing,
}

/// Where paths in arguments are resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Knows how tools read paths.
    pub(crate) toolbox: &'a Toolbox,
    /// The session's working directory, absolute.
    pub(crate) cwd: &'a Path,
}

/// What the session lends to a call, as of the moment the call starts.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Runs built-in tools.
    pub(crate) toolbox: Toolbox,
    /// The session's working directory, absolute.
    pub(crate) cwd: PathBuf,
    /// Id of the session.
    pub(crate) session: String,
    /// Variables added to the environment of commands.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Whether the model can look at images.
    pub(crate) sees_images: bool,
    /// Whether large images in results of MCP servers are made smaller.
    pub(crate) shrinks_images: bool,
    /// Where results of MCP servers go that are too large for the model.
    pub(crate) tmp_dir: PathBuf,
    /// The checkpoint of the turn, if the session has checkpoints.
    pub(crate) checkpoint: Option<TurnCheckpoint>,
    /// Where the line that announces the call was sent.
    pub(crate) start_line: Option<Arc<dyn StartLine>>,
    /// What a sub-agent needs, if the model may give tasks.
    pub(crate) task_owner: Option<Box<TaskOwner>>,
}

/// A call that starts.
pub(crate) struct Invocation {
    /// Position of the call in its batch.
    pub(crate) slot: usize,
    /// The id that the model gave the call.
    pub(crate) id: String,
    /// The arguments, checked.
    pub(crate) args: Map<String, Value>,
    /// What permission rules judged; none if there are no permissions.
    pub(crate) judged: Option<Access>,
    /// What the session lends to the call.
    pub(crate) environment: Environment,
    /// Cancelled when the call is to end.
    pub(crate) cancel: CancellationToken,
    /// Takes partial results.
    pub(crate) progress: ProgressSender,
}

/// A call whose arguments are checked and that waits for its turn.
pub(crate) struct PreparedCall {
    /// What will run. A call keeps its tool, even if another one of that name is registered meanwhile.
    pub(crate) tool: Arc<dyn Tool>,
    /// The id that the model gave the call.
    pub(crate) id: String,
    /// The checked arguments.
    pub(crate) args: Map<String, Value>,
    /// What permission rules judged; none before they do.
    pub(crate) judged: Option<Access>,
}

impl PreparedCall {
    /// A call of `tool` with checked arguments.
    pub(crate) fn new(tool: Arc<dyn Tool>, call: &ToolCall, args: Map<String, Value>) -> Self {
        Self {
            tool,
            id: call.id.clone(),
            args,
            judged: None,
        }
    }
}

/// A tool that the model can call.
pub(crate) trait Tool: Send + Sync {
    /// The name that the model calls.
    fn name(&self) -> &str;

    /// The definition as of now.
    fn definition(&self) -> Definition;

    /// Where the tool comes from. A permission that the user granted for the session is bound to it.
    fn source(&self) -> Source;

    /// Returns true if the tool becomes active when it is registered.
    fn starts_active(&self) -> bool {
        true
    }

    /// What a call with checked arguments gets access to.
    fn access(&self, _args: &Map<String, Value>, _place: Place<'_>) -> Access {
        Access::Unknown
    }

    /// Lets the owner of the tool rewrite the arguments before they are checked. `None` if it does not want to.
    fn rewrite(&self, _call: &ToolCall) -> Option<Rewriting> {
        None
    }

    /// The arguments that the tool takes for those of the call, if the conversation shows them instead after the turn.
    fn repaired(&self, _call: &ToolCall) -> Option<Map<String, Value>> {
        None
    }

    /// Checks the arguments of a call and brings them into the types of the schema. The prepared call may be one of another
    /// tool.
    ///
    /// # Errors
    /// The text for the model, if the call cannot run.
    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String>;

    /// Replaces checked arguments by the arguments of a hook. They are not checked again: the hook has the last word.
    fn change_args(&self, args: &mut Map<String, Value>, changed: Map<String, Value>) {
        *args = changed;
    }

    /// Starts a call. What must keep its place among the session's messages, such as a request to another process, is sent
    /// before this returns; the future only waits.
    fn run(&self, call: Invocation) -> Running;
}

/// A prepared call as permission rules see it.
pub(crate) struct Subject<'a> {
    definition: Definition,
    source: Source,
    access: Access,
    args: &'a Map<String, Value>,
}

impl<'a> Subject<'a> {
    /// The subject of a prepared call, which keeps what rules judge about it.
    pub(super) fn of(call: &'a mut PreparedCall, place: Place<'_>) -> Self {
        let access = call.tool.access(&call.args, place);
        call.judged = Some(access.clone());
        Self {
            definition: call.tool.definition(),
            source: call.tool.source(),
            access,
            args: &call.args,
        }
    }

    /// What the user is asked about.
    pub(crate) fn proposal(&self) -> Proposal<'_> {
        let spec = &self.definition.spec;
        Proposal {
            tool: &spec.name,
            source: self.source.clone(),
            description: &spec.description,
            // URIs of the client, and tools that it has removed meanwhile, have no schema.
            schema: Some(&spec.parameters).filter(|schema| !schema.is_null()),
            args: self.args,
        }
    }

    /// What rules judge.
    pub(crate) fn call(&self) -> Call {
        let tool = &self.definition.spec.name;
        let call = match &self.access {
            Access::Command(command) => Call::command(tool, command),
            Access::Input(text) => Call::input("bash", text),
            // Rules judge the path as it is named, and the file that links lead to.
            Access::File(path) => Call::file(tool, path.clone(), process::real_path(path)),
            Access::Uri(uri) => Call::uri(tool, uri),
            Access::Unknown => Call::other(tool),
            Access::Nothing => Call::harmless(tool),
        };
        // A consent for the session must not cover another tool that takes this name later (GUARANTEES.md, 60).
        call.bound_to(self.proposal().identity())
            .from_source(&self.source)
    }
}
