//! The tool `process`: reads, feeds, waits for and ends background processes.

use std::sync::Arc;
use std::time::Duration;

use permissions::Source;
use process::PortOwner;
use serde_json::{Map, Value, json};
use tools::{ToolOutcome, validate};
use wire::{ToolCall, ToolResult, ToolSpec};

use crate::{limits, strings};

use super::super::tool::{Access, Definition, Invocation, Place, PreparedCall, Running, Tool};
use super::process::{Process, result};
use super::processes::Processes;
use super::wait::{Goal, Met, owner_of_port, wait};

/// The name of the tool that watches processes.
pub const PROCESS_TOOL: &str = "process";

const DESCRIPTION: &str = "Watches processes that bash started in the background. read: the output since you last read it. write: types \
                           input (end lines with \\n). wait: until text appears, the process accepts connections on a port, or it \
                           ends. kill: ends the process with all its children. list: all processes.";

/// The tool.
pub(crate) struct ProcessTool {
    processes: Processes,
}

/// What a call wants.
enum Action {
    List,
    Read(String),
    Write(String, String),
    Wait(String, Wanted, Duration),
    Kill(String),
}

/// What a call waits for.
enum Wanted {
    Exit,
    Text(String),
    Port(u16),
}

impl ProcessTool {
    /// The tool for these processes.
    pub(crate) fn new(processes: Processes) -> Self {
        Self { processes }
    }
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["list", "read", "write", "wait", "kill"]},
            "processId": {"type": "string", "description": "The process, as bash named it; not for list"},
            "input": {"type": "string", "description": "write: what to type"},
            "text": {"type": "string", "description": "wait: until the output contains this"},
            "port": {"type": "integer", "description": "wait: until the process accepts connections on this port"},
            "timeout": {"type": "number", "description": "wait: seconds, 30 if left out, at most 600"},
        },
        "required": ["action"],
    })
}

fn text<'a>(args: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    args.get(name).and_then(Value::as_str)
}

fn action(args: &Map<String, Value>) -> Result<Action, String> {
    let name = text(args, "action").unwrap_or_default();
    if name == "list" {
        return Ok(Action::List);
    }
    let missing = |argument: &str| format!("{name} needs {argument}");
    let id = text(args, "processId")
        .ok_or_else(|| missing("processId"))?
        .to_owned();
    Ok(match name {
        "read" => Action::Read(id),
        "kill" => Action::Kill(id),
        "write" => Action::Write(
            id,
            text(args, "input").ok_or_else(|| missing("input"))?.to_owned(),
        ),
        _ => {
            let seconds = args.get("timeout").and_then(Value::as_f64);
            // Models also send negative and huge numbers: neither may panic, nor wait for ever.
            let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let limit = limit
                .unwrap_or(limits::PROCESS_WAIT)
                .min(limits::PROCESS_WAIT_MAX);
            Action::Wait(id, wanted(args)?, limit)
        }
    })
}

fn wanted(args: &Map<String, Value>) -> Result<Wanted, String> {
    let wanted = text(args, "text").filter(|text| !text.is_empty());
    match (wanted, args.get("port").and_then(Value::as_u64)) {
        (Some(_), Some(_)) => Err("wait takes text or port, not both".to_owned()),
        (Some(text), None) => Ok(Wanted::Text(text.to_owned())),
        (None, Some(port)) => match u16::try_from(port) {
            Ok(port) if port > 0 => Ok(Wanted::Port(port)),
            _ => Err(format!("{port} is no port")),
        },
        (None, None) => Ok(Wanted::Exit),
    }
}

impl Tool for ProcessTool {
    fn name(&self) -> &str {
        PROCESS_TOOL
    }

    fn definition(&self) -> Definition {
        Definition {
            spec: ToolSpec {
                name: PROCESS_TOOL.to_owned(),
                description: DESCRIPTION.to_owned(),
                parameters: parameters(),
                prefers_strict: false,
            },
            snippet: Some("Watch and control background processes".to_owned()),
            guidelines: None,
        }
    }

    fn source(&self) -> Source {
        Source::BuiltIn
    }

    /// Input is judged like a command of bash: the process may be a shell.
    fn access(&self, args: &Map<String, Value>, _: Place<'_>) -> Access {
        match action(args) {
            Ok(Action::Write(id, input)) => Access::Input(self.processes.judged(&id, &input)),
            Ok(_) => Access::Nothing,
            // Hooks may have made the arguments unreadable. The call will fail, but must not count as harmless until then.
            Err(_) => Access::Unknown,
        }
    }

    fn prepare(self: Arc<Self>, call: &ToolCall) -> Result<PreparedCall, String> {
        let args = validate::validate(PROCESS_TOOL, &parameters(), &call.arguments)?;
        // Read here, so that a wrong call fails before permissions ask about it.
        action(&args)?;
        Ok(PreparedCall::new(self, call, args))
    }

    fn run(&self, call: Invocation) -> Running {
        let processes = self.processes.clone();
        Box::pin(async move {
            // Read again, since hooks may have changed the arguments.
            let action = match action(&call.args) {
                Ok(action) => action,
                Err(error) => return ToolOutcome::error(error),
            };
            let watches_port = matches!(action, Action::Wait(_, Wanted::Port(_), _));
            // Before any look at the port: the process could not listen there, so the wait would only time out.
            if watches_port && !call.environment.toolbox.allows_network() {
                return ToolOutcome::error(strings::PORT_WITHOUT_NETWORK);
            }
            let done = tokio::select! {
                biased;
                // First: a call that was cancelled before it began types nothing and ends no process.
                () = call.cancel.cancelled() => Err(strings::ABORTED.to_owned()),
                done = carry_out(&processes, action, call.judged.as_ref()) => done,
            };
            ToolOutcome::from(done)
        })
    }
}

