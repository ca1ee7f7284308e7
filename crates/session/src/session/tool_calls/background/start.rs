//! The tool `bash` of a session with background processes: `background` and `pty` in addition to the usual arguments. Without them a call is
//! one of the built-in tool.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tools::{BackgroundCommand, TerminalSize, ToolOutcome};
use wire::ToolCall;

use permissions::Source;

use crate::{limits, strings};

use super::super::tool::{Access, Definition, Environment, Invocation, Place, PreparedCall, Running, Tool};
use super::control::PROCESS_TOOL;
use super::process::{Process, result};
use super::processes::Processes;
use super::wait;

/// The size of a terminal until a client says otherwise.
const SIZE: TerminalSize = TerminalSize {
    columns: 120,
    rows: 30,
};

/// The tool.
pub(crate) struct BackgroundBash {
    built_in: Arc<dyn Tool>,
    processes: Processes,
}

impl BackgroundBash {
    /// The built-in tool with background processes.
    pub(crate) fn new(built_in: Arc<dyn Tool>, processes: Processes) -> Self {
        Self { built_in, processes }
    }
}

fn is_set(args: &Map<String, Value>, name: &str) -> bool {
    args.get(name) == Some(&Value::Bool(true))
}

impl Tool for BackgroundBash {
    fn name(&self) -> &str {
        self.built_in.name()
    }

    fn definition(&self) -> Definition {
        let mut definition = self.built_in.definition();
        let properties = definition.spec.parameters.get_mut("properties");
        if let Some(Value::Object(properties)) = properties {
            let background = "true: the command goes on in the background, for servers and watchers. The result names the process; \
                              watch it with the tool process";
            let terminal =
                "true, with background: the command gets a terminal, as interactive programs need it";
            properties.insert(
                "background".to_owned(),
                json!({"type": "boolean", "description": background}),
            );
            properties.insert(
                "pty".to_owned(),
                json!({"type": "boolean", "description": terminal}),
            );
        }
        // Providers allow only schemas in which all arguments are required to be strict.
        definition.spec.prefers_strict = false;
        definition
    }

    fn source(&self) -> Source {
        self.built_in.source()
    }

    fn access(&self, args: &Map<String, Value>, place: Place<'_>) -> Access {
        self.built_in.access(args, place)
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        // The built-in tool does not know these arguments and would refuse them.
        let mut plain = call.clone();
        for name in ["background", "pty"] {
            plain.arguments.remove(name);
        }
        let prepared = Arc::clone(&self.built_in).prepare(&plain)?;
        let (background, pty) = (
            is_set(&call.arguments, "background"),
            is_set(&call.arguments, "pty"),
        );
        if !background {
            return if pty {
                Err(strings::PTY_WITHOUT_BACKGROUND.to_owned())
            } else {
                Ok(prepared)
            };
        }
        let mut args = prepared.args;
        // Put back: hooks and permissions see these arguments, and `run` reads them.
        args.insert("background".to_owned(), true.into());
        args.insert("pty".to_owned(), pty.into());
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        let processes = self.processes.clone();
        Box::pin(async move {
            let Environment {
                toolbox, cwd, env, ..
            } = call.environment;
            let text = |name: &str| call.args.get(name).and_then(Value::as_str).unwrap_or_default();
            let command = BackgroundCommand {
                command: text("command").to_owned(),
                cwd,
                env,
                terminal: is_set(&call.args, "pty").then_some(SIZE),
            };
            let limit = call.args.get("timeout").and_then(Value::as_f64);
            // A timeout that is no length of time (negative, not finite) counts as none.
            let limit = limit.filter(|seconds| *seconds > 0.0);
            let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let starting = processes.start(&toolbox, command);
            let process = tokio::select! {
                biased;
                // First: the model must get the id of a process that has started, even after an abort.
                started = starting => started,
                () = call.cancel.cancelled() => Err(strings::ABORTED.to_owned()),
            };
            match process {
                Ok(process) => begun(&process, limit, &call.cancel).await,
                Err(error) => ToolOutcome::error(error),
            }
        })
    }
}

/// What the model gets: a command that fails at once has failed, another one is in the background.
async fn begun(process: &Arc<Process>, limit: Option<Duration>, cancel: &CancellationToken) -> ToolOutcome {
    // A timeout counts from the start, in the background as well.
    if let Some(limit) = limit {
        let process = Arc::clone(process);
        // The call has returned when the time is over.
        tokio::spawn(async move {
            if tokio::time::timeout(limit, wait::ended(&process)).await.is_err() {
                // Killed and not ended by itself, so that this end does not wake the session.
                process.control.kill();
            }
        });
    }
    // Bounded: the call of a process that goes on must come back to the model.
    let first = tokio::time::timeout(limits::PROCESS_FIRST_WAIT, wait::ended(process));
    tokio::select! {
        biased;
        // An abort ends the run and not its servers: the process goes on, and the model gets its id.
        () = cancel.cancelled() => {}
        _late = first => {}
    }
    process.note_told();
    // A wait for a text that is here already must find it.
    let (id, (news, _)) = (&process.id, process.unread());
    let output = if news.trim().is_empty() {
        "(no output yet)"
    } else {
        news.trim_end()
    };
    if process.is_running() {
        let head = format!("Process {id} runs in the background; the tool {PROCESS_TOOL} watches it.");
        return ToolOutcome::ok(result(process, format!("{head}\n\n{output}")));
    }
    let text = format!("{output}\n\nProcess {id} {}", process.status_line());
    // Also without a code: then a signal has ended it.
    let has_failed = process.state().exit_code != Some(0);
    ToolOutcome {
        result: result(process, text),
        is_error: has_failed,
    }
}
