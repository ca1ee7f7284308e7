//! The agent as a child process: its start, its stderr and its end in bounded time.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::{Duration, timeout};

use crate::error::{Error, Result};
use crate::limits::{LAST_WORDS, STDERR_TAIL};
use crate::options::Options;

/// How the agent is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Live,
    Terminate,
    Kill,
}

/// A running agent. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    wish: watch::Sender<Wish>,
    seen: Seen,
}

/// The observed end of the process.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The exit code (none for a signal), once it has ended.
    ended: watch::Receiver<Option<Option<i32>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Closed when stderr is.
    stderr_open: watch::Receiver<()>,
}

impl Process {
    /// Starts a program.
    pub(crate) fn start(
        options: &Options,
        more: &[std::ffi::OsString],
    ) -> Result<(Self, ChildStdin, ChildStdout)> {
        let program = options.program.display();
        let mut command = Command::new(&options.program);
        command
            .args(&options.args)
            .args(more)
            .envs(options.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(cwd) = &options.cwd {
            command.current_dir(cwd);
        }
        let mut child = command
            .spawn()
            .map_err(|error| Error::Start(format!("cannot start {program}: {error}")))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Error::Start(format!("{program} has no pipes")));
        };
        let (wish, wished) = watch::channel(Wish::Live);
        let (tell, ended) = watch::channel(None);
        let (open, stderr_open) = watch::channel(());
        let kept = Arc::default();
        tokio::spawn(supervise(child, wished, tell));
        tokio::spawn(collect(stderr, Arc::clone(&kept), open));
        let seen = Seen {
            ended,
            stderr: kept,
            stderr_open,
        };
        Ok((Self { wish, seen }, stdin, stdout))
    }

    /// Returns the observed end of the process.
    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Waits for the end, stdin being closed; helps with SIGTERM and SIGKILL when it takes longer than `limit` each.
    pub(crate) async fn stop(&mut self, limit: Duration) {
        for wish in [Wish::Live, Wish::Terminate, Wish::Kill] {
            self.wish.send_replace(wish);
            let done = timeout(limit, self.seen.ended.wait_for(Option::is_some)).await;
            if done.is_ok() {
                return;
            }
        }
    }
}

impl Seen {
    /// The exit code (none for a signal), once it has ended.
    pub(crate) fn code(&self) -> Option<Option<i32>> {
        *self.ended.borrow()
    }

    /// The end of what it wrote to stderr.
    pub(crate) fn stderr(&self) -> String {
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }

    /// The error that says how it ended, which takes a moment to arrive.
    pub(crate) async fn error(mut self) -> Error {
        let both = async {
            // What it gives borrows the channel, which must not last over the next wait.
            drop(self.ended.wait_for(Option::is_some).await);
            while self.stderr_open.changed().await.is_ok() {}
        };
        let _grandchildren_hold_it_open = timeout(LAST_WORDS, both).await;
        Error::Exited {
            code: self.code().flatten(),
            stderr: self.stderr(),
        }
    }
}

async fn supervise(
    mut child: Child,
    mut wished: watch::Receiver<Wish>,
    tell: watch::Sender<Option<Option<i32>>>,
) {
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            changed = wished.changed() => {
                let wish = *wished.borrow();
                if changed.is_err() || wish == Wish::Kill {
                    let _ended_already = child.start_kill();
                    break child.wait().await;
                }
                if wish == Wish::Terminate {
                    terminate(&mut child);
                }
            }
        }
    };
    tell.send_replace(Some(status.ok().and_then(|status| status.code())));
}

#[cfg(unix)]
fn terminate(child: &mut Child) {
    let id = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        let _ended_already = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
}

#[cfg(not(unix))]
fn terminate(child: &mut Child) {
    let _ended_already = child.start_kill();
}

async fn collect(mut stderr: ChildStderr, kept: Arc<Mutex<Vec<u8>>>, _open: watch::Sender<()>) {
    let mut chunk = Vec::with_capacity(4096);
    while let Ok(1..) = stderr.read_buf(&mut chunk).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.append(&mut chunk);
        let surplus = kept.len().saturating_sub(STDERR_TAIL);
        kept.drain(..surplus);
    }
}
