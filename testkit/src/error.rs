//! The one error type of this crate. It does not hold provider error bodies (see `llm::errors`): those are
//! what a scripted server *sends*, not what the kit itself can fail with.

use std::process::ExitStatus;
use std::time::Duration;

/// What can go wrong while a test is being driven.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operating system call failed; `what` says which step it belonged to.
    #[error("{what}: {source}")]
    Io {
        /// The step that failed, for example "bind".
        what: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// JSON could not be written or read.
    #[error("json: {0}")]
    Json(#[from] serde_json::Error),
    /// Nothing that fits arrived in time.
    #[error("no {what} within {after:?}{context}")]
    Timeout {
        /// The awaited line or state.
        what: String,
        /// The time that was allowed.
        after: Duration,
        /// The last output lines and the end of stderr, for the reader of a failed test.
        context: String,
    },
    /// The agent closed its output (usually by exiting) before the awaited line arrived.
    #[error("the agent's output ended before {what} (exit: {status:?}){context}")]
    Ended {
        /// The awaited line or state.
        what: String,
        /// How the process ended, if it has been collected already.
        status: Option<ExitStatus>,
        /// The last output lines and the end of stderr.
        context: String,
    },
    /// The agent did not read its input in time; `written` bytes of the line went through.
    #[error("the agent's stdin took only {written} bytes within {after:?}")]
    StdinBlocked {
        /// Bytes that were accepted before the time was over.
        written: usize,
        /// The time that was allowed.
        after: Duration,
    },
    /// The input pipe is closed, by `close_stdin` or by the agent.
    #[error("the agent's stdin is closed")]
    StdinClosed,
    /// A step of a script is not understood or not possible here.
    #[error("step {index}: {problem}")]
    Step {
        /// Position of the step, counted from 0.
        index: usize,
        /// The error in it.
        problem: String,
    },
    /// The process has ended and cannot be signalled.
    #[error("the agent has already exited")]
    Exited,
}

impl Error {
    /// Turns an `io::Error` into [`Error::Io`], for use with `map_err`.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }

    /// Wraps errors of the system call crate.
    pub(crate) fn os(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |e| Self::Io {
            what,
            source: e.into(),
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
