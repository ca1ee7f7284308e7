//! A recorded client of the Agent Client Protocol: it sends a line only after it has taken over what the agent has written, and
//! waits for what must come before it sends the next, so that two recordings have the same order.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use testkit::driver::{Agent, AgentConfig};

use super::super::PATIENCE;

/// A running agent and all lines so far.
pub(super) struct Client {
    agent: Agent,
    lines: Vec<Value>,
    /// Lines of the agent that were taken over.
    heard: usize,
    /// The last id of a request.
    count: u64,
    /// Time without a line after which the agent has nothing more to say. What must come is waited for by name before.
    quiet: Duration,
}

impl Client {
    pub(super) fn start(config: AgentConfig, quiet: Duration) -> Result<Self> {
        Ok(Self {
            agent: Agent::spawn(config)?,
            lines: Vec::new(),
            heard: 0,
            count: 0,
            quiet,
        })
    }

    fn hear(&mut self) {
        let lines = self.agent.lines();
        let new = lines.iter().skip(self.heard);
        self.lines.extend(new.map(|line| json!({"agent": *line.value})));
        self.heard = lines.len();
    }

    /// Sends a message. Updates that follow from earlier messages have come by then.
    pub(super) fn send(&mut self, mut message: Value) -> Result<()> {
        self.settle()?;
        if let Some(message) = message.as_object_mut() {
            message.shift_insert(0, "jsonrpc".to_owned(), "2.0".into());
        }
        self.agent.send(&message)?;
        self.lines.push(json!({"client": message}));
        Ok(())
    }

    /// Sends a line that is no message.
    pub(super) fn send_text(&mut self, line: &str) -> Result<()> {
        self.settle()?;
        self.agent.send_raw(format!("{line}\n").as_bytes())?;
        self.lines.push(json!({"client": line}));
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        if !self.agent.wait_quiet(self.quiet, PATIENCE) {
            bail!("the agent does not stop writing");
        }
        self.hear();
        Ok(())
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.send(json!({"method": method, "params": params}))
    }

    /// Sends a request and returns its id.
    pub(super) fn begin(&mut self, method: &str, params: Value) -> Result<u64> {
        self.count += 1;
        let id = self.count;
        self.send(json!({"id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    /// Waits for the response to a request.
    pub(super) fn response(&mut self, id: &Value) -> Result<Value> {
        let is_answer = |line: &Value| line.get("id") == Some(id) && line.get("method").is_none();
        Ok(self
            .agent
            .wait_for(&id.to_string(), true, 1, PATIENCE, is_answer)?)
    }

    /// Sends a request and waits for its result.
    pub(super) fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.begin(method, params)?;
        self.result(id)
    }

    /// Waits for the result of a request.
    pub(super) fn result(&mut self, id: u64) -> Result<Value> {
        let mut response = self.response(&id.into())?;
        let result = response.get_mut("result").map(Value::take);
        result.with_context(|| format!("request {id} was answered with {response}"))
    }

    /// Sends a request and waits for its error.
    pub(super) fn refused(&mut self, method: &str, params: Value) -> Result<()> {
        let id = self.begin(method, params)?;
        self.error(&id.into())
    }

    /// Waits for the error that answers a request.
    pub(super) fn error(&mut self, id: &Value) -> Result<()> {
        let response = self.response(id)?;
        if response.get("error").is_none() {
            bail!("no error: {response}");
        }
        Ok(())
    }

    /// Waits for the next request of the agent, and returns it.
    pub(super) fn asked(&mut self, method: &str) -> Result<Value> {
        let asks = |line: &Value| line.get("method").is_some_and(|name| name == method);
        let what = format!("request {method}");
        Ok(self.agent.wait_for(&what, false, 1, PATIENCE, asks)?)
    }

    /// Answers a request of the agent.
    pub(super) fn answer(&mut self, request: &Value, result: Value) -> Result<()> {
        let id = request.get("id").cloned().unwrap_or_default();
        self.send(json!({"id": id, "result": result}))
    }

    /// Waits for a request of the agent and answers it.
    pub(super) fn serve(&mut self, method: &str, result: Value) -> Result<()> {
        let request = self.asked(method)?;
        self.answer(&request, result)
    }

    /// Waits for the next update of a kind.
    pub(super) fn updated(&mut self, kind: &str) -> Result<Value> {
        let fits = |line: &Value| {
            let update = line.pointer("/params/update/sessionUpdate");
            update.is_some_and(|update| update == kind)
        };
        let what = format!("update {kind}");
        Ok(self.agent.wait_for(&what, false, 1, PATIENCE, fits)?)
    }

    pub(super) fn initialize(&mut self, capabilities: &Value) -> Result<()> {
        let client = json!({"name": "example", "title": "Example", "version": "1.0.0"});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client});
        self.call("initialize", params).map(drop)
    }

    /// Opens a session and waits for its commands.
    pub(super) fn new_session(&mut self, cwd: &Value, servers: Value) -> Result<String> {
        let result = self.call("session/new", json!({"cwd": cwd, "mcpServers": servers}))?;
        self.updated("available_commands_update")?;
        let id = result.get("sessionId").and_then(Value::as_str);
        Ok(id.context("a session without id")?.to_owned())
    }

    /// Starts a prompt of one text and returns the id of the request.
    pub(super) fn begin_prompt(&mut self, session: &str, text: &str) -> Result<u64> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.begin("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// Sends a prompt of one text and waits for its end.
    pub(super) fn prompt(&mut self, session: &str, text: &str) -> Result<()> {
        let id = self.begin_prompt(session, text)?;
        self.result(id).map(drop)
    }

    /// Ends the agent. Returns all lines.
    pub(super) fn end(mut self) -> Result<Vec<Value>> {
        self.settle()?;
        self.agent.close_stdin();
        self.agent.wait_exit(PATIENCE)?;
        self.hear();
        Ok(self.lines)
    }
}
