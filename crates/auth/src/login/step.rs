//! What a login asks of the person.

/// What the person has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Go to this page and agree.
    Visit(&'a str),
    /// Go to this page and type in this code.
    Enter {
        /// The page.
        address: &'a str,
        /// The code.
        code: &'a str,
    },
    /// Something worth knowing.
    Note(&'a str),
}

/// Tells the person.
pub(super) type Tell<'a> = &'a (dyn Fn(Step<'_>) + Send + Sync);
