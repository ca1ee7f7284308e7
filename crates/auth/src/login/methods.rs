//! What each kind of login does: getting tokens and refreshing them. Storing them is in `run` and `refresher`.

use tokio::sync::mpsc::Receiver;

use super::endpoints::Endpoints;
use super::step::Tell;
use super::token_server::Http;
use super::tokens::Tokens;
use super::way::{LoginProvider, Method};
use super::{LoginError, chatgpt, codex, copilot, device_clients, meta, openrouter};
use crate::Secret;

/// What a login starts with.
pub(super) struct LoginStart<'a> {
    /// What the provider has in `auth.json`, if that is a login.
    pub(super) old: Option<Tokens>,
    /// A company's own domain (Copilot).
    pub(super) domain: Option<&'a str>,
    /// What the person pastes.
    pub(super) lines: Option<Receiver<String>>,
}

/// Waits for the user's consent, and returns tokens.
pub(super) async fn log_in(
    provider: &LoginProvider,
    http: &Http,
    endpoints: &Endpoints,
    start: LoginStart<'_>,
    tell: Tell<'_>,
) -> Result<Tokens, LoginError> {
    let LoginStart { old, domain, lines } = start;
    let second = endpoints.second;
    let tokens = match provider.method {
        Method::Codex => codex::log_in(http, endpoints, tell, lines).await?,
        Method::ChatGpt => {
            let host = old.as_ref().and_then(|old| old.extra("hostId"));
            chatgpt::log_in(http, endpoints, host, tell, lines).await?
        }
        Method::OpenRouter => openrouter::log_in(http, endpoints, tell, lines).await?,
        Method::Copilot => {
            let enterprise = domain.map(copilot::domain).transpose()?.flatten();
            let flow = device_clients::github(endpoints, enterprise.as_deref().unwrap_or(copilot::GITHUB));
            let answer = flow.run(http, second, tell).await?;
            let github = Secret::new(answer.need("access_token")?);
            copilot::exchange(http, endpoints, &github, enterprise.as_deref()).await?
        }
        Method::Xai => device_clients::xai(endpoints).log_in(http, second, tell).await?,
        Method::Kimi => device_clients::kimi(endpoints).log_in(http, second, tell).await?,
        Method::Meta => {
            let answer = device_clients::meta(endpoints).run(http, second, tell).await?;
            let identity = Secret::new(answer.need("access_token")?);
            meta::exchange(http, endpoints, &identity).await?
        }
    };
    Ok(with_margin(provider, tokens))
}

/// New tokens for old ones.
pub(super) async fn renew(
    provider: &LoginProvider,
    http: &Http,
    endpoints: &Endpoints,
    old: &Tokens,
) -> Result<Tokens, LoginError> {
    let mut tokens = match provider.method {
        Method::Codex => codex::renew(http, endpoints, old).await?,
        Method::ChatGpt => chatgpt::renew(http, endpoints, old).await?,
        // A key that does not expire.
        Method::OpenRouter => old.clone(),
        Method::Copilot => {
            let enterprise = old.extra("enterpriseUrl");
            copilot::exchange(http, endpoints, &old.refresh, enterprise).await?
        }
        Method::Xai => device_clients::xai(endpoints).renew(http, old).await?,
        Method::Kimi => device_clients::kimi(endpoints).renew(http, old).await?,
        Method::Meta => meta::exchange(http, endpoints, &old.refresh).await?,
    };
    // What the answer leaves out stays. Only a new login may be of another account.
    for (name, value) in &old.extra {
        if tokens.extra(name).is_none() {
            tokens.extra.push((*name, value.clone()));
        }
    }
    Ok(with_margin(provider, tokens))
}

/// The tokens with the time of expiry that is stored.
fn with_margin(provider: &LoginProvider, mut tokens: Tokens) -> Tokens {
    tokens.expires = tokens.expires.saturating_sub(provider.margin_ms);
    tokens
}
