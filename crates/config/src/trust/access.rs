//! How much of a project's configuration is used, and the user's default for it.

/// `defaultProjectTrust`: the trust in a project without a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProjectTrust {
    /// Ask; without a terminal this means: data yes, code no.
    #[default]
    Ask,
    /// Everything the project brings is used.
    Always,
    /// Nothing the project brings is used.
    Never,
}

/// How much of a project's own configuration is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectAccess {
    /// Nothing.
    None,
    /// Texts and harmless settings, but nothing that can run code or lead data elsewhere.
    Data,
    /// Everything.
    Full,
}

impl ProjectAccess {
    /// One word for people and programs: `trusted`, `limited`, `ignored`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "ignored",
            Self::Data => "limited",
            Self::Full => "trusted",
        }
    }
}

impl ProjectTrust {
    /// The setting's word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "ask" => Some(Self::Ask),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}
