//! What can keep a session from beginning.

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The session file.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The choice of a model.
    #[error(transparent)]
    Registry(#[from] llm::registry::RegistryError),
}
