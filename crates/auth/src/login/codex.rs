//! The login of ChatGPT: the parameters of its page in the browser, and the format of its token endpoint (providers.md 9).

use tokio::sync::mpsc::Receiver;

use super::LoginError;
use super::browser::{Consent, Redirect, Waiting};
use super::endpoints::Endpoints;
use super::jwt::account_id;
use super::step::Tell;
use super::token_server::{Http, query};
use super::tokens::Tokens;

/// The public client that OpenAI lets agents use. Pi's too: tokens in `auth.json` are renewed by whichever comes first, and
/// only the client that got them can.
const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";

/// The name of this program, as sent to OpenAI at the login and in requests.
pub const ORIGINATOR: &str = "pinion";

/// What the tokens are for.
const SCOPE: &str = "openid profile email offline_access";

/// Where OpenAI sends the browser; it knows this path only.
const CALLBACK_PATH: &str = "/auth/callback";

/// Waits for the user's consent in a browser, and returns tokens.
pub(super) async fn log_in(
    http: &Http,
    endpoints: &Endpoints,
    tell: Tell<'_>,
    lines: Option<Receiver<String>>,
) -> Result<Tokens, LoginError> {
    let target = Redirect {
        host: "localhost".to_owned(),
        port: endpoints.callback_port,
        path: CALLBACK_PATH.to_owned(),
        has_state: true,
        names_client: false,
    };
    let waiting = Waiting::begin(endpoints, target, tell, lines.is_some()).await?;
    let page = page(endpoints, &waiting);
    let consent = waiting.consent(&page, tell, lines).await?;
    exchange(http, endpoints, &consent).await
}

/// The page where a person agrees.
fn page(endpoints: &Endpoints, waiting: &Waiting) -> String {
    let pairs = [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", &waiting.redirect),
        ("scope", SCOPE),
        ("code_challenge", &waiting.proof.challenge),
        ("code_challenge_method", "S256"),
        ("state", waiting.state.as_deref().unwrap_or_default()),
        ("id_token_add_organizations", "true"),
        ("codex_cli_simplified_flow", "true"),
        ("originator", ORIGINATOR),
    ];
    format!("{}?{}", endpoints.openai_authorize, query(&pairs))
}

/// Tokens for a code.
async fn exchange(http: &Http, endpoints: &Endpoints, consent: &Consent) -> Result<Tokens, LoginError> {
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", CLIENT_ID),
        ("code", &consent.code),
        ("code_verifier", &consent.proof.verifier),
        ("redirect_uri", &consent.redirect),
    ];
    let answer = http.form(&endpoints.openai_token, &form).await?.success()?;
    let mut tokens = Tokens::of_answer(&answer, None)?;
    let Some(account) = account_id(tokens.access.expose()) else {
        return Err(LoginError::System(
            "The token names no ChatGPT account".to_owned(),
        ));
    };
    tokens.extra.push(("accountId", account.into()));
    Ok(tokens)
}

/// New tokens for old ones. The old refresh token is spent, so little is asked of the answer: what it leaves out stays.
pub(super) async fn renew(http: &Http, endpoints: &Endpoints, old: &Tokens) -> Result<Tokens, LoginError> {
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", old.refresh.expose()),
        ("client_id", CLIENT_ID),
    ];
    let answer = http.form(&endpoints.openai_token, &form).await?.success()?;
    let mut tokens = Tokens::of_answer(&answer, Some(old))?;
    if let Some(account) = account_id(tokens.access.expose()) {
        tokens.extra.push(("accountId", account.into()));
    }
    Ok(tokens)
}
