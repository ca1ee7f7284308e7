//! The login of OpenRouter: a page in the browser and a code that buys an API key (providers.md 9). The key belongs to the
//! user, does not expire and cannot be refreshed.

use std::net::IpAddr;

use serde_json::json;
use tokio::sync::mpsc::Receiver;

use super::LoginError;
use super::browser::{Redirect, Waiting};
use super::clock::NEVER_MS;
use super::endpoints::Endpoints;
use super::pkce::random;
use super::step::Tell;
use super::token_server::{Http, query};
use super::tokens::Tokens;
use crate::Secret;

/// Waits for the user's consent in a browser, and returns an API key.
pub(super) async fn log_in(
    http: &Http,
    endpoints: &Endpoints,
    tell: Tell<'_>,
    lines: Option<Receiver<String>>,
) -> Result<Tokens, LoginError> {
    // OpenRouter returns no state: only the path tells its visit from that of another page.
    let target = Redirect {
        host: redirect_host(&endpoints.callback_host),
        port: 0,
        path: format!("/oauth/callback/{}", random::<16>()?),
        has_state: false,
        names_client: false,
    };
    let waiting = Waiting::begin(endpoints, target, tell, lines.is_some()).await?;
    let pairs = [
        ("callback_url", waiting.redirect.as_str()),
        ("code_challenge", &waiting.proof.challenge),
        ("code_challenge_method", "S256"),
    ];
    let page = format!(
        "{}?{}",
        Endpoints::below(&endpoints.openrouter, "auth"),
        query(&pairs)
    );
    let consent = waiting.consent(&page, tell, lines).await?;
    let url = Endpoints::below(&endpoints.openrouter, "api/v1/auth/keys");
    let (code, verifier) = (&consent.code, &consent.proof.verifier);
    let body = json!({"code": code, "code_verifier": verifier, "code_challenge_method": "S256"});
    let sent = vec![Secret::new(code), Secret::new(verifier)];
    let answer = http.post(&url, &body, sent).await?.success()?;
    Ok(Tokens {
        access: Secret::new(answer.need("key")?),
        refresh: Secret::new(""),
        expires: NEVER_MS,
        extra: Vec::new(),
    })
}

/// The host to which OpenRouter sends the browser, which may be any: as in pi, the host of the callback server. An address that
/// stands for all addresses names no host.
fn redirect_host(bound: &str) -> String {
    match bound.parse::<IpAddr>() {
        Ok(address) if address.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => bound.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::redirect_host;

    #[test]
    fn redirect_host_is_where_callback_is_bound() {
        for (bound, host) in [
            ("127.0.0.1", "127.0.0.1"),
            ("192.168.1.5", "192.168.1.5"),
            ("box.test", "box.test"),
            ("::1", "[::1]"),
            ("0.0.0.0", "127.0.0.1"),
            ("::", "127.0.0.1"),
        ] {
            assert_eq!(redirect_host(bound), host);
        }
    }
}
