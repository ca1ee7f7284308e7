//! What can go wrong with a server, in sentences that a model or a person can use.

use std::error::Error;

use crate::text::line;

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// The server could not be started, reached or understood.
    #[error("{0}")]
    Connect(String),
    /// The server requires a login.
    #[error("It wants a login: pinion mcp login {0}")]
    Login(String),
    /// There is no connection.
    #[error("MCP server {server} is not connected: {why}")]
    NotConnected {
        /// Its name.
        server: String,
        /// Why not.
        why: String,
    },
    /// The server refused the request.
    #[error("{0}")]
    Refused(String),
    /// It did not answer in time.
    #[error("MCP server {server} did not answer within {seconds} s")]
    TimedOut {
        /// Its name.
        server: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The call was cancelled.
    #[error("Operation aborted")]
    Cancelled,
    /// The file with logins cannot be used.
    #[error("{0}")]
    Store(String),
}

impl McpError {
    /// Something that went wrong on the way, as far as it is fit to be shown.
    pub(crate) fn connect(error: impl ToString) -> Self {
        Self::Connect(line(&error.to_string(), crate::limits::ERROR))
    }
}

/// The text of an error, with those of its causes that say more.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}
