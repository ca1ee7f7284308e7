//! A running agent with a scripted model behind it: commands in, the end of a run out, and what that cost.
//! The groups of figures decide which commands it gets.

use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};
use testkit::llm::{Options, Reply, ScriptedServer};
use testkit::workspace::Workspace;

use super::limits::{EXIT, PATIENCE, SETTLE};
use super::meter::{self, Usage};
use super::output::{self, Counts, Head};
use super::subject::Subject;

/// What a run cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// CPU in ms.
    pub(super) cpu_ms: f64,
    /// The part of it that finished children used, ms.
    pub(super) children_ms: f64,
    /// Bytes printed.
    pub(super) bytes: u64,
    /// Peak of the memory above that before, MB.
    pub(super) grown_mb: f64,
}

/// Requests that the scripted model remembers where there are very many.
const RECORDED: usize = 4;

/// A token of ChatGPT's form: its middle names the account `acc`.
const CHATGPT_KEY: &str =
    "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOiB7ImNoYXRncHRfYWNjb3VudF9pZCI6ICJhY2MifX0.s";

/// A key that an API takes.
fn key(api: &str) -> &'static str {
    match api {
        "openai-codex-responses" => CHATGPT_KEY,
        _ => "mock-key",
    }
}

/// The scripted model and the folders of agents that follow one another.
#[derive(Debug)]
pub(super) struct Stage {
    /// The model.
    pub(super) server: ScriptedServer,
    /// The folders.
    pub(super) workspace: Workspace,
}

impl Stage {
    /// A new stage, whose model speaks the Messages API.
    pub(super) fn new() -> Result<Self> {
        Self::speaking("anthropic-messages", "anthropic")
    }

    /// A new stage, whose model speaks an API below a path of the server.
    pub(super) fn speaking(api: &str, path: &str) -> Result<Self> {
        // A window that no measurement fills, so that nothing is compacted.
        Self::set_up(ScriptedServer::start([])?, (api, path), 100_000_000)
    }

    /// A new stage for very many requests, whose model has a window of so many tokens.
    pub(super) fn with_window(tokens: u64) -> Result<Self> {
        let options = Options {
            recorded: RECORDED,
            ..Options::default()
        };
        let server = ScriptedServer::with_options([], options)?;
        Self::set_up(server, ("anthropic-messages", "anthropic"), tokens)
    }

    fn set_up(server: ScriptedServer, (api, path): (&str, &str), window: u64) -> Result<Self> {
        let workspace = Workspace::new(&server.url())?;
        let model = json!({
            "id": "mock", "name": "Mock", "reasoning": false, "input": ["text"],
            "contextWindow": window, "maxTokens": 1_000_000,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        });
        workspace.write_models(&json!({"providers": {"mock": {
            "baseUrl": format!("{}/{path}", server.url()), "api": api, "apiKey": key(api),
            "models": [model],
        }}}))?;
        Ok(Self { server, workspace })
    }

    /// Starts an agent here.
    pub(super) fn start(&self, subject: &Subject) -> Result<Runner> {
        self.start_keeping(subject, None)
    }

    /// Starts an agent whose updates are kept, too, when they have this mark.
    pub(super) fn start_keeping(&self, subject: &Subject, mark: Option<&'static str>) -> Result<Runner> {
        let mut command = Command::new(&subject.program);
        command
            .args(&subject.args)
            .env_clear()
            .envs(self.workspace.env())
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
            .env("SHELL", "/bin/bash")
            .env("PI_SKIP_VERSION_CHECK", "1")
            .env("NO_COLOR", "1")
            .current_dir(self.workspace.cwd());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", subject.program.display()))?;
        let stdout = child.stdout.take().context("no stdout")?;
        let (counts, heads) = output::read(stdout, mark);
        Ok(Runner {
            stdin: child.stdin.take(),
            child,
            counts,
            heads,
            started,
            serial: 0,
        })
    }
}

/// A running agent. Dropping it ends the program.
#[derive(Debug)]
pub(super) struct Runner {
    child: Child,
    /// Taken by measurements that write by themselves.
    pub(super) stdin: Option<ChildStdin>,
    pub(super) counts: Arc<Counts>,
    heads: Receiver<Head>,
    /// When it was started.
    pub(super) started: Instant,
    serial: u64,
}

