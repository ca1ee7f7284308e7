//! Why a command line cannot be carried out. The caller prints it as `Error: ...` and exits with [`UsageError::exit_code`].

use std::borrow::Cow;
use std::path::PathBuf;

/// A mistake in the arguments, or in a file they name.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum UsageError {
    /// An option that neither this program nor a loaded extension has.
    #[error("Unknown option: {option}.{} {help}", suggestion(.nearest.as_deref()))]
    UnknownOption {
        /// As it was typed, without its value.
        option: String,
        /// The option that may be meant.
        nearest: Option<String>,
        /// Where the options are listed, and what to do if an extension should know it.
        help: Cow<'static, str>,
    },
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
    /// `--tools` or `--exclude-tools` with a name that no tool has.
    #[error("Unknown tool \"{name}\" in {flag}.{} Tools: {known}", suggestion(.nearest.as_deref()))]
    UnknownTool {
        /// As it was typed.
        name: String,
        /// The option's name.
        flag: &'static str,
        /// The tool that may be meant.
        nearest: Option<String>,
        /// All tools there are.
        known: String,
    },
    /// Two options that contradict each other.
    #[error("{0} cannot be combined with {1}")]
    Conflict(&'static str, String),
    /// Words after a command that takes options only.
    #[error(
        "{command} takes options only, not \"{word}\". To send it to the model: pinion -- {command} {word}"
    )]
    UnwantedWord {
        /// The command.
        command: &'static str,
        /// The first such word.
        word: String,
    },
    /// A word that is almost a command.
    #[error(
        "\"{word}\" is not a command. Did you mean: pinion {meant}? To send it to the model: pinion -p {word}"
    )]
    AlmostCommand {
        /// As it was typed.
        word: String,
        /// The command or option.
        meant: &'static str,
    },
    /// A command that pi has and Pinion does not.
    #[error(
        "The command \"{program} {word}\" does not exist. {instead} To send it to the model: {program} -p {word}"
    )]
    CommandOfPi {
        /// The name that the program was started under.
        program: String,
        /// The command.
        word: &'static str,
        /// What to do in its place.
        instead: &'static str,
    },
    /// `help` with a word that is no command.
    #[error("No help for \"{word}\": it is not a command. Commands: {commands}")]
    NoHelp {
        /// As it was typed.
        word: String,
        /// All commands.
        commands: String,
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

impl UsageError {
    /// The exit code of the process: 2 for a wrong command line, and 1 where pi has 1 and clients know it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Conflict(..) | Self::FilesInRpc | Self::FileNotFound(_) | Self::FileUnreadable { .. } => {
                crate::exit::FAILURE
            }
            _ => crate::exit::USAGE,
        }
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest
        .map(|name| format!(" Did you mean {name}?"))
        .unwrap_or_default()
}
