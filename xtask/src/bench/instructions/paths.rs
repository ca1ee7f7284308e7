//! The work that is counted. Each path is a process of its own with fixed input; the count includes its start. The amounts are large
//! enough that the named work is most of the count.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::llm::Reply;

use super::super::acp::Editor;
use super::super::limits::{DELTA_BYTES, LISTED_BYTES, SERVER_BATCH};
use super::super::runner::{Runner, Stage};
use super::super::subject::Subject;
use crate::sample::{Plan, Sample};

/// Runs the work below valgrind and returns the id of the ended process.
pub(super) type Work = fn(&Subject) -> Result<u32>;

/// A path that is counted.
pub(super) struct Path {
    pub(super) name: &'static str,
    pub(super) work: Work,
    /// Growth that fails, in percent.
    pub(super) tolerance: f64,
}

const fn path(name: &'static str, work: Work) -> Path {
    Path {
        name,
        work,
        tolerance: TOLERANCE_PERCENT,
    }
}

/// All paths.
pub(super) const PATHS: [Path; 15] = [
    path("start", start),
    path("text-cumulative", |subject| {
        answer(subject, ANTHROPIC, "pi", text())
    }),
    path("text-delta", |subject| {
        answer(subject, ANTHROPIC, "pi-delta", text())
    }),
    path("text-responses", |subject| {
        answer(subject, RESPONSES, "pi-delta", text())
    }),
    path("text-completions", |subject| {
        answer(subject, COMPLETIONS, "pi-delta", text())
    }),
    path("tool-arguments", tool_arguments),
    path("bash-turns", bash_turns),
    Path {
        name: "bash-output",
        work: bash_output,
        tolerance: OUTPUT_TOLERANCE_PERCENT,
    },
    path("permission-rules", permission_rules),
    path("open-session", |subject| with_session(subject, &[])),
    path("session-messages", |subject| {
        with_session(subject, &[json!({"type": "get_messages"})])
    }),
    path("turn-in-long-session", long_session_turns),
    path("list-sessions", list_sessions),
    path("export", export),
    path("acp-deltas", acp_deltas),
];

/// Growth of a path that fails. Five runs of each path on a busy machine with two cores differed by at most 1.4 %.
const TOLERANCE_PERCENT: f64 = 5.0;
/// The same for the output of a command. The scheduler decides how much of it each read returns: counts of this path differed by
/// up to 10.5 % between an idle and a busy machine.
const OUTPUT_TOLERANCE_PERCENT: f64 = 20.0;

/// An API and the path of the scripted server that speaks it.
type Api = (&'static str, &'static str);
const ANTHROPIC: Api = ("anthropic-messages", "anthropic");
const RESPONSES: Api = ("openai-responses", "responses/v1");
const COMPLETIONS: Api = ("openai-completions", "openai/v1");

/// Deltas of an answer.
const DELTAS: u64 = 4_000;
/// Turns with a shell command.
const TURNS: usize = 60;
/// Turns in a long session.
const LONG_TURNS: usize = 10;
/// Bytes that a command prints.
const OUTPUT: u64 = 50_000_000;
/// Entries and bytes of the session.
const SESSION: (usize, usize) = (2_000, 5_000_000);
/// Sessions that are listed, entries and bytes of each.
const LISTED: (usize, usize, usize) = (200, 16, 40_000);
/// Rules, and calls that they are compared with.
const RULES: (usize, usize) = (200, 60);

fn text() -> Reply {
    Reply::text_deltas(DELTAS, DELTA_BYTES)
}

/// Starts, answers `get_state` and ends.
fn start(subject: &Subject) -> Result<u32> {
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    agent.call("get_state", None)?;
    agent.finish()
}

/// One run.
fn prompt(agent: &mut Runner) -> Result<()> {
    agent.call("prompt", Some("Go on."))?;
    agent.wait(|head| head.kind() == "agent_settled")?;
    Ok(())
}

fn answer(subject: &Subject, api: Api, dialect: &str, reply: Reply) -> Result<u32> {
    finish_answer(&Stage::speaking(api.0, api.1)?, subject, dialect, reply)
}

fn finish_answer(stage: &Stage, subject: &Subject, dialect: &str, reply: Reply) -> Result<u32> {
    stage.server.push(reply.batch(SERVER_BATCH));
    stage.server.set_default(Reply::text(["done"]));
    let mut agent = stage.start(&subject.with(&["--rpc-dialect", dialect]))?;
    prompt(&mut agent)?;
    let (printed, least) = (agent.counts.bytes(), DELTAS * DELTA_BYTES as u64);
    ensure!(
        printed > least,
        "an answer of {least} bytes made {printed} bytes of output"
    );
    agent.finish()
}

fn tool_arguments(subject: &Subject) -> Result<u32> {
    let stage = Stage::new()?;
    let reply = Reply::write_deltas("out.txt", DELTAS, DELTA_BYTES);
    let process = finish_answer(&stage, subject, "pi-delta", reply)?;
    let written = fs::metadata(stage.workspace.cwd().join("out.txt"))?.len();
    ensure!(
        written == DELTAS * DELTA_BYTES as u64,
        "the write call wrote {written} bytes"
    );
    Ok(process)
}

