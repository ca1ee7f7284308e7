//! The lines between agent and extension processes, as types. `process` matches requests with answers; the agent decides the
//! effect of a call.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// A line to the child.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToChild<'a> {
    /// The first line. Answered with `ready` within 10 s.
    Hello {
        /// Version of the protocol: 1.
        protocol: u32,
        /// Name and version of the agent.
        agent: &'a str,
        /// See `agent`.
        version: &'a str,
        /// Directory of settings, keys and sessions.
        agent_dir: &'a str,
        /// Path of the agent's program, for extensions that start it again.
        #[serde(skip_serializing_if = "Option::is_none")]
        program: Option<&'a str>,
    },
    /// Opens a session. The process answers with the registrations of its extensions; the session waits for that at
    /// most 10 s. The `value` of the answer is an `Opened`. A program loads only itself, and may omit its `path`.
    Open {
        /// To answer to.
        id: u64,
        /// Handle of the session on all lines.
        session: &'a str,
        /// Extensions to load, in the order in which their handlers run.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<Source>"))]
        extensions: &'a [Source],
        /// Values of flags from the command line.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        flags: &'a Map<String, Value>,
        /// State of the session; later lines of type `state` contain changes.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        state: &'a RawValue,
        /// Compatibility with extensions of older agents.
        #[serde(flatten)]
        era: Era,
    },
    /// Changes of a session, sent before a line that may need them; the changed members are next to `type` and `session`.
    State {
        /// The session.
        session: &'a str,
        /// The changed members.
        #[serde(flatten)]
        state: &'a Map<String, Value>,
    },
    /// Entries of a session without a file.
    Entries {
        /// The session.
        session: &'a str,
        /// Index of the first one among all entries.
        from: usize,
        /// The entries, in order.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<Value>"))]
        entries: &'a RawValue,
        /// The session's header; only with the first entries.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
        header: Option<&'a RawValue>,
    },
    /// An event that the extension listens to. With an `id`, the process must send a `result`.
    Event {
        /// The session.
        session: &'a str,
        /// Present if the event needs a `result`.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// Name of the event.
        name: &'a str,
        /// Members of the event.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        event: &'a RawValue,
    },
    /// Calls a method, for example to run a tool. The process answers with `result` or `error`; `update` lines may come
    /// first.
    Call {
        /// The session.
        session: &'a str,
        /// To answer to.
        id: u64,
        /// The method.
        method: &'a str,
        /// Parameters of the method.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        params: &'a RawValue,
    },
    /// Cancels a request: its answer is not used, except for `user_bash`, but must still be sent.
    Cancel {
        /// Id of the event or call.
        id: u64,
    },
    /// The run of a session was aborted.
    Abort {
        /// The session.
        session: &'a str,
    },
    /// Progress of a call that the extension made.
    Update {
        /// Id of the call.
        id: u64,
        /// The progress.
        #[cfg_attr(feature = "schema", schemars(with = "Value"))]
        value: &'a RawValue,
    },
    /// The result of a call that the extension made.
    Result {
        /// Id of the call.
        id: u64,
        /// The result.
        #[cfg_attr(feature = "schema", schemars(with = "Value"))]
        value: &'a RawValue,
    },
    /// The failure or refusal of a call that the extension made.
    Error {
        /// Id of the call.
        id: u64,
        /// The reason.
        message: &'a str,
    },
    /// Closes a session; the process can free its state.
    Close {
        /// To answer to.
        id: u64,
        /// The session.
        session: &'a str,
        /// `quit`, `reload`, `new`, `resume` or `fork`.
        reason: &'a str,
    },
    /// Checks that the process is alive. Only sent while an answer is pending. Pinion ends a process that then sends
    /// nothing at all for 10 s.
    Ping {
        /// To answer to.
        id: u64,
    },
}

/// An extension to load.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// File or directory.
    pub path: String,
    /// Origin of the extension.
    pub scope: Scope,
    /// API generation that it was written for.
    pub kind: Kind,
}

/// Compatibility with extensions of older agents; programs ignore it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Era {
    /// The agent that the client expects.
    pub generation: Generation,
    /// Time limit of handlers of kind `hook` in milliseconds; not for `tool_call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_timeout: Option<u64>,
}

/// The agent that the extensions of a session were written for.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Generation {
    /// pi since 0.35.
    Pi,
    /// pi with hooks (before 0.35).
    Hooks,
    /// oh-my-pi and xcsh.
    Omp,
}

/// Origin of an extension.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The agent directory, or the user's settings.
    User,
    /// The project.
    Project,
    /// The command line.
    Temporary,
}

/// The generation of the API that an extension was written for.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Today's extensions.
    Extension,
    /// A hook of pi before 0.35.
    Hook,
    /// A tool of pi before 0.35.
    Tool,
    /// A command in TypeScript of oh-my-pi.
    Command,
}

