//! How an agent program is started. Starting it is `agent`'s work.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::{KEPT_OUTPUT, MAX_LINE, WRITE_TIMEOUT};

/// The program, its arguments and its surroundings.
///
/// The environment contains only `PATH` (that of the test, unless [`Self::env`] sets another), the variables set here,
/// and a mark by which its descendants can be found again (see [`Self::mark`]).
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The program; looked up in `PATH` unless it has a slash.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables.
    pub env: BTreeMap<OsString, OsString>,
    /// Working directory; that of the test if none is given.
    pub cwd: Option<PathBuf>,
    /// Puts a variable of unique value into the environment, so that descendants are found even after they left the
    /// process group, and are killed when the agent is dropped. On by default; works on Linux only.
    pub mark: bool,
    /// Output bytes that are kept; the oldest lines are forgotten beyond that.
    pub kept_output: usize,
    /// Longest output line, bytes; longer ones are kept as `{"$overlong": bytes}`.
    pub max_line: usize,
    /// Time a write to stdin may take.
    pub write_timeout: Duration,
    /// Starts without reading stdout, for tests of slow readers; see [`super::Agent::resume_stdout`].
    pub paused: bool,
}

impl AgentConfig {
    /// A program without arguments.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            mark: true,
            kept_output: KEPT_OUTPUT,
            max_line: MAX_LINE,
            write_timeout: WRITE_TIMEOUT,
            paused: false,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Leaves the mark out of the environment.
    #[must_use]
    pub fn unmarked(mut self) -> Self {
        self.mark = false;
        self
    }

    /// Starts without reading stdout.
    #[must_use]
    pub fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// Bounds the output kept, bytes.
    #[must_use]
    pub fn keep(mut self, bytes: usize) -> Self {
        self.kept_output = bytes;
        self
    }

    /// Bounds the time of a write to stdin.
    #[must_use]
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout;
        self
    }
}
