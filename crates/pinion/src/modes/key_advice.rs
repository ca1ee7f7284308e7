//! What to do when a provider rejects the key: names the place that the key came from.

use models::{KeySource, Registry};

use crate::environment::Environment;

/// Beginnings and parts of messages by which providers reject a key, in lower case.
const REJECTED: [&str; 7] = [
    "invalid x-api-key",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "authentication_error",
    "authentication failed",
    "unauthorized",
];

/// Returns one sentence on where the key came from and one on what to do, if `error` rejects the key.
pub(super) fn key_advice(
    registry: &Registry,
    env: &Environment,
    provider: &str,
    error: &str,
) -> Option<String> {
    let lower = error.to_lowercase();
    if !lower.starts_with("401") && !REJECTED.iter().any(|part| lower.contains(part)) {
        return None;
    }
    let file = |name: &str| env.agent_dir.join(name).display().to_string();
    Some(match registry.key_source(provider)? {
        KeySource::Runtime => format!(
            "{provider} rejected the key of --api-key. Correct it, or leave the option out to use a stored key."
        ),
        KeySource::Env(name) => format!(
            "{provider} rejected the key in the environment variable {name}. Correct it, or store another key with: pinion \
             auth login {provider} --api-key"
        ),
        KeySource::AuthFile => format!(
            "{provider} rejected the key in {}. Replace it with: pinion auth login {provider} --api-key",
            file("auth.json")
        ),
        KeySource::Oauth => format!(
            "{provider} rejected the login in {}. Log in again with: pinion auth login {provider}",
            file("auth.json")
        ),
        KeySource::ModelsFile => format!(
            "{provider} rejected the key in {} (apiKey). Correct it there.",
            file("models.json")
        ),
        KeySource::Ambient => format!(
            "{provider} rejected the credentials that were found on this machine. Check them with: pinion doctor"
        ),
        KeySource::None => return None,
    })
}
