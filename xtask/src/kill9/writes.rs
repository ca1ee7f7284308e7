//! Kills at writes: the same work again and again, and each time the kernel delivers the kill at a later write to the session file
//! (`strace`, which numbers the writes of a thread). A kill between two writes is a kill at the later one.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use testkit::driver::Agent;
use testkit::llm::{Reply, Request, ScriptedServer};
use testkit::workspace::Workspace;

use super::round::{ANSWER, ARGS, Round, after_kill};

/// Prompts of the work.
const PROMPTS: u64 = 8;
/// The system calls that write to a file.
const CALLS: &str = "write,writev,pwrite64,pwritev,pwritev2";
/// Latest write; more than the work needs.
const LAST: u64 = 2_000;

/// Whether `strace` can be started.
pub(super) fn can_run() -> bool {
    let version = Command::new("strace").arg("-V").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Runs the work once for each write, until it comes to its end.
///
/// # Errors
/// When the agent or the server cannot be started, or the work never ends.
pub(super) fn run(program: &Path, mut each: impl FnMut(u64, Round)) -> Result<u64> {
    for write in 1..LAST {
        match at_write(program, write)? {
            Some(round) => each(write, round),
            None => return Ok(write - 1),
        }
    }
    bail!("the work writes to the session file more than {LAST} times")
}

/// Kills the agent at this write; none when it ended before that.
fn at_write(program: &Path, write: u64) -> Result<Option<Round>> {
    let server = ScriptedServer::start_rule(reply)?;
    let workspace = Workspace::new(&server.url())?;
    let file = workspace.root().join("killed.jsonl");
    let header = json!({
        "type": "session", "version": 3, "id": "0199a000-0000-7000-8000-000000000001",
        "timestamp": "2026-01-02T03:04:05.000Z", "cwd": workspace.cwd(),
    });
    std::fs::write(&file, format!("{header}\n"))?;
    let config = workspace
        .agent("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-P"])
        .arg(&file)
        .args(["-e", &format!("trace={CALLS}")])
        .args(["-e", &format!("inject={CALLS}:signal=KILL:when={write}")])
        .arg(program)
        .args(ARGS)
        .arg("--session")
        .arg(&file)
        // The tracer reads the memory of the agent.
        .env("PINION_DEBUGGABLE", "1");
    let agent = Agent::spawn(config)?;
    if work(&agent) {
        agent.close_stdin();
        let status = agent.wait_exit(ANSWER)?;
        if status.success() {
            return Ok(None);
        }
    }
    let mut round = Round::default();
    after_kill(&mut round, &agent, Some(file), &workspace, program)?;
    Ok(Some(round))
}

/// Returns true if the agent did everything.
fn work(agent: &Agent) -> bool {
    (0..PROMPTS).all(|number| {
        let name =
            json!({"id": format!("n{number}"), "type": "set_session_name", "name": format!("Name {number}")});
        let prompt =
            json!({"id": format!("p{number}"), "type": "prompt", "message": format!("Task {number}")});
        let sent = agent.send(&prompt).and_then(|()| agent.send(&name));
        sent.is_ok() && ended(agent)
    })
}

/// Waits for the end of the run; false when the agent ends before.
fn ended(agent: &Agent) -> bool {
    let mut left = ANSWER;
    let step = Duration::from_millis(100);
    while !left.is_zero() && !agent.ended() {
        if agent.wait_type("agent_settled", step).is_ok() {
            return true;
        }
        left = left.saturating_sub(step);
    }
    false
}

/// Two tool calls and a text for each prompt, which end at once.
fn reply(request: &Request) -> Reply {
    let call = format!("toolu_{}", request.n);
    let results = |message: &Value| message.to_string().matches("tool_result").count();
    let messages = request.body.get("messages").and_then(Value::as_array);
    let last = messages.and_then(|messages| messages.last()).map_or(0, results);
    match (last, request.n % 3) {
        (0, 0) => Reply::tool(call, "bash", json!({"command": "echo one"})),
        (0, _) => Reply::text(["All ", "is well."]).then_tool(
            call,
            "write",
            json!({"path": "f.txt", "content": "x".repeat(3_000)}),
        ),
        _ => Reply::text(["Done."]),
    }
}
