//! A running agent program: starting it, writing to it, waiting for it, ending it. Its output is kept in `output`.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use serde_json::Value;

use super::config::AgentConfig;
use super::output::{Line, Missed, Output};
use super::process::{self, MARK, Signal};
use crate::error::{Error, Result};
use crate::limits::{EXIT_GRACE, POLL, REAP_GRACE};

/// A running agent. Dropping it kills the program, its process group and every descendant that
/// still carries the mark, and waits for them to be gone.
///
/// All methods take `&self`, so that several threads of a test can share it.
#[derive(Debug)]
pub struct Agent {
    child: Mutex<Child>,
    pid: u32,
    mark: String,
    stdin: Mutex<Option<ChildStdin>>,
    output: Arc<Output>,
    write_timeout: Duration,
}

impl Agent {
    /// Starts the program in a process group of its own.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(config: AgentConfig) -> Result<Self> {
        let mark = format!(
            "{}-{:016x}",
            std::process::id(),
            RandomState::new().build_hasher().finish()
        );
        let mut command = Command::new(&config.program);
        command.args(&config.args).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        if config.mark {
            command.env(MARK, &mark);
        }
        command.envs(&config.env).process_group(0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        process::reset_ignored_signals();
        let mut child = command.spawn().map_err(Error::io("start the agent"))?;
        let output = Arc::new(Output::new(config.max_line, config.kept_output, config.paused));
        if let Some(pipe) = child.stdout.take() {
            let output = Arc::clone(&output);
            thread::spawn(move || output.read_stdout(pipe));
        }
        if let Some(pipe) = child.stderr.take() {
            let output = Arc::clone(&output);
            thread::spawn(move || output.read_stderr(pipe));
        }
        let stdin = child.stdin.take();
        let pid = child.id();
        let agent = Self {
            child: Mutex::new(child),
            pid,
            mark,
            stdin: Mutex::new(stdin),
            output,
            write_timeout: config.write_timeout,
        };
        agent.make_stdin_bounded()?;
        Ok(agent)
    }

    /// A write must not hang on an agent that does not read, so the test's end of the pipe does not block.
    fn make_stdin_bounded(&self) -> Result<()> {
        let stdin = lock(&self.stdin);
        let Some(pipe) = stdin.as_ref() else { return Ok(()) };
        let flags = fcntl_getfl(pipe).map_err(Error::os("stdin"))?;
        fcntl_setfl(pipe, flags | OFlags::NONBLOCK).map_err(Error::os("stdin"))
    }

    /// Process id of the program.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The mark in the environment of its descendants, for [`super::processes_marked`].
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Living processes with the mark, the program itself included; usable after it has ended.
    #[must_use]
    pub fn processes(&self) -> std::collections::BTreeSet<u32> {
        process::processes_marked(&self.mark)
    }

    /// Writes a value and a line end.
    ///
    /// # Errors
    /// As [`Self::send_raw`].
    pub fn send(&self, value: &Value) -> Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.send_raw(&line)
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// [`Error::StdinBlocked`] if the agent does not read in time, [`Error::StdinClosed`] if it cannot any more.
    pub fn send_raw(&self, bytes: &[u8]) -> Result<()> {
        let stdin = lock(&self.stdin);
        let pipe = stdin.as_ref().ok_or(Error::StdinClosed)?;
        let end = Instant::now() + self.write_timeout;
        let mut left = bytes;
        while !left.is_empty() {
            match rustix::io::write(pipe, left) {
                Ok(n) => left = left.get(n..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let time = end.saturating_duration_since(Instant::now());
                    if time.is_zero() {
                        let written = bytes.len() - left.len();
                        return Err(Error::StdinBlocked {
                            written,
                            after: self.write_timeout,
                        });
                    }
                    let wait = Timespec::try_from(time.min(POLL * 10)).ok();
                    // The write is tried again for every result of poll.
                    let _ = poll(&mut [PollFd::new(pipe, PollFlags::OUT)], wait.as_ref());
                }
                Err(Errno::PIPE) => return Err(Error::StdinClosed),
                Err(e) => return Err(Error::os("write to stdin")(e)),
            }
        }
        Ok(())
    }

    /// Sends a command and waits for the response with its `id`.
    ///
    /// # Errors
    /// As [`Self::send`] and [`Self::response`].
    pub fn call(&self, command: &Value, timeout: Duration) -> Result<Value> {
        self.send(command)?;
        let id = command.get("id").and_then(Value::as_str).unwrap_or_default();
        self.response(id, timeout)
    }

    /// Waits for the next line that fits, from the place where the last wait ended, and moves that place behind it.
    ///
    /// # Errors
    /// [`Error::Timeout`], or [`Error::Ended`] if the output ended first.
    pub fn wait(&self, fits: impl FnMut(&Value) -> bool, timeout: Duration) -> Result<Value> {
        self.wait_for("a matching line", false, 1, timeout, fits)
    }

