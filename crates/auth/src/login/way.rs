//! Which providers have a login, and of which kind.

use super::copilot;

/// How a provider lets people log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A page in a browser on this machine, or its address pasted.
    Browser,
    /// A code typed in on any machine.
    Device,
}

/// How people log in to a provider; none when they cannot.
#[must_use]
pub fn way(provider: &str) -> Option<Way> {
    match provider {
        "openai-codex" => Some(Way::Browser),
        copilot::PROVIDER => Some(Way::Device),
        _ => None,
    }
}
