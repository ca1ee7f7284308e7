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
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::state_dir::{OpenStateDir, set_mode};
use crate::bus::{Bus, LeaseState, Until};
use crate::limits::{GATE_CALLS, GATE_WAIT};

/// Tools that change nothing. Their calls need no record.
const READERS: [&str; 6] = ["read", "ls", "grep", "find", "glob", "todo"];

/// Answered when everything that the agent wrote to the session file is stored.
pub(crate) type StoreRequest = oneshot::Sender<()>;

/// A session whose calls may begin.
struct OpenSession {
    lease: watch::Receiver<LeaseState>,
    /// Asks the task of the session to store what its agent wrote so far.
    store: mpsc::Sender<StoreRequest>,
    /// Calls that were noted in the open run, with the sequence of the note.
    noted: HashMap<String, u64>,
    hold: Hold,
}

/// How far the agent has given up a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// It has the session.
    Open,
    /// It is closing it. No call of the session may begin.
    Closing,
    /// It did not close it. The session may have sub-agents that go on.
    Stuck,
}

impl OpenSession {
    /// The lease, unless it is lost or the session is stuck.
    fn lease(&self) -> Option<LeaseState> {
        let lease = Some(*self.lease.borrow());
        lease.filter(|lease| lease.is_valid() && self.hold != Hold::Stuck)
    }
}

/// The sessions that the gate lets pass.
#[derive(Default)]
pub(crate) struct Gate {
    sessions: Mutex<HashMap<SessionId, OpenSession>>,
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
    pub(crate) fn open(
        &self,
        session: &SessionId,
        lease: watch::Receiver<LeaseState>,
        store: mpsc::Sender<StoreRequest>,
    ) {
        let noted = HashMap::new();
        let open = OpenSession {
            lease,
            store,
            noted,
            hold: Hold::Open,
        };
        self.lock().insert(session.clone(), open);
    }

    /// Lets no call of a session begin from now on.
    pub(crate) fn close(&self, session: &SessionId) {
        self.hold(session, Hold::Closing);
    }

    /// Lets no call of a session begin that the agent does not close, and none of a sub-agent, whose session is unknown.
    pub(crate) fn give_up(&self, session: &SessionId) {
        self.hold(session, Hold::Stuck);
    }

    fn hold(&self, session: &SessionId, hold: Hold) {
        if let Some(open) = self.lock().get_mut(session) {
            open.hold = hold;
        }
    }

    /// Forgets a session that the agent no longer has.
    pub(crate) fn forget(&self, session: &SessionId) {
        self.lock().remove(session);
    }