impl Runner {
    /// The program's process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the program alone, as `kill -9` does.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Closes stdin, waits until the program ended by itself and returns its process id.
    pub(super) fn finish(mut self) -> Result<u32> {
        self.stdin.take();
        let end = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > end {
                bail!("the agent did not end within {PATIENCE:?}");
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(self.pid())
    }

    /// Writes a line and flushes.
    pub(super) fn send(&mut self, command: &Value) -> Result<()> {
        let pipe = self.stdin.as_mut().context("stdin is taken")?;
        pipe.write_all(format!("{command}\n").as_bytes())?;
        Ok(())
    }

    /// The next output line that is not an update.
    pub(super) fn next(&self) -> Result<Head> {
        self.heads.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => anyhow!("the agent says nothing for {PATIENCE:?}"),
            RecvTimeoutError::Disconnected => anyhow!("the agent ended in the middle of it"),
        })
    }

    /// Waits for the next head for a limited time.
    pub(super) fn next_within(&self, time: Duration) -> Option<Head> {
        self.heads.recv_timeout(time).ok()
    }

    /// Waits for a line that fits; what comes before it is thrown away.
    pub(super) fn wait(&self, fits: impl Fn(&Head) -> bool) -> Result<Head> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let head = self.next()?;
            if fits(&head) {
                return Ok(head);
            }
        }
        bail!("the line that was waited for did not come within {PATIENCE:?}")
    }

    /// Sends a command and waits for its answer.
    pub(super) fn call(&mut self, command: &str, message: Option<&str>) -> Result<Head> {
        let mut line = json!({ "type": command });
        if let (Some(message), Some(object)) = (message, line.as_object_mut()) {
            object.insert("message".to_owned(), message.into());
        }
        self.ask(line)
    }

    /// Gives a command with parameters an id, sends it and waits for its answer.
    pub(super) fn ask(&mut self, mut command: Value) -> Result<Head> {
        self.serial += 1;
        let id = format!("bench{}", self.serial);
        if let Some(object) = command.as_object_mut() {
            object.insert("id".to_owned(), id.clone().into());
        }
        self.send(&command)?;
        let head = self.wait(|head| head.answers(&id))?;
        let refused = [r#""success":false"#, r#""success": false"#];
        if refused.iter().any(|word| head.text.contains(word)) {
            bail!("{command} was refused: {}", head.text);
        }
        Ok(head)
    }

    /// Sends a prompt and waits for the end of its run, and until everything before it is printed.
    pub(super) fn prompt(&mut self) -> Result<()> {
        self.call("prompt", Some("Go on."))?;
        self.wait(|head| head.kind() == "agent_end")?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let state = self.call("get_state", None)?;
            if !state.text.replace(' ', "").contains(r#""isStreaming":true"#) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the run did not end within {PATIENCE:?}")
    }

    /// Lets code load and connections open, so that they are not measured: an answer and a tool call.
    pub(super) fn warm_up(&mut self, stage: &Stage) -> Result<()> {
        stage.server.push(Reply::text_deltas(50, 20));
        self.prompt()?;
        stage
            .server
            .push(Reply::tool("warm_up", "bash", json!({"command": "true"})));
        stage.server.push(Reply::text(["done"]));
        self.prompt()
    }

    /// Runs `work` and says what it cost.
    pub(super) fn cost(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<Cost> {
        thread::sleep(SETTLE);
        meter::reset_peaks(self.pid());
        let (before, bytes) = (self.usage(), self.counts.bytes());
        work(self)?;
        thread::sleep(SETTLE);
        let after = self.usage();
        Ok(Cost {
            cpu_ms: ms(after.cpu.saturating_sub(before.cpu)),
            children_ms: ms(after.children.saturating_sub(before.children)),
            bytes: self.counts.bytes() - bytes,
            grown_mb: mb(after.peak_all.saturating_sub(before.resident_all)),
        })
    }

    /// What the agent has used up to now.
    pub(super) fn usage(&self) -> Usage {
        meter::usage(self.pid())
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.stdin.take();
        self.counts.pause(false);
        let end = Instant::now() + EXIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        // Fails if it has ended already, which is the goal.
        let _ended = self.child.kill();
        let _collected = self.child.wait();
    }
}

/// Nanoseconds as milliseconds.
#[expect(clippy::cast_precision_loss, reason = "measured times stay far below 2^53 ns")]
pub(super) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Bytes as megabytes.
#[expect(
    clippy::cast_precision_loss,
    reason = "measured sizes stay far below 2^53 bytes"
)]
pub(super) fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
