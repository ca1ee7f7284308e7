//! Section: the environment variables that matter and are set. Values are shown where they cannot be secret.

use serde_json::{Value, json};

use super::report::Section;
use super::{Patient, mask};

/// How a value is shown.
#[derive(Clone, Copy)]
enum Shown {
    /// As it is.
    Plain,
    /// Without login, path and query.
    Address,
    /// Masked.
    Secret,
}

/// Variables without secrets, and addresses, that change what we do.
const KNOWN: [(&str, Shown); 21] = [
    ("PI_CODING_AGENT_DIR", Shown::Plain),
    ("PI_CODING_AGENT_SESSION_DIR", Shown::Plain),
    ("PI_CACHE_RETENTION", Shown::Plain),
    ("HTTP_PROXY", Shown::Address),
    ("http_proxy", Shown::Address),
    ("HTTPS_PROXY", Shown::Address),
    ("https_proxy", Shown::Address),
    ("ALL_PROXY", Shown::Address),
    ("all_proxy", Shown::Address),
    ("NO_PROXY", Shown::Plain),
    ("no_proxy", Shown::Plain),
    ("AWS_PROFILE", Shown::Plain),
    ("AWS_REGION", Shown::Plain),
    ("AWS_DEFAULT_REGION", Shown::Plain),
    ("GOOGLE_CLOUD_PROJECT", Shown::Plain),
    ("GOOGLE_CLOUD_LOCATION", Shown::Plain),
    ("GOOGLE_APPLICATION_CREDENTIALS", Shown::Plain),
    ("AZURE_OPENAI_BASE_URL", Shown::Address),
    ("AZURE_OPENAI_RESOURCE_NAME", Shown::Plain),
    ("AZURE_OPENAI_API_VERSION", Shown::Plain),
    ("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", Shown::Plain),
];

pub(super) fn section(patient: &Patient<'_>) -> Section {
    let mut section = Section::new("environment", "Environment variables");
    let mut data = Vec::new();
    for (name, shown) in names(patient) {
        let Some(value) = patient.env.get(&name) else {
            continue;
        };
        let value = match shown {
            Shown::Plain => value.to_owned(),
            Shown::Address => mask::origin(value),
            Shown::Secret => mask::mask(value),
        };
        let masked = matches!(shown, Shown::Secret);
        data.push(json!({"name": name, "value": value, "masked": masked}));
        section.row(name, value);
    }
    if data.is_empty() {
        section.row("", "none of those that matter are set (no API keys, no proxies)");
    }
    section.data = Value::Array(data);
    section
}

/// The known ones, then those of keys and cloud credentials, by name; each once.
fn names(patient: &Patient<'_>) -> Vec<(String, Shown)> {
    let catalogue = patient.registry.catalogue();
    let ambient = catalogue
        .providers()
        .iter()
        .flat_map(|provider| provider.ambient().iter().flatten().cloned());
    let mut secret: Vec<String> = patient
        .registry
        .key_variables()
        .into_iter()
        .chain(ambient)
        .collect();
    secret.sort_unstable();
    secret.dedup();
    let key_names = patient.registry.key_variables();
    let known = KNOWN
        .into_iter()
        // A variable that a provider reads its key from is secret under any name.
        .filter(|(name, _)| !key_names.iter().any(|key| key == name))
        .map(|(name, shown)| (name.to_owned(), shown));
    let rest = secret
        .into_iter()
        .filter(|name| key_names.contains(name) || !KNOWN.iter().any(|(known, _)| known == name))
        .map(|name| (name, Shown::Secret));
    known.chain(rest).collect()
}
