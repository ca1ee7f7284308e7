//! The login of a ChatGPT plan for OpenAI's API (providers.md 9). Each login registers a client of its own: OpenAI names it when
//! it sends the browser back. The plan at ChatGPT's own endpoint is in `codex`.

use serde_json::json;
use tokio::sync::mpsc::Receiver;

use super::LoginError;
use super::browser::{Consent, Redirect, Waiting};
use super::endpoints::Endpoints;
use super::pkce::{random, random_uuid};
use super::step::Tell;
use super::token_server::{Answer, Http, query};
use super::tokens::Tokens;

/// Asks OpenAI to register a client.
const NEW_CLIENT: &str = "dynamic_agent_client";

/// The name of this program on OpenAI's pages.
const NAME: &str = "Pinion";

/// What the tokens are for.
const RESOURCE: &str = "https://api.openai.com/v1";

/// The scope without which OpenAI's API refuses the tokens.
const DIRECT: &str = "chatgpt.tokens.use.direct";

/// Waits for the user's consent in a browser, and returns tokens. `host` is the id of this installation from an earlier login.
pub(super) async fn log_in(
    http: &Http,
    endpoints: &Endpoints,
    host: Option<&str>,
    tell: Tell<'_>,
    lines: Option<Receiver<String>>,
) -> Result<Tokens, LoginError> {
    let host = match host {
        Some(host) => host.to_owned(),
        None => random_uuid()?,
    };
    let target = Redirect {
        host: "127.0.0.1".to_owned(),
        port: endpoints.callback_port,
        path: "/auth/callback".to_owned(),
        has_state: true,
        names_client: true,
    };
    let waiting = Waiting::begin(endpoints, target, tell, lines.is_some()).await?;
    let page = page(endpoints, &waiting, &host)?;
    let consent = waiting.consent(&page, tell, lines).await?;
    let mut tokens = exchange(http, endpoints, &consent).await?;
    tokens.extra.push(("hostId", host.into()));
    Ok(tokens)
}

/// The page where a person agrees.
fn page(endpoints: &Endpoints, waiting: &Waiting, host: &str) -> Result<String, LoginError> {
    let (host, nonce) = (format!("urn:uuid:{host}"), random::<32>()?);
    let scope = format!("openid profile email offline_access resource.invoke {DIRECT}");
    let pairs = [
        ("client_id", NEW_CLIENT),
        ("agent_name_hint", NAME),
        ("ext_agent_host_id", &host),
        ("response_type", "code"),
        ("redirect_uri", &waiting.redirect),
        ("resource", RESOURCE),
        ("scope", &scope),
        ("state", waiting.state.as_deref().unwrap_or_default()),
        ("code_challenge", &waiting.proof.challenge),
        ("code_challenge_method", "S256"),
        ("nonce", &nonce),
    ];
    let url = Endpoints::below(&endpoints.chatgpt, "authorize");
    Ok(format!("{url}?{}", query(&pairs)))
}

/// Tokens for a code.
async fn exchange(http: &Http, endpoints: &Endpoints, consent: &Consent) -> Result<Tokens, LoginError> {
    let client = consent.client.as_deref().ok_or(LoginError::Paste)?;
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", &consent.code),
        ("code_verifier", &consent.proof.verifier),
        ("redirect_uri", &consent.redirect),
        ("resource", RESOURCE),
    ];
    let answer = http.form(&token_url(endpoints), &form).await?.success()?;
    let mut tokens = Tokens::of_answer(&answer, None)?;
    let scopes = scopes(&answer);
    if !scopes.contains(&DIRECT) {
        return Err(LoginError::System(format!(
            "OpenAI did not grant {DIRECT}, so its API would refuse the token"
        )));
    }
    tokens.extra.push(("clientId", client.into()));
    tokens.extra.push(("scopes", json!(scopes)));
    Ok(tokens)
}

/// New tokens for old ones. The old refresh token is spent, so little is asked of the answer: what it leaves out stays.
pub(super) async fn renew(http: &Http, endpoints: &Endpoints, old: &Tokens) -> Result<Tokens, LoginError> {
    let Some(client) = old.extra("clientId") else {
        return Err(LoginError::Key("The stored login names no client"));
    };
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", client),
        ("refresh_token", old.refresh.expose()),
        ("resource", RESOURCE),
    ];
    let answer = http.form(&token_url(endpoints), &form).await?.success()?;
    Tokens::of_answer(&answer, Some(old))
}

fn token_url(endpoints: &Endpoints) -> String {
    Endpoints::below(&endpoints.chatgpt, "oauth/token")
}

fn scopes(answer: &Answer) -> Vec<&str> {
    answer
        .word("scope")
        .unwrap_or_default()
        .split_whitespace()
        .collect()
}
