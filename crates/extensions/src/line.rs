//! The lines between agent and extension processes, as types. `door` matches requests with answers; the agent decides the
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
        /// Where settings, keys and sessions are.
        agent_dir: &'a str,
        /// The agent itself, for extensions that start it again.
        #[serde(skip_serializing_if = "Option::is_none")]
        program: Option<&'a str>,
    },
    /// A session begins. Answered with what the extension registers for it; the session waits for that, but not longer than
    /// 10 s. The `value` of the answer is an `Opened`. A program loads only itself, and need not say its `path`.
    Open {
        /// To answer to.
        id: u64,
        /// What the session is called on all lines.
        session: &'a str,
        /// In the order in which their handlers run.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<Source>"))]
        extensions: &'a [Source],
        /// Values of flags from the command line.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        flags: &'a Map<String, Value>,
        /// What the extension may look at; later lines of type `state` tell what changed.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        state: &'a RawValue,
        /// How older ones are treated.
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
    /// Entries of a session that no file has.
    Entries {
        /// The session.
        session: &'a str,
        /// Place of the first one among all entries.
        from: usize,
        /// In order.
        #[cfg_attr(feature = "schema", schemars(with = "Vec<Value>"))]
        entries: &'a RawValue,
        /// The session's first line, with the first of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
        header: Option<&'a RawValue>,
    },
    /// Something happened that the extension listens to. With an `id` a `result` is awaited.
    Event {
        /// The session.
        session: &'a str,
        /// When an answer is awaited.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// Name of the event.
        name: &'a str,
        /// Its members.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        event: &'a RawValue,
    },
    /// Something is to be done, for example a tool to be run. Answered with `result` or `error`; `update` lines may come first.
    Call {
        /// The session.
        session: &'a str,
        /// To answer to.
        id: u64,
        /// What.
        method: &'a str,
        /// With what.
        #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
        params: &'a RawValue,
    },
    /// Cancels a request: its answer is not used, but must still be sent.
    Cancel {
        /// Of the event or call.
        id: u64,
    },
    /// The run of a session was aborted.
    Abort {
        /// The session.
        session: &'a str,
    },
    /// News of a call of the extension that goes on.
    Update {
        /// Of the call.
        id: u64,
        /// How far it has come.
        #[cfg_attr(feature = "schema", schemars(with = "Value"))]
        value: &'a RawValue,
    },
    /// The answer to a call of the extension.
    Result {
        /// Of the call.
        id: u64,
        /// What came of it.
        #[cfg_attr(feature = "schema", schemars(with = "Value"))]
        value: &'a RawValue,
    },
    /// The answer to a call of the extension that failed or is not granted.
    Error {
        /// Of the call.
        id: u64,
        /// Why.
        message: &'a str,
    },
    /// A session is over: it can be forgotten.
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
    /// Whose it is.
    pub scope: Scope,
    /// Which generation it was written for.
    pub kind: Kind,
}

/// How extensions are treated that were written for other agents; a program has nothing to do with it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Era {
    /// Which agent the client takes us for.
    pub generation: Generation,
    /// Milliseconds that handlers of kind `hook` may take, `tool_call` left out.
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
    /// pi in the days of hooks.
    Hooks,
    /// oh-my-pi and xcsh.
    Omp,
}

/// Where an extension was found.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Below the agent directory, or in the user's settings.
    User,
    /// In the project.
    Project,
    /// On the command line.
    Temporary,
}

/// The generation of the interface that an extension was written for.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Today's.
    Extension,
    /// Of the days of hooks.
    Hook,
    /// A tool of that time.
    Tool,
}

/// A line from the child. Lines of other types and members not named here are ignored.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FromChild {
    /// The first line, when `hello` has come.
    Ready {
        /// The version it speaks.
        #[serde(default)]
        protocol: u32,
        /// What runs it, and its version: `node 20.11.0`.
        #[serde(default)]
        runtime: String,
    },
    /// The answer to a line of the agent that had an `id`.
    Result {
        /// To what.
        id: u64,
        /// What came of it.
        #[serde(default)]
        value: Value,
        /// What went wrong on the way.
        #[serde(default)]
        errors: Vec<Failure>,
    },
    /// It could not be done. For `tool_call` that means that the call is blocked.
    Error {
        /// What.
        id: u64,
        /// Why.
        #[serde(default)]
        message: String,
    },
    /// News of a call that goes on.
    Update {
        /// Of the call.
        id: u64,
        /// How far it has come.
        #[serde(default)]
        value: Value,
    },
    /// The extension wants something (see the methods).
    Call {
        /// For this session.
        #[serde(default)]
        session: String,
        /// To answer to; none when nothing is awaited.
        #[serde(default)]
        id: Option<u64>,
        /// What.
        method: String,
        /// With what.
        #[serde(default)]
        params: Value,
    },
    /// It does not wait for this answer any more.
    Cancel {
        /// Of its call.
        id: u64,
    },
    /// What an extension has registered, anew.
    Changed {
        /// The session.
        session: String,
        /// All of it.
        #[serde(flatten)]
        registered: Box<Registered>,
    },
    /// An error outside any request, such as a rejected promise without a handler.
    Failure {
        /// The session, if it is known.
        #[serde(default)]
        session: Option<String>,
        /// What and where.
        #[serde(flatten)]
        failure: Failure,
    },
    /// For the log.
    Log {
        /// `debug`, `info`, `warn` or `error`.
        #[serde(default)]
        level: String,
        /// What.
        #[serde(default)]
        message: String,
    },
    /// The answer to `ping`.
    Pong {
        /// Of the question.
        #[serde(default)]
        id: u64,
    },
    /// Of a later version.
    #[cfg_attr(feature = "schema", schemars(skip))]
    #[serde(other)]
    Unknown,
}

/// An extension failed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The extension.
    #[serde(default)]
    pub path: String,
    /// What it was about.
    #[serde(default)]
    pub event: String,
    /// What it said.
    #[serde(default)]
    pub error: String,
    /// Where in its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// What the extensions of a session registered: the answer to `open`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Opened {
    /// One for each that was asked for, in order.
    #[serde(default)]
    pub extensions: Vec<Registered>,
}

/// What one extension registered.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Registered {
    /// The extension.
    pub path: String,
    /// The directory that was named, when the extension was found in one.
    pub given: Option<String>,
    /// Why it could not be loaded.
    pub error: Option<String>,
    /// Tools for the model.
    pub tools: Vec<Tool>,
    /// Slash commands.
    pub commands: Vec<Command>,
    /// Options for the command line.
    pub flags: Vec<Flag>,
    /// Keys that it wants to be told of.
    pub shortcuts: Vec<Shortcut>,
    /// Names of the events that it listens to.
    pub events: Vec<String>,
    /// Names of model providers that it brings, with what it says of them.
    pub providers: Vec<Provider>,
}

/// A tool for the model.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tool {
    /// What the model calls.
    pub name: String,
    /// What people see.
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
}

/// A slash command.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Command {
    /// Without the slash.
    pub name: String,
    /// For lists.
    pub description: Option<String>,
    /// What arguments it takes.
    pub argument_hint: Option<String>,
}

/// A key.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Shortcut {
    /// As pi writes it: `ctrl+shift+p`.
    pub shortcut: String,
    /// For lists.
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
