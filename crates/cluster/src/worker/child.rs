//! The agent of a worker: one process `pinion --mode rpc` that has all sessions of the worker. Its lines go to the sessions that they
//! name. What the lines mean to a session lives in `session`.

use std::collections::HashMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use store::SessionId;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot, watch};

use super::agent_line::AgentLine;
use crate::limits::{AGENT_HANDLE, CLOSE_PAUSE, CLOSE_WAIT, SESSION_QUEUE, STUCK_WAIT};

/// A JSON object: a command, or an event of the stream.
pub(crate) type Line = Map<String, Value>;

/// The agent answered a command of the worker with an error. Another agent would answer the same.
#[derive(Debug)]
pub(crate) struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// The name of a session in the agent, and of its file: its id, or a hash of an id that the agent does not take as a handle.
pub(crate) fn handle(session: &SessionId) -> SessionId {
    if session.as_str().len() <= AGENT_HANDLE {
        return session.clone();
    }
    let digest = Sha256::digest(session.as_str());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    SessionId::new(hex).unwrap_or_else(|_| session.clone())
}

/// How to start the agent.
#[derive(Debug, Clone)]
pub(crate) struct AgentCommand {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: PathBuf,
}

/// The running agent. Dropping it kills the process.
pub(crate) struct Agent {
    /// The input of the process, and a line whose end is not written if its sender gave up.
    stdin: AsyncMutex<(ChildStdin, Cursor<Vec<u8>>)>,
    routes: Arc<Routes>,
    ids: AtomicU64,
    ended: watch::Receiver<bool>,
    process: AsyncMutex<Child>,
}

#[derive(Default)]
struct Routes {
    sessions: Mutex<HashMap<String, mpsc::Sender<AgentLine>>>,
    requests: Mutex<HashMap<String, oneshot::Sender<AgentLine>>>,
}