/// A line from the child. Lines of other types and members not named here are ignored.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FromChild {
    /// The first line, after `hello`.
    Ready {
        /// Version of the protocol that the process uses.
        #[serde(default)]
        protocol: u32,
        /// Name and version of the runtime: `node 20.11.0`.
        #[serde(default)]
        runtime: String,
    },
    /// The answer to a line of the agent that had an `id`.
    Result {
        /// Id of the agent's line.
        id: u64,
        /// The result.
        #[serde(default)]
        value: Value,
        /// Errors of single handlers.
        #[serde(default)]
        errors: Vec<Failure>,
    },
    /// The failure of a request. A failed `tool_call` blocks the call.
    Error {
        /// Id of the agent's line.
        id: u64,
        /// The reason.
        #[serde(default)]
        message: String,
    },
    /// Progress of a call.
    Update {
        /// Id of the call.
        id: u64,
        /// The progress.
        #[serde(default)]
        value: Value,
    },
    /// Calls a method of the agent (see the methods).
    Call {
        /// Handle of the session.
        #[serde(default)]
        session: String,
        /// Present if the call needs a response.
        #[serde(default)]
        id: Option<u64>,
        /// The method.
        method: String,
        /// Parameters of the method.
        #[serde(default)]
        params: Value,
    },
    /// Cancels a call that the process made.
    Cancel {
        /// Id of the call.
        id: u64,
    },
    /// Replaces the registrations of an extension.
    Changed {
        /// The session.
        session: String,
        /// All registrations of the extension.
        #[serde(flatten)]
        registered: Box<Registered>,
    },
    /// An error outside any request, such as a rejected promise without a handler.
    Failure {
        /// The session, if it is known.
        #[serde(default)]
        session: Option<String>,
        /// The error.
        #[serde(flatten)]
        failure: Failure,
    },
    /// A line for the log.
    Log {
        /// `debug`, `info`, `warn` or `error`.
        #[serde(default)]
        level: String,
        /// The text.
        #[serde(default)]
        message: String,
    },
    /// The answer to `ping`.
    Pong {
        /// Id of the `ping`.
        #[serde(default)]
        id: u64,
    },
    /// A line of a later version; ignored.
    #[cfg_attr(feature = "schema", schemars(skip))]
    #[serde(other)]
    Unknown,
}

/// An error of an extension.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Path of the extension.
    #[serde(default)]
    pub path: String,
    /// The event, or another name of the failed work.
    #[serde(default)]
    pub event: String,
    /// The error message.
    #[serde(default)]
    pub error: String,
    /// The stack trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// Registrations of all extensions of a session: the answer to `open`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Opened {
    /// One per requested extension, in order.
    #[serde(default)]
    pub extensions: Vec<Registered>,
}

/// Registrations of one extension.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Registered {
    /// Path of the extension.
    pub path: String,
    /// The requested directory, if the extension was found in one.
    pub given: Option<String>,
    /// Why the extension could not be loaded.
    pub error: Option<String>,
    /// Tools for the model.
    pub tools: Vec<Tool>,
    /// Slash commands.
    pub commands: Vec<Command>,
    /// Options for the command line.
    pub flags: Vec<Flag>,
    /// Keyboard shortcuts.
    pub shortcuts: Vec<Shortcut>,
    /// Names of the events that it listens to.
    pub events: Vec<String>,
    /// Model providers, with their configuration.
    pub providers: Vec<Provider>,
    /// MCP servers for the session.
    pub mcp_servers: Vec<McpServer>,
}

/// A tool for the model.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tool {
    /// Name in calls of the model.
    pub name: String,
    /// Name in user interfaces.
    pub label: String,
    /// Description of the tool for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// A line for the system prompt.
    pub prompt_snippet: Option<String>,
    /// Rules for the system prompt.
    pub prompt_guidelines: Vec<String>,
    /// The extension changes arguments before they are validated.
    pub prepares: bool,
    /// Whether the model can call the tool as soon as it is registered; true if absent. If false, `setActiveTools` or the
    /// command line has to name it.
    pub default_active: Option<bool>,
}

/// A slash command.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Command {
    /// Name without the slash.
    pub name: String,
    /// Description for lists.
    pub description: Option<String>,
    /// Hint about its arguments.
    pub argument_hint: Option<String>,
}

/// A keyboard shortcut.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Shortcut {
    /// The keys in pi's notation: `ctrl+shift+p`.
    pub shortcut: String,
    /// Description for lists.
    pub description: Option<String>,
}

/// An option for the command line.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Flag {
    /// Without the dashes.
    pub name: String,
    /// `boolean` or `string`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For the help.
    pub description: Option<String>,
    /// When it is not given.
    pub default: Value,
}

/// A model provider.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Provider {
    /// Its id.
    pub name: String,
    /// As in `models.json`, functions left out; `streams` when the extension answers requests itself.
    pub config: Value,
}

/// An MCP server. A configured server of the same name comes first.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// As in `mcp.json`.
    pub config: Value,
}
