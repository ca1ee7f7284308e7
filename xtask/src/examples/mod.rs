//! `xtask examples`: plays sessions with a scripted model and records them in `protocol/examples`, so that the examples of the
//! reference are real: `recorded.jsonl` has an example of most commands and events, `conversation.jsonl` a short session with
//! all its lines, `help.txt` the texts of `--help`, `acp` a transcript for each feature of the Agent Client Protocol. Lines that no undisturbed session brings are written by hand in the files
//! in the same folder.

mod acp;
mod conversation;
mod help;
mod normal;
mod script;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use testkit::driver::Agent;
use testkit::llm::ScriptedServer;
use testkit::workspace::Workspace;

use crate::out::{complain, say};
use crate::{protocol, reference};
use normal::Normal;

const FILE: &str = "protocol/examples/recorded.jsonl";
/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// The chore; false when `check` found a difference.
///
/// # Errors
/// When the agent cannot be run, or does not do what the script expects.
pub fn run(root: &Path, program: &Path, check: bool) -> Result<bool> {
    let program = fs::canonicalize(program).with_context(|| format!("no agent at {}", program.display()))?;
    let conversation = format!("protocol/examples/{}", protocol::conversation::FILE);
    let mut files = vec![
        (FILE.to_owned(), record(&program)?),
        (conversation, conversation::record(&program)?),
        (reference::HELP.to_owned(), help::record(&program)?),
    ];
    files.extend(acp::record(&program, check.then_some(root))?);
    if !check {
        let folder = root.join(acp::FOLDER);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let mut all_same = true;
    for (name, text) in files {
        let path = root.join(&name);
        if !check {
            fs::write(&path, &text).with_context(|| format!("cannot write {name}"))?;
            say(&format!("{name}: {} lines", text.lines().count()));
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            complain(&format!(
                "{name} is out of date: run `cargo run -p xtask -- examples --agent PATH`, then `gen`"
            ));
            all_same = false;
        }
    }
    Ok(all_same)
}

/// Plays the script; gives the lines of the file.
fn record(program: &Path) -> Result<String> {
    let server = ScriptedServer::start([])?;
    let workspace = Workspace::new(&server.url())?;
    let mut stage = Stage::new(program, &server, &workspace)?;
    script::play(&mut stage)?;
    let Stage { agent, mut said, .. } = stage;
    agent.close_stdin();
    agent.wait_exit(PATIENCE)?;
    let lines = agent.lines();
    let lines = lines.iter().map(|line| line.value.as_ref());
    said.extend(picked(lines));
    let mut normal = Normal::new(&workspace, &server.url())?;
    let lines = said.into_iter().map(|line| format!("{}\n", normal.line(line)));
    Ok(lines.collect())
}

/// A running agent and its lines so far.
struct Stage<'a> {
    agent: Agent,
    server: &'a ScriptedServer,
    /// Commands and their responses.
    said: Vec<Value>,
    /// Commands sent so far; their ids.
    count: u32,
}

impl<'a> Stage<'a> {
    fn new(program: &Path, server: &'a ScriptedServer, workspace: &Workspace) -> Result<Self> {
        script::furnish(workspace)?;
        let config = workspace.agent(program).args([
            "--mode",
            "rpc",
            "--provider",
            "mock-anthropic",
            "--model",
            "claude-mock",
        ]);
        Ok(Self {
            agent: Agent::spawn(config)?,
            server,
            said: Vec::new(),
            count: 0,
        })
    }

    /// Sends a command that must succeed; gives its data. Command and answer become an example.
    fn ask(&mut self, mut command: Value) -> Result<Value> {
        self.count += 1;
        let id = format!("r{}", self.count);
        let mut line = json!({ "id": id });
        if let (Some(line), Some(command)) = (line.as_object_mut(), command.as_object_mut()) {
            line.append(command);
        }
        self.agent.send(&line)?;
        let response = self.agent.response(&id, PATIENCE)?;
        if response.get("success") != Some(&Value::Bool(true)) {
            bail!("{line} was answered with {response}");
        }
        let data = response.get("data").cloned().unwrap_or_default();
        self.said.extend([line, response]);
        Ok(data)
    }

    /// Sends a command without parameters.
    fn get(&mut self, kind: &str) -> Result<Value> {
        self.ask(json!({ "type": kind }))
    }

    /// Sends a command that starts a run and waits for its end.
    fn run(&mut self, command: Value) -> Result<()> {
        self.agent.skip();
        self.ask(command)?;
        self.agent.wait_type("agent_settled", PATIENCE)?;
        Ok(())
    }
}

/// The first event of each kind: types, roles of messages, steps of an answer in both forms.
fn picked<'a>(lines: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for line in lines {
        let text = |pointer: &str| {
            let text = line.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let kind = text("/type");
        let is_growing = kind == "tool_execution_update" || kind == "bash_execution_update";
        // How far a tool had come when it was looked at is never the same; those are written by hand.
        if kind == "response" || is_growing {
            continue;
        }
        let key = (
            kind,
            text("/message/role"),
            text("/assistantMessageEvent/type"),
            line.get("message").is_some(),
        );
        if seen.insert(key) {
            out.push(line.clone());
        }
    }
    out
}
