//! Reads the claims of a JSON Web Token. They are not verified: the token comes over TLS from the server that issued it.

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;

/// The claim of OpenAI's tokens that holds the account.
const CLAIM: &str = "https://api.openai.com/auth";

/// The ChatGPT account that an access token belongs to (providers.md 5).
#[must_use]
pub fn account_id(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, payload, _) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes = URL_SAFE_NO_PAD
        .decode(payload)
        .or_else(|_| URL_SAFE.decode(payload))
        .ok()?;
    let claims: Value = serde_json::from_slice(&bytes).ok()?;
    let id = claims.get(CLAIM)?.get("chatgpt_account_id")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}