    /// Waits for the next line whose `type` is `kind`, as [`Self::wait`] does.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_type(&self, kind: &str, timeout: Duration) -> Result<Value> {
        let what = format!("line of type {kind:?}");
        self.wait_for(&what, false, 1, timeout, |v| {
            v.get("type").is_some_and(|t| t == kind)
        })
    }

    /// Waits for the response to the command with this `id`, wherever it stands; the place for [`Self::wait`] stays.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn response(&self, id: &str, timeout: Duration) -> Result<Value> {
        let found = self.output.wait_response(timeout, id);
        self.found(&format!("response {id:?}"), timeout, found)
    }

    /// The general form: `what` names it in the error, `from_start` looks at all lines kept and leaves the place, and
    /// the `count`th line that fits is taken.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_for(
        &self,
        what: &str,
        from_start: bool,
        count: u64,
        timeout: Duration,
        fits: impl FnMut(&Value) -> bool,
    ) -> Result<Value> {
        let found = self.output.wait(timeout, from_start, count, fits);
        self.found(what, timeout, found)
    }

    /// The value that waiting found, or the error that says why there is none.
    fn found(
        &self,
        what: &str,
        timeout: Duration,
        found: std::result::Result<Line, Missed>,
    ) -> Result<Value> {
        let (what, context) = match found {
            Ok(line) => return Ok(line.value.as_ref().clone()),
            Err(Missed::Ended) => (what.to_owned(), self.output.context()),
            Err(Missed::Late) => {
                let (what, context) = (what.to_owned(), self.output.context());
                return Err(Error::Timeout {
                    what,
                    after: timeout,
                    context,
                });
            }
        };
        // The pipe ends a moment before the process can be collected.
        let status = self.wait_exit(EXIT_GRACE).ok();
        Err(Error::Ended {
            what,
            status,
            context,
        })
    }

    /// Moves the place for [`Self::wait`] behind everything printed so far.
    pub fn skip(&self) {
        self.output.skip();
    }

    /// Waits until nothing was printed for `quiet`; false if that took longer than `timeout`.
    #[must_use]
    pub fn wait_quiet(&self, quiet: Duration, timeout: Duration) -> bool {
        self.output.wait_quiet(quiet, timeout)
    }

    /// All lines printed so far, as far as they are kept.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.output.lines()
    }

    /// Number of lines and of bytes read from stdout in all.
    #[must_use]
    pub fn totals(&self) -> (u64, u64) {
        self.output.totals()
    }

    /// True once stdout has been read to its end.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.output.ended()
    }

    /// The end of what it wrote to stderr.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.output.stderr()
    }

    /// True once stderr has been read to its end. Children that outlive the agent may keep it open.
    #[must_use]
    pub fn stderr_ended(&self) -> bool {
        self.output.stderr_ended()
    }

    /// Stops reading stdout (after at most one more piece), so that the pipe fills up.
    pub fn pause_stdout(&self) {
        self.output.set_paused(true);
    }

    /// Goes on reading stdout.
    pub fn resume_stdout(&self) {
        self.output.set_paused(false);
    }

    /// Closes stdin.
    pub fn close_stdin(&self) {
        lock(&self.stdin).take();
    }

    /// Sends a signal to the program itself, not to its children.
    ///
    /// # Errors
    /// [`Error::Exited`].
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let mut child = lock(&self.child);
        // After it was collected, the system may give its id to another process.
        if matches!(child.try_wait(), Ok(Some(_))) || !process::signal(self.pid, signal) {
            return Err(Error::Exited);
        }
        Ok(())
    }

    /// Kills the program itself with SIGKILL; its children stay, which is what a test of leftovers wants.
    ///
    /// # Errors
    /// [`Error::Exited`].
    pub fn kill9(&self) -> Result<()> {
        self.signal(Signal::KILL)
    }

    /// Waits for the program to end.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn wait_exit(&self, timeout: Duration) -> Result<ExitStatus> {
        let end = Instant::now() + timeout;
        loop {
            let ended = lock(&self.child)
                .try_wait()
                .map_err(Error::io("wait for the agent"))?;
            if let Some(status) = ended {
                return Ok(status);
            }
            if Instant::now() >= end {
                let (what, context) = ("exit of the agent".to_owned(), self.output.context());
                return Err(Error::Timeout {
                    what,
                    after: timeout,
                    context,
                });
            }
            thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        lock(&self.stdin).take();
        // Until the program is collected its id stays taken, and with it that of the group.
        let running = matches!(lock(&self.child).try_wait(), Ok(None));
        if running {
            process::kill_group(self.pid);
            // Should it have moved to another group.
            process::signal(self.pid, Signal::KILL);
            let _ = self.wait_exit(REAP_GRACE);
        }
        process::kill_marked(&self.mark);
        self.output.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
