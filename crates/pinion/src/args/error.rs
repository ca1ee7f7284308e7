//! Why a command line cannot be carried out. Printed by the caller as `Error: ...`; the exit status is 1.

use std::borrow::Cow;
use std::path::PathBuf;

/// A mistake in the arguments, or in a file they name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    /// A short option nobody knows (pi-core.md 7.1). Unknown long ones are kept for extensions.
    #[error("Unknown option: {0}")]
    UnknownOption(String),
    /// An option that needs a value stands last.
    #[error("Option {flag} needs a value: {flag} {value}")]
    MissingValue {
        /// As it was typed.
        flag: String,
        /// What the value stands for.
        value: &'static str,
    },
    /// `--switch=value` for an option that takes none.
    #[error("Option {0} takes no value")]
    UnwantedValue(String),
    /// A value outside of what the option allows.
    #[error("Invalid value \"{value}\" for {flag}: {wanted}")]
    InvalidValue {
        /// The option's name.
        flag: &'static str,
        /// As it was typed.
        value: String,
        /// What would be right.
        wanted: Cow<'static, str>,
    },
    /// Two options that contradict each other.
    #[error("{0} cannot be combined with {1}")]
    Conflict(&'static str, String),
    /// Words after a command that takes options only.
    #[error(
        "{command} takes options only, not \"{word}\". To say it to the model: pinion -- {command} {word}"
    )]
    UnwantedWord {
        /// The command.
        command: &'static str,
        /// The first such word.
        word: String,
    },
    /// `@file` in RPC mode (golden cli-file-arg).
    #[error("@file arguments are not supported in RPC mode")]
    FilesInRpc,
    /// An `@file` that is not there.
    #[error("File not found: {}", .0.display())]
    FileNotFound(PathBuf),
    /// An `@file` that is there but cannot be used.
    #[error("Could not read file {}: {reason}", path.display())]
    FileUnreadable {
        /// Absolute.
        path: PathBuf,
        /// What stands in the way.
        reason: String,
    },
}
