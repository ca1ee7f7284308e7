//! Errors of child processes.

/// Why a child process could not be started, killed or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// The guardian process could not be started, or its socket failed.
    #[error("The process guardian is not available: {0}")]
    Guardian(#[source] std::io::Error),
    /// The guardian went away while a command ran; the command was killed.
    #[error("The process guardian ended unexpectedly; the command was stopped")]
    GuardianLost,
    /// A command could not be started.
    #[error("Failed to start {program}: {source}")]
    Spawn {
        /// The program that was to be started.
        program: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Starting, killing or ending took longer than its limit.
    #[error("The process guardian did not answer in time")]
    Timeout,
    /// The pipe of a command failed.
    #[error("Cannot read the output of the command: {0}")]
    Pipe(#[source] std::io::Error),
    /// A frame on the guardian's socket was too large or malformed.
    #[error("Malformed message on the guardian's socket")]
    Frame,
}
