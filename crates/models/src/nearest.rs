//! Similar models for the errors about a model that does not exist, or that its provider does not know.

use wire::Model;

use crate::error::RegistryError;
use crate::store::Registry;

/// Characters of the longest name that is compared.
const LONGEST: usize = 128;

/// Most models that are named.
const NAMED: usize = 3;

/// Phrases of error texts, in lower case, that say that the provider does not know the model.
const PHRASES: [&str; 12] = [
    "model_not_found",
    "model not found",
    "modelnotfound",
    "unknown model",
    "no such model",
    "invalid model",
    "not a valid model",
    "unsupported model",
    "model identifier is invalid",
    "unknown_model",
    "invalid_model",
    "no endpoints found for",
];

/// Endings of a sentence about a model that say the same.
const ENDINGS: [&str; 5] = [
    "does not exist",
    "is not found",
    "was not found",
    "is not supported",
    "not_found_error",
];

/// Returns true for the text of a provider's error that says that the provider does not know the model that was asked.
fn says_unknown(text: &str, id: &str) -> bool {
    let text = text.to_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
        || (text.contains(&id.to_lowercase()) && ENDINGS.iter().any(|ending| text.contains(ending)))
}

/// Advice for an error of the provider of this model; none unless the error says that the provider does not know the model.
pub(crate) fn unknown_model_advice(registry: &Registry, model: &Model, error: &str) -> Option<String> {
    if !says_unknown(error, &model.id) {
        return None;
    }
    let provider = &model.provider;
    let known = registry.models_of(provider).into_iter();
    let ids: Vec<&str> = known.map(|known| known.id.as_str()).collect();
    let nearest = nearest(&model.id, ids.into_iter());
    if nearest.is_empty() {
        return Some(format!(
            "{provider} does not offer the model \"{}\" for this key. Choose another: pinion --list-models",
            model.id
        ));
    }
    Some(format!(
        "{provider} does not offer the model \"{}\" for this key. Nearest models of {provider}: {}. List all: pinion --list-models {provider}",
        model.id,
        nearest.join(", ")
    ))
}

/// The error for a model that does not exist, with the models of similar names: models with credentials, else all.
#[must_use]
pub fn model_not_found(registry: &Registry, model: &str) -> RegistryError {
    let name = model.to_lowercase();
    let near = |models: Vec<&Model>| {
        let mut scored: Vec<(usize, String)> = models
            .into_iter()
            .filter_map(|known| {
                let full = format!("{}/{}", known.provider, known.id);
                let to_full = name.contains('/').then(|| likeness(&name, &full.to_lowercase()));
                Some((
                    to_full.unwrap_or_else(|| likeness(&name, &known.id.to_lowercase()))?,
                    full,
                ))
            })
            .collect();
        scored.sort_unstable();
        scored.dedup();
        scored.truncate(NAMED);
        scored.into_iter().map(|(_, id)| id).collect::<Vec<String>>()
    };
    let mut nearest = near(registry.models());
    if nearest.is_empty() {
        nearest = near(registry.all());
    }
    RegistryError::ModelNotFound {
        model: model.to_owned(),
        nearest,
    }
}

/// How many letters differ between a name and an id; none if more than a third do.
fn likeness(name: &str, id: &str) -> Option<usize> {
    let longest = name.chars().count().max(id.chars().count());
    if longest > LONGEST {
        return None;
    }
    let distance = strsim::osa_distance(name, id);
    (3 * distance <= longest).then_some(distance)
}

/// The ids most like `wanted`, best first, without `wanted` itself.
fn nearest<'a>(wanted: &str, ids: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = wanted.to_lowercase();
    let scored = ids
        .filter(|id| *id != wanted)
        .map(|id| (strsim::osa_distance(&lower, &id.to_lowercase()), id));
    let mut scored: Vec<(usize, &str)> = scored.collect();
    scored.sort_by_key(|(distance, _)| *distance);
    scored.dedup_by_key(|(_, id)| *id);
    scored.into_iter().take(NAMED).map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_model_ids_come_first() {
        let ids = [
            "gpt-4o",
            "claude-opus-5-5",
            "claude-opus-5",
            "claude-sonnet-5",
            "claude-opus-4-9",
        ];
        assert_eq!(
            nearest("claude-opus-5", ids.into_iter()),
            ["claude-opus-5-5", "claude-opus-4-9", "claude-sonnet-5"]
        );
    }

    #[test]
    fn provider_names_are_recognised_in_text() {
        for text in [
            "404 {\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"model: m-1\"}}",
            "404 The model `m-1` does not exist or you do not have access to it.",
            "400 {\"error\":{\"code\":\"model_not_found\"}}",
            "models/m-1 is not found for API version v1beta, or is not supported for generateContent.",
            "400 m-1 is not a valid model ID",
            "ValidationException: The provided model identifier is invalid.",
            "404 No endpoints found for m-1.",
        ] {
            assert!(says_unknown(text, "m-1"), "{text}");
        }
        for text in [
            "404 Not Found",
            "400 temperature is not supported with this model",
            "429 rate limit of model m-1",
            "401 The API key does not exist",
            "The server had an error",
        ] {
            assert!(!says_unknown(text, "m-1"), "{text}");
        }
    }
}
