//! Which providers have a login, and of which kind. A new login is a row here and its requests in `methods`.

/// How a provider lets people log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// A page in a browser on this machine, or its address pasted.
    Browser,
    /// A code typed in on any machine.
    Device,
}

/// Whose requests a login sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// A ChatGPT plan at its own endpoint.
    Codex,
    /// A ChatGPT plan at OpenAI's API.
    ChatGpt,
    /// A GitHub token that buys short-lived tokens.
    Copilot,
    /// An API key that does not expire.
    OpenRouter,
    /// Access and refresh tokens of xAI.
    Xai,
    /// Access and refresh tokens of Kimi.
    Kimi,
    /// An identity token that buys an API key for a day.
    Meta,
}

/// A provider with a login.
#[derive(Debug, Clone, Copy)]
pub struct LoginProvider {
    /// Id of the provider.
    pub id: &'static str,
    /// The name for users.
    pub name: &'static str,
    /// How people log in.
    pub way: Way,
    /// Whose requests are sent.
    pub(super) method: Method,
    /// The stored time of expiry lies this much before the true one, in ms (providers.md 9).
    pub(super) margin_ms: i64,
}

impl LoginProvider {
    const fn new(id: &'static str, name: &'static str, way: Way, method: Method, margin_ms: i64) -> Self {
        Self {
            id,
            name,
            way,
            method,
            margin_ms,
        }
    }
}

/// The providers with a login, in the order in which they are offered.
pub static LOGIN_PROVIDERS: [LoginProvider; 7] = [
    LoginProvider::new("openai-codex", "ChatGPT", Way::Browser, Method::Codex, 0),
    LoginProvider::new(
        "github-copilot",
        "GitHub Copilot",
        Way::Device,
        Method::Copilot,
        300_000,
    ),
    LoginProvider::new("openrouter", "OpenRouter", Way::Browser, Method::OpenRouter, 0),
    LoginProvider::new("xai", "xAI (Grok)", Way::Device, Method::Xai, 300_000),
    LoginProvider::new("kimi-coding", "Kimi Code", Way::Device, Method::Kimi, 0),
    LoginProvider::new(
        "openai",
        "OpenAI (ChatGPT plan)",
        Way::Browser,
        Method::ChatGpt,
        180_000,
    ),
    LoginProvider::new("meta", "Meta (Muse)", Way::Device, Method::Meta, 0),
];

/// The login of a provider; none when people cannot log in to it.
#[must_use]
pub fn login_provider(id: &str) -> Option<&'static LoginProvider> {
    LOGIN_PROVIDERS.iter().find(|provider| provider.id == id)
}

/// How people log in to a provider; none when they cannot.
#[must_use]
pub fn way(provider: &str) -> Option<Way> {
    login_provider(provider).map(|provider| provider.way)
}

/// Returns true if Pinion refreshes the tokens of a provider. A key of OpenRouter stays as it is.
#[must_use]
pub fn renews(provider: &str) -> bool {
    login_provider(provider).is_some_and(|provider| provider.method != Method::OpenRouter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_login_provider_is_listed_once() {
        for provider in &LOGIN_PROVIDERS {
            let count = LOGIN_PROVIDERS
                .iter()
                .filter(|other| other.id == provider.id)
                .count();
            assert_eq!(
                (count, way(provider.id)),
                (1, Some(provider.way)),
                "{}",
                provider.id
            );
        }
        assert!(renews("xai") && !renews("openrouter") && !renews("anthropic"));
    }
}
