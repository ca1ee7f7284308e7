//! What to do about an error of a provider: an unknown model, a rejected key, a local server that is down.

use auth::NO_SERVER_RUNS;
use wire::Model;

use crate::key_source::KeySource;
use crate::nearest::unknown_model_advice;
use crate::store::Registry;

/// Parts of messages by which providers reject a key, in lower case.
const REJECTED: [&str; 7] = [
    "invalid x-api-key",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "authentication_error",
    "authentication failed",
    "unauthorized",
];

/// Beginning of errors about a stored login, in lower case.
const OWN: &str = "authentication failed for \"";

/// Returns the cause and the next command for an error of the provider of this model, if both are known. Callers append it:
/// clients match on the beginning of the provider's text.
#[must_use]
pub fn advice(registry: &Registry, model: &Model, error: &str) -> Option<String> {
    unknown_model_advice(registry, model, error)
        .or_else(|| key_advice(registry, &model.provider, error))
        .or_else(|| server_advice(registry, model, error))
}

/// Advice for an error that rejects the key: where the key came from, and how to replace it.
fn key_advice(registry: &Registry, provider: &str, error: &str) -> Option<String> {
    let lower = error.to_lowercase();
    // Errors of a login's renewal are Pinion's own and name the next command, or a connection that failed.
    if lower.starts_with(OWN) {
        return None;
    }
    let is_unauthorized = lower.starts_with("401") || lower.contains(" api error (401)");
    if !is_unauthorized && !REJECTED.iter().any(|part| lower.contains(part)) {
        return None;
    }
    let file = |name: &str| registry.agent_dir.join(name).display().to_string();
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

/// Advice for a connection that a port of this machine refused.
fn server_advice(registry: &Registry, model: &Model, error: &str) -> Option<String> {
    if !error.contains(NO_SERVER_RUNS) {
        return None;
    }
    let provider = &model.provider;
    registry
        .local
        .how_to_start(provider, &registry.credentials, &registry.providers)
        .or_else(|| {
            let file = registry.agent_dir.join("models.json");
            Some(format!(
                "Start the server of {provider}. If it has another address, correct its \"baseUrl\" in {}.",
                file.display()
            ))
        })
}
