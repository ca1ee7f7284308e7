//! The places that a provider's key can come from. The registry finds out which of them counts (`credentials`).

/// Where a provider's key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// `--api-key`.
    Runtime,
    /// An `api_key` entry of `auth.json`.
    AuthFile,
    /// An `oauth` entry of `auth.json`.
    Oauth,
    /// This environment variable.
    Env(String),
    /// Credentials that the provider's module finds by itself.
    Ambient,
    /// `apiKey` of `models.json`, or of an extension that brings the provider.
    ModelsFile,
    /// The provider needs none.
    None,
}
