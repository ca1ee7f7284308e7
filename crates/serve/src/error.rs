//! The errors of this crate. Errors that clients see are `wire::Response`s and made in `parse`.

use std::io;

/// Failures of stdio.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The other side closed the output stream; no line can reach it.
    #[error("the output was closed: {0}")]
    OutputClosed(#[source] io::Error),
    /// Writing failed for another reason.
    #[error("writing the output failed: {0}")]
    Output(#[source] io::Error),
    /// The other side did not read the remaining output within the time limit of a shutdown.
    #[error("the output was not read within {0:?}")]
    OutputStuck(std::time::Duration),
    /// The writer is gone, so nothing can be sent.
    #[error("the output is closed")]
    Closed,
    /// The web server cannot start; the text contains the reason.
    /// A thread could not be started.
    #[error("could not start a thread: {0}")]
    Thread(#[source] io::Error),
}

impl Error {
    /// Sorts an error of a write.
    pub(crate) fn from_write(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Self::OutputClosed(error),
            _ => Self::Output(error),
        }
    }
}
