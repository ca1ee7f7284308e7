//! Records a short session with all its lines, in the order in which a client sends and receives them.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::driver::Agent;
use testkit::llm::{Reply, ScriptedServer};
use testkit::workspace::Workspace;

use super::PATIENCE;
use super::normal::Normal;

/// The recording.
pub(super) fn record(program: &Path) -> Result<String> {
    let server = ScriptedServer::start([])?;
    let workspace = Workspace::new(&server.url())?;
    let config = workspace.agent(program).args([
        "--mode",
        "rpc",
        "--rpc-dialect",
        "pi-delta",
        "--permission-mode",
        "ask",
        "--provider",
        "mock-anthropic",
        "--model",
        "claude-mock",
    ]);
    let mut talk = Talk {
        agent: Agent::spawn(config)?,
        lines: Vec::new(),
        heard: 0,
    };
    talk.agent.wait_type("ready", PATIENCE)?;
    talk.ask(json!({"id": "1", "type": "get_state"}))?;
    // Each block comes in one piece: pieces that arrive together would be merged, now so, now so.
    let arguments = json!({"path": "hello.txt", "content": "Hello\n"}).to_string();
    server.push(Reply::text(["I write the file."]).tool_chunks("toolu_01", "write", [arguments]));
    server.push(Reply::text(["hello.txt contains a greeting."]));
    talk.send(json!({"id": "2", "type": "prompt", "message": "Write a greeting to hello.txt"}))?;
    let dialog = talk.agent.wait_type("extension_ui_request", PATIENCE)?;
    let id = dialog.get("id").cloned().context("a dialog without id")?;
    let options = dialog.get("options").and_then(Value::as_array);
    let first = options.and_then(|options| options.first()).cloned();
    let first = first.context("a dialog without options")?;
    talk.send(json!({"type": "extension_ui_response", "id": id, "value": first}))?;
    talk.agent.wait_type("agent_settled", PATIENCE)?;
    talk.ask(json!({"id": "3", "type": "get_last_assistant_text"}))?;
    talk.agent.close_stdin();
    talk.agent.wait_exit(PATIENCE)?;
    talk.hear();
    let mut normal = Normal::new(&workspace, &server.url())?;
    let lines = talk.lines.into_iter();
    Ok(lines.map(|line| format!("{}\n", normal.line(line))).collect())
}

/// A running agent and all lines so far.
struct Talk {
    agent: Agent,
    lines: Vec<Value>,
    /// Lines of the agent that were taken over.
    heard: usize,
}

impl Talk {
    /// Takes over what the agent has written, then sends a line.
    fn send(&mut self, line: Value) -> Result<()> {
        self.hear();
        self.agent.send(&line)?;
        self.lines.push(line);
        Ok(())
    }

    /// Sends a command and waits for its response.
    fn ask(&mut self, line: Value) -> Result<()> {
        let id = line
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        self.send(line)?;
        self.agent.response(&id, PATIENCE)?;
        Ok(())
    }

    fn hear(&mut self) {
        let lines = self.agent.lines();
        let new = lines
            .iter()
            .skip(self.heard)
            .map(|line| line.value.as_ref().clone());
        self.lines.extend(new);
        self.heard = lines.len();
    }
}
