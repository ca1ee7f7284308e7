//! One round: an agent in fresh folders works on prompts with tool calls until it is killed.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use testkit::driver::{Agent, processes_marked};
use testkit::llm::{Reply, Request, ScriptedServer};
use testkit::workspace::Workspace;

use super::check::{self, Saved};
use crate::fuzz::prng::Prng;

/// How long the agent may take to answer a command.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// Latest moment of the kill after the first prompt, in milliseconds.
const LATEST_KILL: usize = 700;
/// How long the guardian may take to kill children after the agent is dead: milliseconds, unless the machine is busy.
const CHILDREN: Duration = Duration::from_secs(30);
/// Arguments of every agent.
pub(super) const ARGS: [&str; 6] = [
    "--mode",
    "rpc",
    "--provider",
    "mock-anthropic",
    "--model",
    "claude-mock",
];

/// What a round showed.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Messages that were announced by `message_end`.
    pub(super) messages: usize,
    /// Session names that were acknowledged.
    pub(super) names: usize,
    /// Files whose last line was cut off.
    pub(super) torn: usize,
    /// Processes of the agent's tools that ran when it was killed.
    pub(super) children: usize,
    /// What must not be.
    pub(super) problems: Vec<String>,
}

/// Runs a round.
///
/// # Errors
/// When the agent or the server cannot be started.
pub(super) fn run(program: &Path, random: &mut Prng) -> Result<Round> {
    let salt = random.next();
    let server = ScriptedServer::start_rule(move |request| reply(salt, request))?;
    let workspace = Workspace::new(&server.url())?;
    let agent = Agent::spawn(workspace.agent(program).args(ARGS))?;
    let state = agent.call(&json!({"id": "state", "type": "get_state"}), ANSWER)?;
    let file = state
        .pointer("/data/sessionFile")
        .and_then(Value::as_str)
        .map(PathBuf::from);
    work(
        &agent,
        Duration::from_millis(u64::try_from(5 + random.below(LATEST_KILL))?),
    );
    let mut round = Round {
        children: agent.processes().len().saturating_sub(1),
        ..Round::default()
    };
    if agent.kill9().is_err() {
        round
            .problems
            .push(format!("the agent had ended by itself: {}", agent.stderr()));
    }
    after_kill(&mut round, &agent, file, &workspace, program)?;
    Ok(round)
}

/// Waits for the end of the killed agent, compares what it announced with its file, and looks for processes that it left.
///
/// # Errors
/// When the agent does not end, or no second one can be started.
pub(super) fn after_kill(
    round: &mut Round,
    agent: &Agent,
    file: Option<PathBuf>,
    workspace: &Workspace,
    program: &Path,
) -> Result<()> {
    agent.wait_exit(ANSWER)?;
    let dead = Instant::now();
    while !agent.ended() && dead.elapsed() < CHILDREN {
        thread::sleep(Duration::from_millis(5));
    }
    let lines: Vec<Value> = agent
        .lines()
        .into_iter()
        .map(|line| line.value.as_ref().clone())
        .collect();
    let promised = check::promised(&lines);
    round.messages = promised.messages.len();
    round.names = promised.names.len();
    match file {
        Some(file) => examine(round, &promised, &file, workspace, program)?,
        None => round.problems.push("get_state names no session file".to_owned()),
    }
    while dead.elapsed() < CHILDREN && !processes_marked(agent.mark()).is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    for pid in processes_marked(agent.mark()) {
        round
            .problems
            .push(format!("process {pid} outlives the agent: {}", command_line(pid)));
    }
    Ok(())
}

/// Gives the agent work until the time is over.
fn work(agent: &Agent, time: Duration) {
    let end = Instant::now() + time;
    for number in 0.. {
        let name =
            json!({"id": format!("n{number}"), "type": "set_session_name", "name": format!("Name {number}")});
        let prompt =
            json!({"id": format!("p{number}"), "type": "prompt", "message": format!("Task {number}")});
        let sent = agent.send(&prompt).and_then(|()| agent.send(&name));
        let left = end.saturating_duration_since(Instant::now());
        // A timeout is the normal end: the agent is killed in the middle of something.
        if sent.is_err() || agent.wait_type("agent_settled", left).is_err() {
            break;
        }
    }
    thread::sleep(end.saturating_duration_since(Instant::now()));
}

/// What the model says: mostly tool calls, some of which take long or leave children behind.
fn reply(salt: u64, request: &Request) -> Reply {
    let mut random = Prng::new(salt ^ request.n);
    let call = format!("toolu_{}", request.n);
    let bash = |command: &str| Reply::tool(call.clone(), "bash", json!({ "command": command }));
    match random.below(8) {
        0 => bash("sleep 300"),
        1 => bash("sleep 300 & echo started; sleep 0.2"),
        2 => bash("(trap '' TERM HUP; sleep 300) | cat"),
        3 => bash("for i in 1 2 3 4 5; do echo $i; sleep 0.02; done"),
        4 => Reply::tool(
            call,
            "write",
            json!({"path": format!("f{}.txt", request.n), "content": "x".repeat(3_000)}),
        ),
        5 => Reply::text(["All ", "is ", "well."]).then_tool(call, "bash", json!({"command": "echo one"})),
        6 => {
            Reply::text((0..40).map(|number| format!("word {number} "))).chunk_delay(Duration::from_millis(3))
        }
        _ => Reply::text(["Done."]),
    }
}

/// Checks the file, then lets a second agent open it.
fn examine(
    round: &mut Round,
    promised: &check::Promised,
    file: &Path,
    workspace: &Workspace,
    program: &Path,
) -> Result<()> {
    if !file.exists() {
        if !promised.is_empty() {
            round
                .problems
                .push("something was acknowledged, but there is no session file".to_owned());
        }
        return Ok(());
    }
    let saved = Saved::read(&std::fs::read(file)?);
    round.torn += usize::from(saved.torn > 0);
    round.problems.extend(saved.problems.iter().cloned());
    round.problems.extend(promised.missing_in(&saved));
    let second = Agent::spawn(workspace.agent(program).args(ARGS).arg("--session").arg(file))?;
    match second.call(&json!({"id": "all", "type": "get_messages"}), ANSWER) {
        Ok(answer) => {
            let messages = answer
                .pointer("/data/messages")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let missing = promised
                .messages
                .iter()
                .filter(|message| !messages.contains(message))
                .count();
            if missing > 0 {
                round
                    .problems
                    .push(format!("after the restart {missing} messages are missing"));
            }
        }
        Err(error) => round
            .problems
            .push(format!("the session cannot be opened again: {error}")),
    }
    Ok(())
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
