//! The kinds of files that a package or a settings file can bring.

/// What a package can bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Files of code.
    Extensions,
    /// Skills.
    Skills,
    /// Prompt templates.
    Prompts,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Extensions, Self::Skills, Self::Prompts];

    /// The key of settings and manifests, and the usual directory.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Extensions => "extensions",
            Self::Skills => "skills",
            Self::Prompts => "prompts",
        }
    }
}
