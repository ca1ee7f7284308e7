//! What can go wrong before a request is under way. Failures of a provider are not here: they end a stream as
//! [`crate::ModelEvent::Error`] with the text the provider's own SDK would show.

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LlmError {
    /// The model names an API family that is not built in.
    #[error("Unsupported API: {0}")]
    UnknownApi(String),
    /// A value that the base URL needs is not known (providers.md 1).
    #[error("{name} is required for provider {provider} but is not set.")]
    Placeholder {
        /// The environment variable it comes from.
        name: String,
        /// The provider.
        provider: String,
    },
    /// A header cannot be sent; its value is not shown, it may be a key.
    #[error("Invalid value of request header {0}")]
    Header(String),
    /// A proxy address cannot be used; only its scheme is shown, it may hold a password.
    #[error("Invalid {0} proxy address")]
    Proxy(&'static str),
    /// TLS cannot be set up, for example because there are no root certificates.
    #[error("TLS is not available: {0}")]
    Tls(String),
    /// The HTTP client cannot be built.
    #[error("HTTP client is not available: {0}")]
    Http(String),
    /// The request cannot be written as JSON.
    #[error("Cannot encode the request: {0}")]
    Encode(String),
    /// A token does not say whose it is (providers.md 5).
    #[error("The token for {0} names no ChatGPT account. Run: pinion auth login openai-codex")]
    Account(String),
    /// A recording cannot be written or played.
    #[error("Recording {path}: {reason}")]
    Tape {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The script of the offline provider cannot be used.
    #[error("Script {path}: {reason}")]
    Script {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
}
