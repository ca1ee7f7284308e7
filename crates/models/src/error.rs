//! What can go wrong in the registry, worded for the person who reads it.

use thiserror::Error;

/// A failed choice, key or value. Clients match on some of these texts: they are part of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RegistryError {
    /// `--provider` names an unknown provider (pi-core.md 8.6).
    #[error("Unknown provider \"{0}\". Use --list-models to see available providers/models.")]
    UnknownProvider(String),
    /// `--model` matches nothing (pi-core.md 8.6).
    #[error("Model \"{model}\" not found. Use --list-models to see available models.{}", advice(.nearest))]
    ModelNotFound {
        /// As it was asked for.
        model: String,
        /// The most similar models, as `provider/id`.
        nearest: Vec<String>,
    },
    /// A list of models that no catalogue can be made of.
    #[error("{0}")]
    Snapshot(String),
    /// A local server was chosen and nothing answers there.
    #[error("No {server} server answers at {url}.\n\n{help}")]
    NoServer {
        /// The kind of server, for the user.
        server: String,
        /// Where.
        url: String,
        /// What to do about it.
        help: String,
    },
    /// A local server is there and does not have the model.
    #[error("Model \"{model}\" is not at the {server} server at {url}, which has {models}.")]
    NotServed {
        /// As it was asked for.
        model: String,
        /// What it was asked of, for people.
        server: String,
        /// Where.
        url: String,
        /// What it does have.
        models: String,
    },
    /// No credential for a provider; `help` says where one could be put (behaviour.md 1).
    #[error("No API key found for {provider}.\n\n{help}")]
    NoKey {
        /// Provider id.
        provider: String,
        /// Own words: variables and files that would help.
        help: String,
    },
    /// An OAuth token ran out and has not been renewed yet.
    #[error("Authentication failed for \"{0}\": the stored token has expired. Log in again.")]
    Expired(String),
    /// A `!command` value gave nothing (pi-core.md 8.3).
    #[error("Failed to resolve {what} from shell command: {command}")]
    Command {
        /// What the value is for.
        what: String,
        /// The command, without the exclamation mark.
        command: String,
    },
    /// A `$NAME` value names a variable that is not set (pi-1.5-delta.md 6).
    #[error("Failed to resolve {what} from environment variable: {name}")]
    Variable {
        /// What the value is for.
        what: String,
        /// The variable.
        name: String,
    },
    /// A `{NAME}` placeholder of a base URL has no value (providers.md 1).
    #[error("{name} is required for provider {provider} but is not set.")]
    Placeholder {
        /// The variable.
        name: String,
        /// Provider id.
        provider: String,
    },
}

fn advice(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        nearest => format!(" Nearest models: {}", nearest.join(", ")),
    }
}

/// Returns true for the message of an error that a login or a key would solve.
#[must_use]
pub fn needs_credentials(message: &str) -> bool {
    // Parts of the messages of `NoKey` and `Expired`, which a test compares.
    ["No API key found for ", "Authentication failed for "]
        .iter()
        .any(|start| message.starts_with(start))
}
