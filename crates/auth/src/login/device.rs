//! The device flow (RFC 8628) of GitHub: show a code, and poll until the user has entered it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::LoginError;
use super::copilot::GITHUB;
use super::endpoints::Endpoints;
use super::limits::LOGIN;
use super::step::{Step, Tell};
use super::token_server::{Answer, Http};
use crate::Secret;

/// The public client that GitHub gives Copilot's tokens to.
const CLIENT_ID: &str = "Iv1.b507a08c87ecfe98";
const SCOPE: &str = "read:user";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Between two questions, as a multiple of what the server asks for: its clock is not ours (providers.md 9).
const PATIENCE: f64 = 1.2;
/// Factor of the polling interval after the server asked to slow down.
const MORE_PATIENCE: f64 = 1.4;
/// Seconds between questions where the server names none.
const INTERVAL: f64 = 5.0;
/// Seconds that a complaint adds where the server names none.
const SLOWER: f64 = 5.0;

/// Waits until the user has entered the code, and returns a GitHub token.
pub(super) async fn run(
    http: &Http,
    endpoints: &Endpoints,
    enterprise: Option<&str>,
    tell: Tell<'_>,
) -> Result<Secret, LoginError> {
    let domain = enterprise.unwrap_or(GITHUB);
    let url = Endpoints::at(&endpoints.github, domain, "login/device/code");
    let form = [("client_id", CLIENT_ID), ("scope", SCOPE)];
    let answer = http.form(&url, &form).await?.success()?;
    let device = answer.need("device_code")?.to_owned();
    let (address, code) = shown(&answer)?;
    tell(Step::Enter {
        address: &address,
        code: &code,
    });
    let second = endpoints.second.as_secs_f64();
    let lifetime = answer.number("expires_in").unwrap_or(LOGIN.as_secs_f64());
    let until = Instant::now() + span(lifetime * second).min(LOGIN);
    let mut interval = answer.number("interval").unwrap_or(INTERVAL);
    let mut patience = PATIENCE;
    let url = Endpoints::at(&endpoints.github, domain, "login/oauth/access_token");
    let form = [
        ("client_id", CLIENT_ID),
        ("device_code", &device),
        ("grant_type", GRANT),
    ];
    loop {
        let wait = span(interval.max(0.0) * patience * second);
        if Instant::now() + wait >= until {
            return Err(LoginError::CodeExpired);
        }
        sleep(wait).await;
        // A network that is away for a moment is no reason to start anew.
        let Ok(answer) = http.form(&url, &form).await else {
            continue;
        };
        if let Some(token) = answer.word("access_token") {
            return Ok(Secret::new(token));
        }
        match answer.word("error") {
            Some("authorization_pending") => {}
            Some("slow_down") => {
                interval = answer.number("interval").unwrap_or(interval + SLOWER);
                patience = MORE_PATIENCE;
            }
            Some("expired_token") => return Err(LoginError::CodeExpired),
            Some("access_denied") => return Err(LoginError::Denied),
            None if answer.status >= 500 => {}
            _ => return Err(answer.refusal()),
        }
    }
}

/// What a person gets to see: nothing that would move the terminal's cursor, and only an address of the web.
fn shown(answer: &Answer) -> Result<(String, String), LoginError> {
    let address = answer.need("verification_uri")?;
    let code = answer.need("user_code")?;
    let is_plain = |text: &str| text.len() < 500 && text.chars().all(|c| c.is_ascii_graphic());
    let is_web = address.starts_with("https://") || address.starts_with("http://");
    if is_web && is_plain(address) && is_plain(code) {
        Ok((address.to_owned(), code.to_owned()))
    } else {
        Err(LoginError::System(
            "The code of the login cannot be shown".to_owned(),
        ))
    }
}

fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(LOGIN)
}
