//! The Agent Client Protocol: until the first answers come, what a delta costs more than on the RPC wire, and many sessions of one editor.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::llm::Reply;

use super::limits::{
    ACP_INITIALIZE_MS, ACP_MANY, ACP_NEW_MS, ACP_SERVERS, ACP_TIMES, DELTA_BYTES, DELTAS, LONG_RUNS, RUNS,
    SERVER_BATCH, STARTS,
};
use super::report::{Row, median};
use super::runner::{Cost, Runner, Stage};
use super::subject::Subject;

/// An editor that speaks the protocol.
pub(super) struct Editor {
    /// The agent.
    pub(super) agent: Runner,
    requests: u32,
}

impl Editor {
    /// Starts the agent with this protocol and waits for the response to `initialize`.
    pub(super) fn start(stage: &Stage, subject: &Subject) -> Result<Self> {
        let mut subject = subject.clone();
        for word in &mut subject.args {
            if word == "rpc" {
                "acp".clone_into(word);
            }
        }
        let mut editor = Self {
            agent: stage.start(&subject)?,
            requests: 0,
        };
        editor.call(
            "initialize",
            &json!({"protocolVersion": 1, "clientCapabilities": {}}),
        )?;
        Ok(editor)
    }

    fn request(&mut self, method: &str, params: &Value) -> (u32, Value) {
        self.requests += 1;
        let id = self.requests;
        (
            id,
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        )
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<String> {
        let (id, request) = self.request(method, params);
        self.agent.send(&request)?;
        response(&self.agent, id)
    }

    /// Opens a session and returns its id.
    pub(super) fn session(&mut self, stage: &Stage) -> Result<String> {
        let params = json!({"cwd": stage.workspace.cwd(), "mcpServers": []});
        let opened = self.call("session/new", &params)?;
        let (_, rest) = opened
            .split_once("\"sessionId\":\"")
            .with_context(|| format!("no session: {opened}"))?;
        Ok(rest.split('"').next().unwrap_or_default().to_owned())
    }

    fn prompt_request(&mut self, session: &str) -> (u32, Value) {
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Go on."}]});
        self.request("session/prompt", &prompt)
    }

    /// Sends a prompt, waits for its end and says what it cost.
    pub(super) fn prompt(&mut self, session: &str) -> Result<Cost> {
        let (id, request) = self.prompt_request(session);
        self.agent.cost(|agent| {
            agent.send(&request)?;
            let ended = response(agent, id)?;
            ensure!(ended.contains("end_turn"), "the prompt failed: {ended}");
            Ok(())
        })
    }
}

/// Waits for the response of a request.
fn response(agent: &Runner, id: u32) -> Result<String> {
    let result = format!("\"id\":{id},\"result\"");
    let error = format!("\"id\":{id},\"error\"");
    let head = agent.wait(|head| head.text.contains(&result) || head.text.contains(&error))?;
    ensure!(head.text.contains(&result), "request {id} failed: {}", head.text);
    Ok(head.text)
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let mut rows = vec![initialize(subject)?, new_session(subject)?];
    rows.extend(deltas(subject)?);
    rows.extend(many(subject)?);
    Ok(rows)
}

fn initialize(subject: &Subject) -> Result<Row> {
    let mut times = Vec::new();
    for number in 0..=STARTS {
        let stage = Stage::new()?;
        let editor = Editor::start(&stage, subject)?;
        // The first start fills caches.
        if number > 0 {
            times.push(editor.agent.started.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(Row::new("acp", "start to the response of initialize", "ms", times).at_most(ACP_INITIALIZE_MS))
}

/// The servers are processes that never answer: the slowest there can be.
fn new_session(subject: &Subject) -> Result<Row> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let stage = Stage::new()?;
        let servers: serde_json::Map<String, Value> = (0..ACP_SERVERS)
            .map(|number| {
                let server = json!({"command": "sleep", "args": ["600"]});
                (format!("silent{number}"), server)
            })
            .collect();
        let path = stage.workspace.agent_dir().join("mcp.json");
        stage
            .workspace
            .write(path, json!({ "mcpServers": servers }).to_string())?;
        let mut editor = Editor::start(&stage, subject)?;
        let asked = Instant::now();
        editor.session(&stage)?;
        times.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    let title = format!("session/new, {ACP_SERVERS} MCP servers that never answer");
    Ok(Row::new("acp", &title, "ms", times).at_most(ACP_NEW_MS))
}

/// The same answer on both wires, one after the other, so that a busy machine slows both.
fn deltas(subject: &Subject) -> Result<Vec<Row>> {
    let (mut acp, mut rpc) = (Vec::new(), Vec::new());
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    agent.warm_up(&stage)?;
    let mut editor = Editor::start(&stage, subject)?;
    let first = editor.session(&stage)?;
    stage.server.push(Reply::text_deltas(50, DELTA_BYTES));
    editor.prompt(&first)?;
    for _ in 0..RUNS {
        let answer = || Reply::text_deltas(DELTAS.0, DELTA_BYTES).batch(SERVER_BATCH);
        agent.call("new_session", None)?;
        stage.server.push(answer());
        rpc.push(per_delta(agent.cost(Runner::prompt)?.cpu_ms));
        let session = editor.session(&stage)?;
        stage.server.push(answer());
        acp.push(per_delta(editor.prompt(&session)?.cpu_ms));
    }
    let times = acp.iter().zip(&rpc).map(|(acp, rpc)| acp / rpc).collect();
    Ok(vec![
        Row::new("acp", "CPU of a delta of 20,000", "us", acp)
            .note(&format!("{:.2} us over RPC", median(&rpc))),
        Row::new("acp", "CPU of a delta, ACP to RPC", "x", times).at_most(ACP_TIMES),
    ])
}

#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn per_delta(cpu_ms: f64) -> f64 {
    cpu_ms * 1e3 / DELTAS.0 as f64
}

/// Sessions of one connection that get an answer at the same time.
fn many(subject: &Subject) -> Result<Vec<Row>> {
    let mut costs = Vec::new();
    for _ in 0..LONG_RUNS {
        let stage = Stage::new()?;
        let mut editor = Editor::start(&stage, subject)?;
        let mut prompts = Vec::new();
        for _ in 0..ACP_MANY {
            let session = editor.session(&stage)?;
            prompts.push(editor.prompt_request(&session));
            stage
                .server
                .push(Reply::text_deltas(DELTAS.1, DELTA_BYTES).batch(SERVER_BATCH));
        }
        costs.push(editor.agent.cost(|agent| ask_all(agent, &prompts))?);
    }
    let title = |what: &str| format!("{ACP_MANY} sessions of a connection, 2,000 deltas in each: {what}");
    let cpu = costs.iter().map(|cost| cost.cpu_ms).collect();
    let memory = costs.iter().map(|cost| cost.grown_mb).collect();
    Ok(vec![
        Row::new("acp", &title("CPU"), "ms", cpu),
        Row::new("acp", &title("growth of memory"), "MB", memory),
    ])
}

/// Sends prompts together and waits for their ends, in any order.
fn ask_all(agent: &mut Runner, prompts: &[(u32, Value)]) -> Result<()> {
    let mut open: Vec<String> = prompts.iter().map(|(id, _)| format!("\"id\":{id},")).collect();
    for (_, request) in prompts {
        agent.send(request)?;
    }
    while !open.is_empty() {
        let head = agent.next()?;
        if let Some(place) = open.iter().position(|mark| head.text.contains(mark)) {
            ensure!(head.text.contains("end_turn"), "a prompt failed: {}", head.text);
            open.swap_remove(place);
        }
    }
    Ok(())
}
