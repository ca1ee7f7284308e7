//! Why the web server cannot start. Errors that clients see are HTTP statuses, close codes and `wire::Response`s.

use std::io;

/// Why the web server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot listen there, must not without a token, or page or certificate cannot be read; the text says which.
    #[error("{0}")]
    Setup(String),
    /// Its thread could not be started.
    #[error("could not start a thread: {0}")]
    Thread(#[source] io::Error),
}