fn bash(number: usize, command: &str) -> Reply {
    Reply::tool(format!("call_{number}"), "bash", json!({"command": command}))
}

/// Turns of a scripted model in a prepared place. Every tool result has to contain `expected`, so that a call that failed early is
/// not counted as work.
fn turns(stage: &Stage, subject: &Subject, count: usize, command: &str, expected: &str) -> Result<u32> {
    for number in 0..count {
        stage.server.push(bash(number, command));
    }
    stage.server.push(Reply::text(["done"]));
    let mut agent = stage.start(&subject.with(&["--rpc-dialect", "pi-delta"]))?;
    prompt(&mut agent)?;
    let requests = stage.server.requests();
    let last = requests.last().context("the agent sent no request")?;
    let results = format!("{:?}", last.request.body);
    let found = results.matches(expected).count();
    ensure!(
        found >= count,
        "{found} of {count} tool results contain {expected:?}"
    );
    agent.finish()
}

fn bash_turns(subject: &Subject) -> Result<u32> {
    turns(&Stage::new()?, subject, TURNS, "echo it ran", "it ran\\n")
}

fn bash_output(subject: &Subject) -> Result<u32> {
    let command = format!("yes 'the quick brown fox jumps over the lazy dog' | head -c {OUTPUT}");
    turns(&Stage::new()?, subject, 1, &command, "Full output:")
}

/// Calls with several commands each, of which the last rule denies one: rules are compared, no command runs.
fn permission_rules(subject: &Subject) -> Result<u32> {
    let stage = Stage::new()?;
    let mut deny: Vec<String> = (0..RULES.0)
        .map(|n| format!("bash(tool-{n} * --force)"))
        .collect();
    deny.push("bash(forbidden *)".to_owned());
    stage
        .workspace
        .write_settings(&json!({"permissions": {"mode": "auto", "deny": deny}}))?;
    let command =
        "cd src && grep -rn 'pattern' . | sort | head -20; make test > out.txt 2>&1 || forbidden now";
    turns(&stage, subject, RULES.1, command, "Permission denied")
}

/// Writes a session file and returns its path.
fn session(stage: &Stage) -> Result<PathBuf> {
    let sample = Sample::new(&Plan {
        entries: SESSION.0,
        bytes: SESSION.1,
        seed: 3,
        cwd: stage.workspace.cwd().to_string_lossy().into_owned(),
        compaction: false,
    });
    let file = stage.workspace.root().join(sample.file_name());
    fs::write(&file, sample.text())?;
    Ok(file)
}

fn with_session(subject: &Subject, commands: &[Value]) -> Result<u32> {
    let stage = Stage::new()?;
    let file = session(&stage)?;
    let mut agent = stage.start(subject)?;
    agent.ask(json!({"type": "switch_session", "sessionPath": file}))?;
    for command in commands {
        agent.ask(command.clone())?;
    }
    agent.finish()
}

fn long_session_turns(subject: &Subject) -> Result<u32> {
    let stage = Stage::new()?;
    let file = session(&stage)?;
    let subject = subject.with(&["--session", &file.to_string_lossy()]);
    turns(&stage, &subject, LONG_TURNS, "echo it ran", "it ran\\n")
}

fn list_sessions(subject: &Subject) -> Result<u32> {
    let stage = Stage::new()?;
    let cwd = stage.workspace.cwd().to_string_lossy().into_owned();
    let (count, entries, bytes) = LISTED;
    let folder = stage.workspace.agent_dir().join("sessions/--project--");
    fs::create_dir_all(&folder)?;
    for seed in 0..count {
        let sample = Sample::new(&Plan {
            entries,
            bytes,
            seed: seed as u64,
            cwd: cwd.clone(),
            compaction: false,
        });
        fs::write(folder.join(sample.file_name()), sample.text())?;
    }
    let mut agent = stage.start(subject)?;
    agent.ask(json!({"type": "list_sessions", "scope": "all"}))?;
    let printed = agent.counts.bytes();
    ensure!(
        printed > LISTED_BYTES * count as u64,
        "the list of {count} sessions has {printed} bytes"
    );
    agent.finish()
}

fn export(subject: &Subject) -> Result<u32> {
    let stage = Stage::new()?;
    let file = session(&stage)?;
    let out = stage.workspace.root().join("out.html");
    let mut agent = stage.start(subject)?;
    agent.ask(json!({"type": "switch_session", "sessionPath": file}))?;
    agent.ask(json!({"type": "export_html", "outputPath": out}))?;
    ensure!(
        fs::metadata(&out)?.len() > SESSION.1 as u64 / 4,
        "the exported page is too short"
    );
    agent.finish()
}

/// An answer to an editor that speaks the Agent Client Protocol.
fn acp_deltas(subject: &Subject) -> Result<u32> {
    let stage = Stage::new()?;
    stage.server.push(text().batch(SERVER_BATCH));
    let mut editor = Editor::start(&stage, subject)?;
    let session = editor.session(&stage)?;
    editor.prompt(&session)?;
    editor.agent.finish()
}
