//! `--mode web` with a model behind it whose deltas are timed: started, asked over plain HTTP, and ended.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::llm::Reply;

use super::crowd::Crowd;
use super::intake::Way;
use crate::bench::limits::{PATIENCE, SERVER_BATCH, WEB_DELTAS, WEB_PACE, WEB_REST};
use crate::bench::meter::{self, Usage};
use crate::bench::probe::{Probe, provider};
use crate::bench::runner::{Runner, Stage};
use crate::bench::subject::Subject;

/// Arguments that select the web server instead of the protocol on stdio.
const ARGS: [&str; 4] = ["--mode", "web", "--port", "0"];

/// A server that listens. Dropping it ends it.
pub(super) struct Server {
    agent: Runner,
    /// Host and port.
    pub(super) address: String,
    /// The model whose deltas are timed.
    pub(super) probe: Arc<Probe>,
    stage: Stage,
}

impl Server {
    /// Starts one, and lets it serve a client, so that code is loaded and connections are open.
    pub(super) fn open(subject: &Subject) -> Result<Self> {
        let stage = Stage::new()?;
        let probe = Arc::new(Probe::start(WEB_DELTAS, WEB_PACE)?);
        stage.workspace.write_models(&json!({"providers": {
            "mock": provider(&stage.server.url(), "mock"),
            "probe": probe.provider(),
        }}))?;
        let agent = stage.start(&subject.with(&ARGS))?;
        let line = agent.wait(|line| line.text.contains("WebSocket:"))?;
        let address = line.text.split("://").nth(1).context("no address")?.trim();
        let address = address.trim_end_matches("/ws").to_owned();
        let server = Self {
            agent,
            address,
            probe,
            stage,
        };
        server.stage.server.push(Reply::text_deltas(50, 20));
        let warm = Crowd::gather(&server.address, Way::Socket, (1, 0), &server.probe)?;
        server.ask(&json!({"type": "prompt", "message": "Go on."}))?;
        server.wait_until_idle()?;
        drop(warm);
        server.ask(&json!({"type": "set_model", "provider": "probe", "modelId": "probe"}))?;
        Ok(server)
    }

    /// Lets the model answer; its deltas count from zero again.
    pub(super) fn prompt(&self) -> Result<()> {
        self.probe.reset();
        self.ask(&json!({"type": "prompt", "message": "Go on."}))?;
        Ok(())
    }

    /// Lets another model give an answer of so many bytes, as fast as it can be read, and waits for its end.
    pub(super) fn long_answer(&self, bytes: usize) -> Result<()> {
        const DELTA: usize = 100;
        let deltas = u64::try_from(bytes / DELTA)?;
        self.ask(&json!({"type": "set_model", "provider": "mock", "modelId": "mock"}))?;
        self.stage
            .server
            .push(Reply::text_deltas(deltas, DELTA).batch(SERVER_BATCH));
        self.ask(&json!({"type": "prompt", "message": "Go on."}))?;
        self.wait_until_idle()
    }

    /// Waits until no answer streams in any more.
    pub(super) fn wait_until_idle(&self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let state = self.ask(&json!({"type": "get_state"}))?;
            if state.pointer("/data/isStreaming") == Some(&json!(false)) {
                return Ok(());
            }
            ensure!(Instant::now() < end, "the answer does not end");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the server has used, once that has come to rest.
    pub(super) fn at_rest(&self) -> Usage {
        thread::sleep(WEB_REST);
        self.usage()
    }

    /// What the server has used.
    pub(super) fn usage(&self) -> Usage {
        self.agent.usage()
    }

    /// Forgets the peak of its memory.
    pub(super) fn reset_peak(&self) {
        meter::reset_peaks(self.agent.pid());
    }

    /// Checks that the server is up, and returns its number of clients.
    pub(super) fn clients(&self) -> Result<u64> {
        let (status, body) = self.request("GET", "/health", "")?;
        ensure!(status == 200, "status {status} of /health");
        let body: Value = serde_json::from_str(&body)?;
        body.pointer("/clients")
            .and_then(Value::as_u64)
            .context("no number of clients")
    }

    /// Waits until all clients have left.
    pub(super) fn wait_until_empty(&self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while self.clients().ok() != Some(0) {
            ensure!(Instant::now() < end, "the clients do not go");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn ask(&self, command: &Value) -> Result<Value> {
        let (status, body) = self.request("POST", "/api/command", &command.to_string())?;
        let answer: Value = serde_json::from_str(&body).with_context(|| format!("status {status}"))?;
        if answer.pointer("/success") != Some(&json!(true)) {
            bail!("{command} was refused: {answer}");
        }
        Ok(answer)
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no head")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, body.to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Closing its stdin does not end a web server, hence the signal. The process may have ended already.
        if let Some(pid) = i32::try_from(self.agent.pid()).ok().and_then(Pid::from_raw) {
            let _ended = kill_process(pid, Signal::TERM);
        }
    }
}