    /// Forgets calls that have ended. Returns the sequence up to which the notes of the session can be removed.
    pub(crate) fn settle(&self, session: &SessionId, ended: &[String]) -> Option<u64> {
        let mut sessions = self.lock();
        let noted = &mut sessions.get_mut(session)?.noted;
        ended.iter().filter_map(|call| noted.remove(call)).max()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, OpenSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease of a session. A session without one belongs to another session of this worker (a sub-agent); then all leases have
    /// to be valid.
    fn lease(&self, session: &SessionId) -> Option<LeaseState> {
        let sessions = self.lock();
        match sessions.get(session) {
            Some(open) => open.lease().filter(|_| open.hold == Hold::Open),
            None => {
                let others = sessions.values().filter(|open| open.hold != Hold::Closing);
                let all: Option<Vec<LeaseState>> = others.map(OpenSession::lease).collect();
                all?.first().copied()
            }
        }
    }

    /// Waits until the answer that makes a call is stored. False if it is not in time.
    async fn stored(&self, session: &SessionId, until: Instant) -> bool {
        let Some(store) = self.lock().get(session).map(|open| open.store.clone()) else {
            return false;
        };
        let (sender, stored) = oneshot::channel();
        let asked = async {
            store.send(sender).await.ok()?;
            stored.await.ok()
        };
        matches!(tokio::time::timeout_at(until.into(), asked).await, Ok(Some(())))
    }

    /// Stores that a call begins. False if it must not.
    async fn pass(&self, bus: &Bus, session: &str, call: &str) -> bool {
        let Ok(session) = SessionId::new(session) else {
            return false;
        };
        let Some(lease) = self.lease(&session) else {
            return false;
        };
        // A new owner asks only about calls of the session itself; those of its sub-agents end with them.
        if !self.lock().contains_key(&session) {
            return true;
        }
        let until = lease.valid_until.min(Instant::now() + GATE_WAIT);
        // A call whose answer is not stored would leave no trace for a new owner, who would let the model make it again.
        if !self.stored(&session, until).await {
            return false;
        }
        let Ok(sequence) = bus.note_call(&session, &key(call), &Until::Time(until)).await else {
            return false;
        };
        if let Some(open) = self.lock().get_mut(&session) {
            open.noted.insert(call.to_owned(), sequence);
        }
        // The lease may have ended while the record was on its way.
        self.lease(&session).is_some()
    }
}

/// Writes the extension for the agent and answers its questions. Returns the directory to load.
pub(super) fn start(state: &OpenStateDir, program: &Path, gate: Arc<Gate>, bus: Arc<Bus>) -> Result<PathBuf> {
    let folder = state.private("gate")?;
    let socket = state.path.join("gate.sock");
    let listener = listen(&socket)?;
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

/// Opens the socket in place of an older one. Only the user of the worker can connect, since others may reach its directory.
fn listen(socket: &Path) -> Result<UnixListener> {
    drop(std::fs::remove_file(socket));
    let listener =
        UnixListener::bind(socket).with_context(|| format!("{} cannot be opened", socket.display()))?;
    set_mode(socket, 0o600)?;
    Ok(listener)
}

/// Answers the questions of one extension process. Calls of different sessions do not wait for each other.
async fn answer(stream: UnixStream, gate: Arc<Gate>, bus: Arc<Bus>) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = AsyncReader::new(reader).lines();
    let mut asked = JoinSet::new();
    loop {
        let reply = tokio::select! {
            line = lines.next_line(), if asked.len() < GATE_CALLS => {
                let Ok(Some(line)) = line else {
                    return;
                };
                let (gate, bus) = (Arc::clone(&gate), Arc::clone(&bus));
                asked.spawn(async move {
                    let question: Value = serde_json::from_str(&line).unwrap_or_default();
                    let word = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
                    let passes = gate.pass(&bus, word("session"), word("call")).await;
                    json!({"id": question.get("id"), "passes": passes})
                });
                continue;
            }
            Some(Ok(reply)) = asked.join_next() => reply,
            // A question failed; the agent denies its call after the timeout of extensions.
            else => continue,
        };
        if writer.write_all(format!("{reply}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

/// What the two threads of the extension share.
struct Extension<W> {
    output: W,
    /// Ids of the events that wait for the worker.
    waiting: Vec<Value>,
    /// True when the worker is gone, so that no answer can come.
    is_alone: bool,
}

impl<W: std::io::Write> Extension<W> {
    fn write(&mut self, line: &Value) -> std::io::Result<()> {
        writeln!(self.output, "{line}")?;
        self.output.flush()
    }

    fn decide(&mut self, id: &Value, passes: bool) -> std::io::Result<()> {
        let value = if passes {
            Value::Null
        } else {
            json!({"block": true, "reason": "This worker no longer has the session. The call did not run."})
        };
        self.write(&json!({"type": "result", "id": id, "value": value}))
    }

    /// Takes an answer of the worker.
    fn answered(&mut self, reply: &Value) -> std::io::Result<()> {
        let id = reply.get("id").cloned().unwrap_or_default();
        self.waiting.retain(|waiting| *waiting != id);
        self.decide(&id, reply.get("passes") == Some(&Value::Bool(true)))
    }

    /// Denies what waits, and everything from now on.
    fn deny_all(&mut self) -> std::io::Result<()> {
        self.is_alone = true;
        for id in std::mem::take(&mut self.waiting) {
            self.decide(&id, false)?;
        }
        Ok(())
    }
}

/// The extension: reads lines of the agent and asks the worker about each call with side effects. A thread passes the answers on, so
/// that calls of different sessions, and pings of the agent, do not wait for each other. Ends with the agent.
///
/// # Errors
/// When the worker cannot be reached or the agent is gone. The agent then denies the calls.
pub fn extension(
    socket: &Path,
    input: impl std::io::Read,
    output: impl std::io::Write + Send + 'static,
) -> Result<()> {
    let mut questions = BlockingStream::connect(socket).context("the worker is gone")?;
    let replies = BufReader::new(questions.try_clone()?);
    let extension = Arc::new(Mutex::new(Extension {
        output,
        waiting: Vec::new(),
        is_alone: false,
    }));
    let answers = Arc::clone(&extension);
    std::thread::spawn(move || {
        for reply in replies.lines().map_while(Result::ok) {
            let reply: Value = serde_json::from_str(&reply).unwrap_or_default();
            // Fails when the agent is gone, which the other thread notices, too.
            drop(locked(&answers).answered(&reply));
        }
        drop(locked(&answers).deny_all());
    });
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
                let mut extension = locked(&extension);
                if extension.is_alone {
                    extension.decide(&id, false)?;
                    continue;
                }
                extension.waiting.push(id.clone());
                let session = sessions.get(word("/session"));
                let question = json!({"id": id, "session": session, "call": word("/event/toolCallId")});
                if writeln!(questions, "{question}").is_err() {
                    extension.deny_all()?;
                }
                continue;
            }
            _ => continue,
        };
        locked(&extension).write(&answer)?;
    }
    Ok(())
}

fn locked<W>(extension: &Mutex<Extension<W>>) -> std::sync::MutexGuard<'_, Extension<W>> {
    extension.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, Instant};

    use store::SessionId;
    use tokio::sync::{mpsc, watch};

    use super::{Gate, listen};
    use crate::bus::LeaseState;

    #[tokio::test]
    async fn socket_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("gate.sock");
        std::fs::write(&socket, "what an earlier worker left").unwrap();
        let _listener = listen(&socket).unwrap();
        assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn call_waits_until_its_answer_is_stored() {
        let (gate, id) = (Gate::default(), SessionId::new("s").unwrap());
        let until = Instant::now() + Duration::from_secs(60);
        assert!(!gate.stored(&id, until).await);
        let (_lease, state) = watch::channel(LeaseState::until(until));
        let (sender, mut requests) = mpsc::channel(1);
        gate.open(&id, state, sender);
        let mut stored = Box::pin(gate.stored(&id, until));
        let request = tokio::select! {
            _ = &mut stored => panic!("nothing is stored"),
            request = requests.recv() => request.unwrap(),
        };
        request.send(()).unwrap();
        assert!(stored.await);
        // The task of the session has ended.
        drop(requests);
        assert!(!gate.stored(&id, until).await);
    }
}