impl Agent {
    /// Starts the process.
    pub(crate) fn start(command: &AgentCommand) -> Result<Self> {
        let mut child = Command::new(&command.program)
            .args(&command.args)
            .current_dir(&command.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", command.program.display()))?;
        let stdin = child.stdin.take().context("the agent has no stdin")?;
        let stdout = child.stdout.take().context("the agent has no stdout")?;
        let routes = Arc::new(Routes::default());
        let (sender, ended) = watch::channel(false);
        let reader = Arc::clone(&routes);
        tokio::spawn(async move {
            reader.read(stdout).await;
            // Before the routes end: tasks that wait for a line ask then whether the agent has ended.
            sender.send_replace(true);
            reader.end();
        });
        Ok(Self {
            stdin: AsyncMutex::new((stdin, Cursor::default())),
            routes,
            ids: AtomicU64::new(0),
            ended,
            process: AsyncMutex::new(child),
        })
    }

    /// Waits until the process has closed its output.
    pub(crate) async fn ended(&self) {
        drop(self.ended.clone().wait_for(|ended| *ended).await);
    }

    /// Returns true once the process has closed its output.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Kills the process with all its sessions.
    pub(crate) async fn kill(&self) {
        drop(self.process.lock().await.kill().await);
    }

    /// Lines with this session go to the returned queue from now on.
    pub(crate) fn route(&self, session: &str) -> mpsc::Receiver<AgentLine> {
        let (sender, receiver) = mpsc::channel(SESSION_QUEUE);
        lock(&self.routes.sessions).insert(session.to_owned(), sender);
        receiver
    }

    /// Lines with this session are dropped from now on.
    pub(crate) fn unroute(&self, session: &str) {
        lock(&self.routes.sessions).remove(session);
    }

    /// An id that no other command of this process has. It names the session, since responses to unknown commands do not.
    pub(crate) fn id(&self, session: &str) -> String {
        format!("w{}:{session}", self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a line to the agent.
    pub(crate) async fn send(&self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut stdin = self.stdin.lock().await;
        let (pipe, unwritten) = &mut *stdin;
        let written = async {
            // This line must not follow half a line of a sender that gave up.
            pipe.write_all_buf(unwritten).await?;
            *unwritten = Cursor::new(text);
            pipe.write_all_buf(unwritten).await
        };
        written.await.context("the agent does not read")
    }

    /// Sends a command of the worker itself and waits for its response.
    ///
    /// # Errors
    /// [`Refused`] if the response is an error; others if no response arrives.
    pub(crate) async fn request(&self, mut command: Line, wait: Duration) -> Result<()> {
        let id = self.id("");
        command.insert("id".to_owned(), json!(id));
        let (sender, receiver) = oneshot::channel();
        lock(&self.routes.requests).insert(id.clone(), sender);
        let response = async {
            self.send(&command).await?;
            receiver.await.context("the agent ended")
        };
        let response = tokio::time::timeout(wait, response).await;
        lock(&self.routes.requests).remove(&id);
        let response = response.context("the agent did not answer in time")??;
        if response.get("success") != Some(true) {
            let error = response.get("error");
            return Err(Refused(error.unwrap_or_else(|| "the agent refused a command".to_owned())).into());
        }
        Ok(())
    }

    /// Closes a session. Returns true once the agent does not have it, also because the agent has ended. `wait` is the limit for each
    /// response.
    pub(crate) async fn close(&self, session: &str, wait: Duration) -> bool {
        let error = match self.command("close_session", session, wait).await {
            // It does not have the session, or keeps it because entries could not be written to its file.
            Err(error) if error.is::<Refused>() => self.command("get_state", session, wait).await.err(),
            Err(error) => Some(error),
            Ok(()) => return true,
        };
        error.is_some_and(|error| error.is::<Refused>()) || self.has_ended()
    }

    /// Ends the run of a session that the agent did not close, and tries again until the agent does not have the session: a full disk may
    /// have room later.
    pub(crate) async fn close_at_last(&self, session: &str) {
        // The run has no clients any more. If it does not end, the gate denies its calls.
        drop(self.command("abort", session, CLOSE_WAIT).await);
        while !self.close(session, STUCK_WAIT).await {
            tokio::time::sleep(CLOSE_PAUSE).await;
        }
    }

    /// Sends a command without members.
    async fn command(&self, kind: &str, session: &str, wait: Duration) -> Result<()> {
        let mut line = Line::new();
        line.insert("type".to_owned(), json!(kind));
        line.insert("session".to_owned(), json!(session));
        self.request(line, wait).await
    }
}

impl Routes {
    async fn read(&self, stdout: ChildStdout) {
        let mut lines = BufReader::with_capacity(64 << 10, stdout);
        let mut text = Vec::new();
        loop {
            text.clear();
            match lines.read_until(b'\n', &mut text).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            if let Some(line) = AgentLine::parse(&text) {
                self.pass_on(line).await;
            }
        }
    }

    /// Lets waiting requests fail and ends the queues of all sessions.
    fn end(&self) {
        lock(&self.requests).clear();
        lock(&self.sessions).clear();
    }

    async fn pass_on(&self, line: AgentLine) {
        let mut session: Option<String> = line.get("session");
        if line.kind() == "response" {
            let id: String = line.get("id").unwrap_or_default();
            session = session.or_else(|| id.split_once(':').map(|(_, session)| session.to_owned()));
            let waiting = lock(&self.requests).remove(&id);
            if let Some(waiting) = waiting {
                drop(waiting.send(line));
                return;
            }
        }
        let route = lock(&self.sessions)
            .get(session.as_deref().unwrap_or_default())
            .cloned();
        if let Some(route) = route {
            // Fails when the session's task has ended.
            drop(route.send(line).await);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};
    use std::task::{Context, Wake, Waker};
    use std::time::Duration;

    use store::SessionId;
    use tokio::sync::watch;

    use super::{AGENT_HANDLE, Agent, AgentCommand, CLOSE_WAIT, Line, Ordering, handle};

    /// Notes at its first wake-up whether the agent had ended.
    struct Woken {
        ended: watch::Receiver<bool>,
        saw: OnceLock<bool>,
    }

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.saw.get_or_init(|| *self.ended.borrow());
        }
    }

    /// An agent that is a shell script.
    fn script(text: String) -> Agent {
        let command = AgentCommand {
            program: "sh".into(),
            args: vec!["-c".to_owned(), text],
            cwd: std::env::temp_dir(),
        };
        Agent::start(&command).unwrap()
    }

    #[tokio::test]
    async fn response_of_any_depth_reaches_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("response");
        let tree = format!("{}1{}", "[".repeat(1_000), "]".repeat(1_000));
        // Without `session`, as responses to unknown commands are.
        let text = format!(r#"{{"id":"w7:s","type":"response","success":true,"data":{tree}}}"#);
        std::fs::write(&path, format!("{text}\n")).unwrap();
        let agent = script(format!("read -r line; cat '{}'; cat", path.display()));
        let mut lines = agent.route("s");
        agent.send(&Line::new()).await.unwrap();
        assert_eq!(lines.recv().await.unwrap().text().unwrap(), text);
    }

    #[tokio::test]
    async fn agent_has_ended_when_its_sessions_wake() {
        let command = AgentCommand {
            program: "cat".into(),
            args: Vec::new(),
            cwd: std::env::temp_dir(),
        };
        let agent = Agent::start(&command).unwrap();
        let mut lines = agent.route("s");
        let woken = Arc::new(Woken {
            ended: agent.ended.clone(),
            saw: OnceLock::new(),
        });
        let waker = Waker::from(Arc::clone(&woken));
        assert!(lines.poll_recv(&mut Context::from_waker(&waker)).is_pending());
        agent.kill().await;
        agent.ended().await;
        assert!(lines.recv().await.is_none());
        assert_eq!(woken.saw.get(), Some(&true));
    }

    /// An agent that refuses commands with this text, and answers all others. `each` runs before each answer.
    fn agent_refusing(text: &str, each: &str) -> Agent {
        script(format!(
            r#"while read -r line; do id=${{line##*'"id":"'}}; id=${{id%%'"'*}}; case $line in *{text}*) done=false;; *) done=true;; esac
            {each}
            printf '{{"type":"response","id":"%s","success":%s}}\n' "$id" "$done"; done"#
        ))
    }

    #[tokio::test]
    async fn session_that_agent_keeps_is_not_closed() {
        // It cannot write entries of the session.
        assert!(!agent_refusing("close_session", "").close("s", CLOSE_WAIT).await);
        // It has no session of this name.
        assert!(agent_refusing("session", "").close("s", CLOSE_WAIT).await);
        assert!(agent_refusing("nothing", "").close("s", CLOSE_WAIT).await);
    }

    #[tokio::test]
    async fn session_is_closed_once_agent_can_write() {
        // It can write the entries when it is asked for the second time.
        let each = r#"case $line in *close_session*) tries=x$tries; [ "$tries" = x ] || done=true;; esac"#;
        let agent = agent_refusing("close_session", each);
        assert!(!agent.close("s", CLOSE_WAIT).await);
        let closed = tokio::time::timeout(Duration::from_secs(60), agent.close_at_last("s"));
        closed.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_session_gets_few_commands() {
        // It answers nothing.
        let agent = script("cat >/dev/null".to_owned());
        let closed = tokio::time::timeout(Duration::from_secs(24 * 60 * 60), agent.close_at_last("s"));
        assert!(closed.await.is_err());
        let commands = agent.ids.load(Ordering::Relaxed);
        assert!((2..200).contains(&commands), "{commands}");
    }

    #[tokio::test]
    async fn line_of_sender_that_gave_up_is_completed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reads");
        let agent = script(format!(
            "while [ ! -e '{}' ]; do sleep 0.01; done; cat",
            path.display()
        ));
        let mut lines = agent.route("s");
        let line = |text: String| {
            let mut line = Line::new();
            line.insert("session".to_owned(), "s".into());
            line.insert("text".to_owned(), text.into());
            line
        };
        // More than a pipe holds.
        let lengths = [1 << 20, 1];
        let (long, short) = (line("x".repeat(lengths[0])), line("x".repeat(lengths[1])));
        let sent = tokio::time::timeout(Duration::from_millis(100), agent.send(&long)).await;
        assert!(sent.is_err());
        std::fs::write(&path, "").unwrap();
        agent.send(&short).await.unwrap();
        for length in lengths {
            let line = tokio::time::timeout(Duration::from_secs(30), lines.recv()).await;
            let text: String = line.unwrap().unwrap().get("text").unwrap();
            assert_eq!(text.len(), length);
        }
    }

    #[test]
    fn long_ids_have_handles_and_file_names() {
        let short = SessionId::new("chat/7").unwrap();
        assert_eq!(handle(&short), short);
        let handles = ["ä", "ö"].map(|letter| handle(&SessionId::new(letter.repeat(64)).unwrap()));
        assert_ne!(handles[0], handles[1]);
        for handle in handles {
            assert!(handle.as_str().len() <= AGENT_HANDLE);
            assert!(format!("{}.checkpoints", handle.encoded()).len() < 256);
        }
    }
}
