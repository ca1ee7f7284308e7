//! The login of ChatGPT: the parameters of its page in the browser, and the format of its token endpoint (providers.md 9).

use super::endpoints::Endpoints;
use super::jwt::account_id;
use super::pkce::Proof;
use super::token_server::{Answer, Http, query};
use super::tokens::Tokens;
use super::{LoginError, clock};
use crate::Secret;

/// The public client that OpenAI lets agents use. Pi's too: tokens in `auth.json` are renewed by whichever comes first, and
/// only the client that got them can.
const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";

/// The name of this program, as sent to OpenAI at the login and in requests.
pub const ORIGINATOR: &str = "pinion";

/// What the tokens are for.
const SCOPE: &str = "openid profile email offline_access";

/// Where OpenAI sends the browser; it knows this path only.
pub(super) const CALLBACK_PATH: &str = "/auth/callback";

/// Lifetime of a token that does not name its own, in seconds.
const DEFAULT_LIFETIME: f64 = 3600.0;

/// The page where a person agrees.
pub(super) fn page(endpoints: &Endpoints, redirect: &str, proof: &Proof, state: &str) -> String {
    let pairs = [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", redirect),
        ("scope", SCOPE),
        ("code_challenge", &proof.challenge),
        ("code_challenge_method", "S256"),
        ("state", state),
        ("id_token_add_organizations", "true"),
        ("codex_cli_simplified_flow", "true"),
        ("originator", ORIGINATOR),
    ];
    format!("{}?{}", endpoints.openai_authorize, query(&pairs))
}

/// Tokens for a code.
pub(super) async fn exchange(
    http: &Http,
    endpoints: &Endpoints,
    redirect: &str,
    proof: &Proof,
    code: &str,
) -> Result<Tokens, LoginError> {
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", CLIENT_ID),
        ("code", code),
        ("code_verifier", &proof.verifier),
        ("redirect_uri", redirect),
    ];
    let answer = http.form(&endpoints.openai_token, &form).await?.success()?;
    let access = Secret::new(answer.need("access_token")?);
    let refresh = Secret::new(answer.need("refresh_token")?);
    let Some(account) = account_id(access.expose()) else {
        return Err(LoginError::System(
            "The token names no ChatGPT account".to_owned(),
        ));
    };
    Ok(Tokens {
        access,
        refresh,
        expires: expires(&answer),
        extra: vec![("accountId", account)],
    })
}

/// New tokens for old ones. The old refresh token is spent, so little is asked of the answer: what it leaves out stays.
pub(super) async fn renew(http: &Http, endpoints: &Endpoints, old: &Tokens) -> Result<Tokens, LoginError> {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", old.refresh.expose()),
        ("client_id", CLIENT_ID),
    ];
    let answer = http.form(&endpoints.openai_token, &form).await?.success()?;
    let access = Secret::new(answer.need("access_token")?);
    let account = account_id(access.expose()).or_else(|| old.extra("accountId").map(str::to_owned));
    Ok(Tokens {
        refresh: answer
            .word("refresh_token")
            .map_or_else(|| old.refresh.clone(), Secret::new),
        expires: expires(&answer),
        extra: account
            .map(|account| ("accountId", account))
            .into_iter()
            .collect(),
        access,
    })
}

/// These tokens have no margin: they count until they end.
fn expires(answer: &Answer) -> i64 {
    let seconds = answer.number("expires_in").unwrap_or(DEFAULT_LIFETIME);
    clock::after(clock::now_ms(), seconds)
}
