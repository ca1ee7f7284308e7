//! The crate's one error type.

/// Why there is no answer from an extension process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// It could not be started.
    #[error("The extension process could not be started: {0}")]
    Start(String),
    /// It did not say that it is there, or speaks another version.
    #[error("The extension process did not get ready: {0}")]
    NotReady(String),
    /// It ended, was ended, or broke the protocol.
    #[error("The extension process is gone: {0}")]
    Gone(String),
    /// It answered that it could not do it.
    #[error("{0}")]
    Failed(String),
    /// What it was to be sent does not fit into a line.
    #[error(
        "The line to the extension process would have {size} bytes; the limit is {limit}",
        limit = crate::limits::MAX_LINE
    )]
    TooLong {
        /// Bytes of the line.
        size: usize,
    },
    /// Its answer has the wrong type.
    #[error("The extension process sent an invalid answer: {0}")]
    Odd(String),
}
