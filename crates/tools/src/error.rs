//! The errors of this crate. Texts that the model sees are made by the tools themselves; these are for what lies beneath.

use std::path::PathBuf;

/// What can go wrong below the tools.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
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
    /// `shellPath` names a file that does not exist.
    #[error("Custom shell path not found: {}", .0.display())]
    ShellMissing(PathBuf),
    /// The working directory is gone.
    #[error("Working directory does not exist: {}\nNo command can run there.", .0.display())]
    CwdMissing(PathBuf),
    /// There is no sandbox to be had.
    #[error("{0}")]
    Sandbox(String),
    /// The pipe of a command failed.
    #[error("Cannot read the output of the command: {0}")]
    Pipe(#[source] std::io::Error),
    /// A frame on the guardian's socket was too large or malformed.
    #[error("Malformed message on the guardian's socket")]
    Frame,
}
