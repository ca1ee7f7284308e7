//! Where logins happen. The defaults are the providers' own; tests put a server of theirs in place.

use std::time::Duration;

/// Addresses of the token endpoints. `{domain}` in GitHub's stands for `github.com` or a company's domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// OpenAI's page where a person agrees.
    pub openai_authorize: String,
    /// OpenAI's token endpoint.
    pub openai_token: String,
    /// OpenAI's pages and token endpoint for programs that use its API with a ChatGPT plan.
    pub chatgpt: String,
    /// OpenRouter's page and its endpoint for keys.
    pub openrouter: String,
    /// xAI's device flow and token endpoint.
    pub xai: String,
    /// Kimi's device flow and token endpoint (`KIMI_CODE_OAUTH_HOST`).
    pub kimi: String,
    /// Meta's device flow.
    pub meta: String,
    /// Meta's endpoint for API keys.
    pub meta_keys: String,
    /// Address that the local callback is bound to (`PI_OAUTH_CALLBACK_HOST`).
    pub callback_host: String,
    /// Port of the local callback. OpenAI knows this one only; 0 takes any.
    pub callback_port: u16,
    /// GitHub's pages for the device flow.
    pub github: String,
    /// GitHub's API, which gives Copilot's tokens.
    pub github_api: String,
    /// Copilot's own API; none takes what the token names.
    pub copilot: Option<String>,
    /// What a server's second lasts while a device flow is polled.
    pub second: Duration,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            openai_authorize: "https://auth.openai.com/oauth/authorize".to_owned(),
            openai_token: "https://auth.openai.com/oauth/token".to_owned(),
            chatgpt: "https://auth.openai.com/api/accounts".to_owned(),
            openrouter: "https://openrouter.ai".to_owned(),
            xai: "https://auth.x.ai/oauth2".to_owned(),
            kimi: "https://auth.kimi.com".to_owned(),
            meta: "https://auth.meta.com/oidc/device".to_owned(),
            meta_keys: "https://api.meta.ai/muse-code/key".to_owned(),
            callback_host: "127.0.0.1".to_owned(),
            callback_port: 1455,
            github: "https://{domain}".to_owned(),
            github_api: "https://api.{domain}".to_owned(),
            copilot: None,
            second: Duration::from_secs(1),
        }
    }
}

impl Endpoints {
    /// An address below GitHub's pages or its API.
    pub(crate) fn at(template: &str, domain: &str, path: &str) -> String {
        Self::below(&template.replace("{domain}", domain), path)
    }

    /// An address below another one.
    pub(crate) fn below(base: &str, path: &str) -> String {
        format!("{}/{path}", base.trim_end_matches('/'))
    }
}
