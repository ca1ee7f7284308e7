//! The signed claim by which a service account asks for a token (RFC 7523, RS256).

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::{Value, json};

use super::SCOPE;

/// How long a claim is good, in seconds; the most that Google takes.
const LIFETIME: u64 = 3600;

/// A service account's file.
#[derive(Deserialize)]
pub(super) struct Account {
    client_email: String,
    private_key: String,
    #[serde(default)]
    private_key_id: Option<String>,
    /// Where tokens are asked for.
    #[serde(default)]
    pub(super) token_uri: Option<String>,
}

/// The claim, for one server.
pub(super) fn assertion(account: &Account, audience: &str) -> Result<String, String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let (Some(id), Some(fields)) = (&account.private_key_id, header.as_object_mut()) {
        fields.insert("kid".into(), json!(id));
    }
    let claims = json!({
        "iss": account.client_email, "scope": SCOPE, "aud": audience, "iat": now, "exp": now + LIFETIME,
    });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&header), part(&claims));
    let key = key_pair(&account.private_key)?;
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        text.as_bytes(),
        &mut signature,
    )
    .map_err(|_| "the private key of the credentials file cannot sign".to_owned())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// Reads a key in PEM, PKCS #8 or PKCS #1.
fn key_pair(pem: &str) -> Result<RsaKeyPair, String> {
    let bad = || "the private key of the credentials file cannot be read".to_owned();
    let lines = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"));
    let der = STANDARD.decode(lines.collect::<String>()).map_err(|_| bad())?;
    RsaKeyPair::from_pkcs8(&der)
        .or_else(|_| RsaKeyPair::from_der(&der))
        .map_err(|_| bad())
}
