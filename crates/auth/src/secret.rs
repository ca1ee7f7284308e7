//! A credential in memory. Not here: where it comes from and how it is sent.

use std::fmt;
use std::sync::Arc;

/// An API key or token. It cannot be printed or serialised by accident: `Debug` hides it and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// What Bedrock and Vertex report when ambient credentials exist (providers.md 1).
    pub const AMBIENT: &'static str = "<authenticated>";

    /// Wraps a credential.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The credential itself, for the one place that puts it into a request.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Stands for credentials that the provider module finds by itself.
    #[must_use]
    pub fn is_ambient(&self) -> bool {
        &*self.0 == Self::AMBIENT
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}
