//! A web client of the soak: one socket, one session, commands that are waited for.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

/// How long an answer or the end of a run may take. A soak does not judge times; this only ends a soak that hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection.
pub(super) struct Client {
    socket: WebSocket<TcpStream>,
    serial: u64,
}

impl Client {
    /// Connects to `HOST:PORT` and waits for nothing.
    pub(super) fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).context("no connection")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut request = format!("ws://{address}/ws").into_client_request()?;
        let origin = HeaderValue::from_str(&format!("http://{address}"))?;
        request.headers_mut().append("origin", origin);
        let (socket, _) = tungstenite::client(request, stream)
            .ok()
            .context("the socket was refused")?;
        Ok(Self { socket, serial: 0 })
    }

    /// Sends a command and waits for its response; gives its `data`.
    pub(super) fn call(&mut self, command: Value) -> Result<Value> {
        let id = self.send(command)?;
        let response = self.wait(|line| kind(line) == "response" && line.get("id") == Some(&json!(id)))?;
        ensure!(is_success(&response), "refused: {response}");
        Ok(response.get("data").cloned().unwrap_or_default())
    }

    /// Receives only what this session's runs need.
    pub(super) fn listen_to(&mut self, session: &str) -> Result<()> {
        let events = ["agent_settled"];
        let refused = self.call(json!({"type": "hello", "sessions": [session], "events": events}))?;
        ensure!(
            refused.get("refused") == Some(&json!([])),
            "hello was refused in part: {refused}"
        );
        Ok(())
    }

    /// Sends a prompt and waits until its run has settled.
    pub(super) fn prompt(&mut self, session: &str, message: &str) -> Result<()> {
        self.send(json!({"type": "prompt", "session": session, "message": message}))?;
        // The response and the end of the run, in either order of arrival.
        let (mut accepted, mut settled) = (false, false);
        while !(accepted && settled) {
            let line = self.wait(|_| true)?;
            match kind(&line) {
                "response" => {
                    ensure!(is_success(&line), "a prompt was refused: {line}");
                    accepted = true;
                }
                "agent_settled" => settled = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn send(&mut self, mut command: Value) -> Result<String> {
        self.serial += 1;
        let id = self.serial.to_string();
        if let Some(object) = command.as_object_mut() {
            object.insert("id".to_owned(), id.clone().into());
        }
        self.socket.send(Message::text(command.to_string()))?;
        Ok(id)
    }

    fn wait(&mut self, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            match self.socket.read()? {
                Message::Text(text) => {
                    let line: Value = serde_json::from_str(&text)?;
                    if fits(&line) {
                        return Ok(line);
                    }
                }
                Message::Close(frame) => bail!("the agent closed the socket: {frame:?}"),
                _ => {}
            }
        }
        bail!("what was waited for did not come within {PATIENCE:?}")
    }

    /// Says goodbye. A client that is dropped instead just breaks the connection.
    pub(super) fn leave(mut self) {
        let _gone = self.socket.close(None);
        let _flushed = self.socket.flush();
    }
}

fn kind(line: &Value) -> &str {
    line.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_success(response: &Value) -> bool {
    response.get("success") == Some(&Value::Bool(true))
}
