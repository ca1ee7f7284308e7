//! Modes and rules as settings give them, before they are parsed. The user's and the project's are kept apart: only the user's
//! own can loosen anything.

use wire::state::PermissionMode;

/// What one file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermissionLayer {
    /// `mode`.
    pub mode: Option<PermissionMode>,
    /// `allow`: rules; always empty for a project.
    pub allow: Vec<String>,
    /// `ask`.
    pub ask: Vec<String>,
    /// `deny`.
    pub deny: Vec<String>,
}

impl PermissionLayer {
    /// The mode it asks for. Rules without a mode are meant to hold.
    #[must_use]
    pub fn mode(&self) -> PermissionMode {
        let has_rules = !self.ask.is_empty() || !self.deny.is_empty();
        self.mode.unwrap_or(if has_rules {
            PermissionMode::Auto
        } else {
            PermissionMode::Off
        })
    }
}

/// What both files say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermissionSettings {
    /// The user's.
    pub user: PermissionLayer,
    /// The project's, which can only make things stricter, whether it is trusted or not.
    pub project: PermissionLayer,
}
