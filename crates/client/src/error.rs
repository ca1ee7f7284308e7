//! Errors of the library: one enum. It can be cloned, because all pending calls get the same error when the agent ends.

use std::time::Duration;

use crate::outcome::Outcome;

/// What can go wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The agent could not be started, or ended before it answered.
    #[error("the agent did not start: {0}")]
    Start(String),
    /// The agent is gone.
    #[error("the agent ended{}{}", code.map_or(String::new(), |code| format!(" with code {code}")), tail(stderr))]
    Exited {
        /// Its exit code; none when a signal ended it, or it is not known yet.
        code: Option<i32>,
        /// The end of what it wrote to stderr.
        stderr: String,
    },
    /// The agent refused a command; nothing has changed.
    #[error("{command}: {message}")]
    Refused {
        /// The command.
        command: String,
        /// The agent's words; the known ones do not change between versions.
        message: String,
    },
    /// A time limit passed. The agent goes on; `abort` ends what it does.
    #[error("{what} for {} s", limit.as_secs_f64())]
    TimedOut {
        /// What did not happen.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The other side does not speak the protocol.
    #[error("not the protocol: {0}")]
    Protocol(String),
    /// Events came faster than they were taken, and the buffer is full.
    #[error("too many events are waiting to be taken")]
    Lagged,
    /// A run ended in an error or was aborted.
    #[error("{}", .0.why())]
    Failed(Box<Outcome>),
    /// The script of replies could not be written.
    #[error("cannot write the script: {0}")]
    Script(String),
}

/// Short for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns true if this agent does not know the command.
    #[must_use]
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Self::Refused { message, .. } if message.starts_with("Unknown command"))
    }

    pub(crate) fn timed_out(what: impl Into<String>, limit: Duration) -> Self {
        Self::TimedOut {
            what: what.into(),
            limit,
        }
    }
}

/// The last lines, each on a line of its own.
fn tail(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.trim().lines().collect();
    let first = lines.len().saturating_sub(3);
    lines
        .into_iter()
        .skip(first)
        .map(|line| format!("\n  {line}"))
        .collect()
}