async fn carry_out(
    processes: &Processes,
    action: Action,
    judged: Option<&Access>,
) -> Result<ToolResult, String> {
    match action {
        Action::List => Ok(ToolResult::text(listed(processes))),
        Action::Read(id) => {
            let process = processes.find(&id)?;
            let (news, status) = take_news(&process);
            Ok(result(&process, format!("{news}\n\n[{id}: {status}]")))
        }
        Action::Write(id, input) => {
            let process = processes.find_running(&id)?;
            process.type_in(&input, judged).await?;
            Ok(result(&process, format!("Written to {id}")))
        }
        Action::Wait(id, wanted, limit) => {
            let process = processes.find(&id)?;
            let goal = match wanted {
                Wanted::Exit => Goal::Exit,
                Wanted::Port(port) => Goal::Port(port),
                // Output that the model has read does not count.
                Wanted::Text(text) => Goal::Text(text, process.state().read_by_model),
            };
            let met = wait(&process, &goal, limit).await;
            let (news, status) = take_news(&process);
            let seconds = limit.as_secs_f64();
            let line = match (met, &goal) {
                (Met::Reached, Goal::Exit) => format!("[{id}: {status}]"),
                (Met::Reached, Goal::Text(..)) => format!("[{id}: {status}; the text is there]"),
                (Met::Reached, Goal::Port(port)) => {
                    format!("[{id}: {status}; port {port} accepts connections]")
                }
                (Met::Ended, _) => return Err(format!("{news}\n\n[{id}: {status}; it ended before]")),
                (Met::TimedOut, Goal::Port(port))
                    if owner_of_port(&process, *port).await == PortOwner::Other =>
                {
                    return Err(format!(
                        "{news}\n\n[{id}: {status}; not within {seconds} seconds: another process listens on port {port}]"
                    ));
                }
                (Met::TimedOut, _) => {
                    return Err(format!(
                        "{news}\n\n[{id}: {status}; not within {seconds} seconds]"
                    ));
                }
            };
            Ok(result(&process, format!("{news}\n\n{line}")))
        }
        Action::Kill(id) => {
            let process = processes.find(&id)?;
            processes.clone().kill(id.clone()).await?;
            Ok(result(&process, format!("[{id}: {}]", process.status_line())))
        }
    }
}

/// The output that the model has not read yet, and the state of the process.
fn take_news(process: &Process) -> (String, String) {
    process.note_told();
    let (news, status) = (process.news(), process.status_line());
    let news = match news.trim_end() {
        "" => "(no new output)",
        news => news,
    };
    (news.to_owned(), status)
}

fn listed(processes: &Processes) -> String {
    let lines: Vec<String> = processes
        .known()
        .processes
        .iter()
        // The list says how each process is, so that its end is no news afterwards.
        .inspect(|process| process.note_told())
        .map(|process| format!("{}: {} [{}]", process.id, process.command, process.status_line()))
        .collect();
    match lines.is_empty() {
        true => "No processes".to_owned(),
        false => lines.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(args) => args,
            other => panic!("{other}"),
        }
    }

    fn refused(value: Value) -> String {
        action(&args(value)).err().expect("the arguments are refused")
    }

    #[test]
    fn action_names_its_missing_argument() {
        for name in ["read", "write", "wait", "kill"] {
            assert_eq!(
                refused(json!({"action": name})),
                format!("{name} needs processId")
            );
        }
        let input = refused(json!({"action": "write", "processId": "p1"}));
        assert_eq!(input, "write needs input");
        assert!(matches!(
            action(&args(json!({"action": "list"}))),
            Ok(Action::List)
        ));
    }

    #[test]
    fn wait_for_text_and_port_is_refused() {
        let both = json!({"action": "wait", "processId": "p1", "text": "ready", "port": 80});
        assert!(refused(both).contains("not both"));
        for port in [0, 65_536] {
            let refusal = refused(json!({"action": "wait", "processId": "p1", "port": port}));
            assert_eq!(refusal, format!("{port} is no port"));
        }
    }

    #[test]
    fn wait_is_bounded_and_has_a_default() {
        let limit = |timeout: Value| {
            let args = args(json!({"action": "wait", "processId": "p1", "timeout": timeout}));
            match action(&args) {
                Ok(Action::Wait(_, Wanted::Exit, limit)) => limit,
                _ => panic!("no wait for the end"),
            }
        };
        assert_eq!(limit(json!(2.5)), Duration::from_millis(2500));
        assert_eq!(limit(json!(1e12)), limits::PROCESS_WAIT_MAX);
        assert_eq!(limit(json!(-1)), limits::PROCESS_WAIT, "a negative time is none");
        assert_eq!(limit(Value::Null), limits::PROCESS_WAIT);
    }

    #[test]
    fn wait_for_empty_text_waits_for_the_end() {
        let args = args(json!({"action": "wait", "processId": "p1", "text": ""}));
        assert!(matches!(action(&args), Ok(Action::Wait(_, Wanted::Exit, _))));
    }

    #[test]
    fn unknown_process_names_no_others() {
        let processes = Processes::default();
        let refusal = processes.find("p1").err().expect("there is no process");
        assert!(refusal.contains("p1"), "{refusal}");
        assert_eq!(listed(&processes), "No processes");
        assert_eq!(processes.judged("p1", "make\n"), "make\n");
    }
}
