//! The errors of this crate. Errors that clients see are `wire::Response`s and made in `parse`.

use std::io;

/// Why stdio had to be closed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The other side closed the stream that is written to; nothing can be sent any more.
    #[error("the output was closed: {0}")]
    OutputClosed(#[source] io::Error),
    /// Writing failed for another reason.
    #[error("writing the output failed: {0}")]
    Output(#[source] io::Error),
    /// The other side did not read what was left within the time given for a shutdown.
    #[error("the output was not read within {0:?}")]
    OutputStuck(std::time::Duration),
    /// The writer is gone, so nothing can be sent.
    #[error("the output is closed")]
    Closed,
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
