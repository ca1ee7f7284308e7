//! Opens a damaged file twice: with an append in between, everything whole must be there both times.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use testkit::driver::Agent;
use testkit::workspace::Workspace;

use super::damage::Case;
use crate::sample::Sample;

/// How long the agent may take to answer, to end, and its stderr to be read after that.
const ANSWER: Duration = Duration::from_secs(30);
/// The name that is appended.
const NAME: &str = "Named after the damage";
/// How a session is refused whose working directory is missing (pi-core.md 2.9).
const NO_FOLDER: &str = "working directory does not exist";
/// Arguments of every agent.
const ARGS: [&str; 6] = [
    "--mode",
    "rpc",
    "--provider",
    "mock-anthropic",
    "--model",
    "claude-mock",
];

/// What a file showed.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// True if it was reported as damaged when it was opened first.
    pub(super) told: bool,
    /// True if it was refused, rightly, because its working directory is missing.
    pub(super) refused: bool,
    /// Violations.
    pub(super) problems: Vec<String>,
}

/// Opens the file of a case.
///
/// # Errors
/// When the agent cannot be started.
pub(super) fn check(program: &Path, workspace: &Workspace, sample: &Sample, case: &Case) -> Result<Verdict> {
    let folder = tempfile::tempdir_in(workspace.root())?;
    let file = folder.path().join(sample.file_name());
    std::fs::write(&file, &case.bytes)?;
    let wanted = ids(sample, &case.whole);
    let first = open(program, workspace, &file, Some(NAME))?;
    if case.elsewhere && first.refused {
        let mut verdict = Verdict {
            refused: true,
            ..Verdict::default()
        };
        let left = std::fs::read(&file)?;
        let lost = lost(sample, case, &left);
        if lost > 0 {
            verdict.problems.push(format!(
                "the session was refused, and {lost} whole entries are gone"
            ));
        }
        return Ok(verdict);
    }
    let second = open(program, workspace, &file, None)?;
    let mut verdict = Verdict {
        told: first.told > 0,
        ..Verdict::default()
    };
    for (opened, when) in [(&first, "first"), (&second, "after the append")] {
        let found = opened.problems.iter();
        verdict
            .problems
            .extend(found.map(|problem| format!("opened {when}: {problem}")));
        let missing = wanted.iter().filter(|id| !opened.ids.contains(id)).count();
        if missing > 0 {
            let all = wanted.len();
            verdict.problems.push(format!(
                "opened {when}: {missing} of {all} whole entries are missing"
            ));
        } else if !is_in_order(&wanted, &opened.ids) {
            verdict
                .problems
                .push(format!("opened {when}: the entries are in another order"));
        }
    }
    let (least, most) = case.told;
    let told = first.told;
    if told < least || told > most {
        let problem = format!("{told} events session_damage instead of {least} to {most}");
        verdict.problems.push(problem);
    }
    if case.mends && second.told > 0 {
        verdict.problems.push("still damaged after the append".to_owned());
    }
    if second.name.as_deref() != Some(NAME) {
        verdict
            .problems
            .push(format!("the appended name is lost, it is {:?}", second.name));
    }
    Ok(verdict)
}

/// How many whole lines of a case a file does not hold any more.
fn lost(sample: &Sample, case: &Case, file: &[u8]) -> usize {
    let left: BTreeSet<&[u8]> = file.split(|byte| *byte == b'\n').collect();
    let whole = case.whole.iter().filter_map(|number| sample.lines.get(*number));
    whole
        .filter(|line| !left.contains(line.trim_end_matches('\n').as_bytes()))
        .count()
}

/// Ids of these lines of the session.
fn ids(sample: &Sample, lines: &[usize]) -> Vec<String> {
    let line = |number: &usize| sample.lines.get(*number).filter(|_| *number > 0);
    lines
        .iter()
        .filter_map(line)
        .filter_map(|line| id(&serde_json::from_str(line).ok()?))
        .collect()
}

fn id(entry: &Value) -> Option<String> {
    entry.get("id").and_then(Value::as_str).map(str::to_owned)
}

/// Returns true if these ids come in this order among all.
pub(super) fn is_in_order(wanted: &[String], all: &[String]) -> bool {
    let mut rest = all.iter();
    wanted.iter().all(|id| rest.any(|other| other == id))
}

/// What an agent that has ended had to say, which is read a moment later.
fn last_words(agent: &Agent) -> String {
    let end = Instant::now() + ANSWER;
    while !agent.stderr_ended() && !agent.stderr().contains(NO_FOLDER) && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
    agent.stderr()
}

/// What a process showed.
#[derive(Debug, Default)]
struct Opened {
    ids: Vec<String>,
    name: Option<String>,
    told: usize,
    /// True if the agent ended at once because the working directory is missing.
    refused: bool,
    problems: Vec<String>,
}

/// Starts an agent with the file, asks for the entries, perhaps gives the session a name, and lets the agent end.
fn open(program: &Path, workspace: &Workspace, file: &Path, name: Option<&str>) -> Result<Opened> {
    let mut opened = Opened::default();
    let agent = Agent::spawn(workspace.agent(program).args(ARGS).arg("--session").arg(file))?;
    let mut ask = |command: Value| match agent.call(&command, ANSWER) {
        Ok(answer) if answer.get("success") == Some(&Value::Bool(true)) => answer,
        Ok(answer) => {
            opened.problems.push(format!("refused: {answer}"));
            Value::Null
        }
        Err(error) => {
            opened.problems.push(format!("{error}"));
            Value::Null
        }
    };
    let entries = ask(json!({"id": "entries", "type": "get_entries"}));
    if let Some(name) = name {
        ask(json!({"id": "name", "type": "set_session_name", "name": name}));
    }
    let state = ask(json!({"id": "state", "type": "get_state"}));
    agent.close_stdin();
    match agent.wait_exit(ANSWER) {
        Ok(status) if status.success() => {}
        Ok(status) => {
            let said = last_words(&agent);
            opened.refused = said.contains(NO_FOLDER);
            opened
                .problems
                .push(format!("the agent ended with {status}: {said}"));
        }
        Err(error) => opened.problems.push(format!("the agent does not end: {error}")),
    }
    // Everything was printed when the output has ended.
    while agent.wait(|_| true, ANSWER).is_ok() {}
    let lines = agent.lines();
    let told = lines.iter().filter(|line| {
        line.value
            .get("type")
            .is_some_and(|kind| kind == "session_damage")
    });
    opened.told = told.count();
    let entries = entries.pointer("/data/entries").and_then(Value::as_array);
    opened.ids = entries.into_iter().flatten().filter_map(id).collect();
    opened.name = state
        .pointer("/data/sessionName")
        .and_then(Value::as_str)
        .map(str::to_owned);
    Ok(opened)
}
