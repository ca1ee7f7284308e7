//! The gate before tool calls with side effects. The agent loads a program extension, which is `pinion-cluster gate SOCKET` and asks the
//! worker over a socket before each call. The worker answers after it has stored that the call begins, and only while it has the
//! lease. So a new owner knows which calls may have run, and a worker that was stopped begins no call afterwards.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use store::SessionId;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader as AsyncReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use crate::bus::{Bus, LeaseState};
use crate::limits::GATE_WAIT;

/// Tools that change nothing. Their calls need no record.
const READERS: [&str; 6] = ["read", "ls", "grep", "find", "glob", "todo"];

/// The leases that the gate checks.
#[derive(Default)]
pub(crate) struct Gate {
    leases: Mutex<HashMap<SessionId, watch::Receiver<LeaseState>>>,
}

/// True if a call of the tool changes nothing.
pub(crate) fn only_reads(tool: &str) -> bool {
    READERS.contains(&tool)
}

/// The key of a call's record.
pub(crate) fn key(call: &str) -> String {
    let hex: String = call.bytes().take(100).map(|byte| format!("{byte:02x}")).collect();
    format!("call{hex}")
}

impl Gate {
    /// Lets calls of a session begin while its lease is valid.
    pub(crate) fn open(&self, session: &SessionId, lease: watch::Receiver<LeaseState>) {
        self.lock().insert(session.clone(), lease);
    }

    /// Lets no call of a session begin from now on.
    pub(crate) fn close(&self, session: &SessionId) {
        self.lock().remove(session);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, watch::Receiver<LeaseState>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease of a session. A session without one belongs to another session of this worker (a sub-agent); then all leases have
    /// to be valid.
    fn lease(&self, session: &SessionId) -> Option<LeaseState> {
        let leases = self.lock();
        match leases.get(session) {
            Some(lease) => Some(*lease.borrow()).filter(LeaseState::is_valid),
            None => {
                let all: Vec<LeaseState> = leases.values().map(|lease| *lease.borrow()).collect();
                let first = all.first().copied();
                first.filter(|_| all.iter().all(LeaseState::is_valid))
            }
        }
    }

    /// Stores that a call begins. False if it must not.
    async fn pass(&self, bus: &Bus, session: &str, call: &str) -> bool {
        let Ok(session) = SessionId::new(session) else {
            return false;
        };
        let Some(lease) = self.lease(&session) else {
            return false;
        };
        // The agent kills an extension that does not answer for ten seconds.
        let until = lease.valid_until.min(Instant::now() + GATE_WAIT);
        let begun = bus.begin(&session, &key(call), until).await;
        // The lease may have ended while the record was on its way.
        begun.is_ok() && self.lease(&session).is_some()
    }
}

/// Writes the extension for the agent and answers its questions. Returns the directory to load.
pub(crate) fn start(dir: &Path, program: &Path, gate: Arc<Gate>, bus: Arc<Bus>) -> Result<PathBuf> {
    let folder = dir.join("gate");
    std::fs::create_dir_all(&folder)?;
    let socket = dir.join("gate.sock");
    drop(std::fs::remove_file(&socket));
    let listener =
        UnixListener::bind(&socket).with_context(|| format!("{} cannot be opened", socket.display()))?;
    let manifest = json!({"command": [program, "gate", socket], "name": "worker", "events": ["tool_call"]});
    std::fs::write(folder.join("extension.json"), manifest.to_string())?;
    tokio::spawn(async move {
        // The agent starts the program again if it ends, so connections follow each other.
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&gate), Arc::clone(&bus)));
        }
    });
    Ok(folder)
}

async fn answer(stream: UnixStream, gate: Arc<Gate>, bus: Arc<Bus>) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = AsyncReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let question: Value = serde_json::from_str(&line).unwrap_or_default();
        let word = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
        let passes = gate.pass(&bus, word("session"), word("call")).await;
        let reply = if passes { "yes\n" } else { "no\n" };
        if writer.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The extension: reads lines of the agent and asks the worker about each call with side effects. Ends with the agent.
///
/// # Errors
/// When the worker or the agent is gone. The agent then denies the calls.
pub fn extension(socket: &Path, input: impl std::io::Read, mut output: impl std::io::Write) -> Result<()> {
    let stream = BlockingStream::connect(socket).context("the worker is gone")?;
    let mut replies = BufReader::new(stream.try_clone()?);
    let mut questions = stream;
    let mut sessions: HashMap<String, String> = HashMap::new();
    for line in BufReader::new(input).lines() {
        let line: Value = serde_json::from_str(&line?).unwrap_or_default();
        let word = |path: &str| line.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let id = line.get("id").cloned().unwrap_or_default();
        let result = |value: Value| json!({"type": "result", "id": id, "value": value});
        let answer = match word("/type") {
            "hello" => json!({"type": "ready", "protocol": 1}),
            "open" => {
                sessions.insert(word("/session").to_owned(), word("/state/sessionId").to_owned());
                result(json!({"extensions": [{"events": ["tool_call"]}]}))
            }
            "close" => {
                sessions.remove(word("/session"));
                continue;
            }
            "ping" => json!({"type": "pong", "id": id}),
            "event" if id.is_null() => continue,
            "event" if only_reads(word("/event/toolName")) => result(Value::Null),
            "event" => {
                let session = sessions.get(word("/session"));
                let question = json!({"session": session, "call": word("/event/toolCallId")});
                writeln!(questions, "{question}")?;
                let mut reply = String::new();
                replies.read_line(&mut reply)?;
                result(if reply == "yes\n" {
                    Value::Null
                } else {
                    json!({"block": true, "reason": "This worker no longer has the session. The call did not run."})
                })
            }
            _ => continue,
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}
