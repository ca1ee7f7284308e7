//! The device flow (RFC 8628): show a code, and poll until the user has entered it. The providers' addresses and clients are in
//! `device_clients`.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::LoginError;
use super::limits::LOGIN;
use super::step::{Step, Tell};
use super::token_server::{Answer, Http};
use super::tokens::Tokens;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Between two questions, as a multiple of what the server asks for: its clock is not ours (providers.md 9).
const PATIENCE: f64 = 1.2;
/// Factor of the polling interval after the server asked to slow down.
const MORE_PATIENCE: f64 = 1.4;
/// Seconds between questions where the server names none.
const INTERVAL: f64 = 5.0;
/// Fewest seconds between questions.
const SHORTEST_INTERVAL: f64 = 1.0;
/// Seconds that a complaint adds where the server names none.
const SLOWER: f64 = 5.0;

/// Where a device flow runs, and for which client.
pub(super) struct DeviceFlow {
    /// Gives the code for the user.
    pub(super) code_url: String,
    /// Gives the tokens.
    pub(super) token_url: String,
    /// The public client.
    pub(super) client_id: &'static str,
    /// Further fields of the request for the code, such as the scope.
    pub(super) fields: &'static [(&'static str, &'static str)],
}

impl DeviceFlow {
    /// Waits until the user has entered the code, and returns access and refresh tokens. `second` is what a second of the
    /// server lasts.
    pub(super) async fn log_in(
        &self,
        http: &Http,
        second: Duration,
        tell: Tell<'_>,
    ) -> Result<Tokens, LoginError> {
        Tokens::of_answer(&self.run(http, second, tell).await?, None)
    }

    /// New tokens for old ones.
    pub(super) async fn renew(&self, http: &Http, old: &Tokens) -> Result<Tokens, LoginError> {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", self.client_id),
            ("refresh_token", old.refresh.expose()),
        ];
        let answer = http.form(&self.token_url, &form).await?.success()?;
        Tokens::of_answer(&answer, Some(old))
    }

    /// Waits until the user has entered the code, and returns the response with `access_token`.
    pub(super) async fn run(
        &self,
        http: &Http,
        second: Duration,
        tell: Tell<'_>,
    ) -> Result<Answer, LoginError> {
        let mut form = vec![("client_id", self.client_id)];
        form.extend_from_slice(self.fields);
        let answer = http.form(&self.code_url, &form).await?.success()?;
        let device = answer.need("device_code")?.to_owned();
        let (address, code) = shown(&answer)?;
        tell(Step::Enter {
            address: &address,
            code: &code,
        });
        let second = second.as_secs_f64();
        let lifetime = answer.number("expires_in").unwrap_or(LOGIN.as_secs_f64());
        let until = Instant::now() + span(lifetime * second).min(LOGIN);
        let mut interval = asked_interval(&answer).unwrap_or(INTERVAL);
        let mut patience = PATIENCE;
        let form = [
            ("client_id", self.client_id),
            ("device_code", &device),
            ("grant_type", GRANT),
        ];
        loop {
            let wait = span(interval.max(SHORTEST_INTERVAL) * patience * second);
            if Instant::now() + wait >= until {
                return Err(LoginError::CodeExpired);
            }
            sleep(wait).await;
            // A network that is away for a moment is no reason to start anew.
            let Ok(answer) = http.form(&self.token_url, &form).await else {
                continue;
            };
            if answer.word("access_token").is_some() {
                return Ok(answer);
            }
            match answer.word("error") {
                Some("authorization_pending") => {}
                Some("slow_down") => {
                    interval = asked_interval(&answer).unwrap_or(interval + SLOWER);
                    patience = MORE_PATIENCE;
                }
                Some("expired_token") => return Err(LoginError::CodeExpired),
                // The second is xAI's.
                Some("access_denied" | "authorization_denied") => return Err(LoginError::Denied),
                None if answer.status >= 500 => {}
                _ => return Err(answer.refusal()),
            }
        }
    }
}

/// The interval that a server asks for; 0 counts as none.
fn asked_interval(answer: &Answer) -> Option<f64> {
    answer.number("interval").filter(|seconds| *seconds > 0.0)
}

/// What a person gets to see: nothing that would move the terminal's cursor, and only an address of the web. The address that
/// contains the code comes first.
fn shown(answer: &Answer) -> Result<(String, String), LoginError> {
    let address = match answer.word("verification_uri_complete") {
        Some(address) => address,
        None => answer.need("verification_uri")?,
    };
    let code = answer.need("user_code")?;
    if is_address(address) && is_plain(code) {
        Ok((address.to_owned(), code.to_owned()))
    } else {
        Err(LoginError::System(
            "The code of the login cannot be shown".to_owned(),
        ))
    }
}

/// Returns true for an address of the web that can be shown and opened.
pub(super) fn is_address(text: &str) -> bool {
    is_plain(text) && (text.starts_with("https://") || text.starts_with("http://"))
}

fn is_plain(text: &str) -> bool {
    text.len() < 500 && text.chars().all(|c| c.is_ascii_graphic())
}

fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(LOGIN)
}
