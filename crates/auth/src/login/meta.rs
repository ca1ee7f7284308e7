//! The login of Meta (providers.md 9): the device flow gives an identity token, which buys an API key for a day. The identity
//! token takes the place of the refresh token. It cannot be refreshed itself: when Meta refuses it, only another login helps.

use serde_json::json;

use super::LoginError;
use super::clock::{after, now_ms};
use super::device::is_address;
use super::endpoints::Endpoints;
use super::token_server::Http;
use super::tokens::Tokens;
use crate::Secret;

/// Lifetime of an API key in seconds. Meta does not name it.
const KEY_LIFETIME: f64 = 86_400.0;

/// An API key for an identity token.
pub(super) async fn exchange(
    http: &Http,
    endpoints: &Endpoints,
    identity: &Secret,
) -> Result<Tokens, LoginError> {
    let headers = [("x-api-version", "1.0.0")];
    let answer = http
        .json(&endpoints.meta_keys, identity, &headers, &json!({}))
        .await?
        .success()?;
    let access = match answer.need("api_key") {
        Ok(key) => Secret::new(key),
        // An account that is not set up yet gets a page in place of a key.
        Err(error) => {
            let page = answer.word("action_url").filter(|url| is_address(url));
            return Err(page.map_or(error, |page| {
                LoginError::System(format!("Meta gave no key. Complete the setup at {page}"))
            }));
        }
    };
    Ok(Tokens {
        access,
        refresh: identity.clone(),
        expires: after(now_ms(), KEY_LIFETIME),
        extra: Vec::new(),
    })
}
