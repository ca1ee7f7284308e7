//! The errors of this crate. Texts that the model sees are made by the tools themselves; these are for what lies beneath.

use std::path::PathBuf;

use process::ChildError;

/// What can go wrong below the tools.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// A child process could not be started, killed or read.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// `shellPath` names a file that does not exist.
    #[error("Custom shell path not found: {}", .0.display())]
    ShellMissing(PathBuf),
    /// The working directory is gone.
    #[error("Working directory does not exist: {}\nCannot execute bash commands.", .0.display())]
    CwdMissing(PathBuf),
    /// There is no sandbox to be had.
    #[error("{0}")]
    Sandbox(String),
}
