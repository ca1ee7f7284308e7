//! Which model: `--provider`/`--model`, `--models`, the one a session starts with, the next one (pi-core.md 8.6). Here: the
//! meaning of `--model`. In `pattern`: matching a text against models. In `scope`: `--models` and cycling. In `start`: the
//! order of sources at start-up.

mod glob;
mod pattern;
mod scope;
mod start;

use auth::login::alias::old_name;
use wire::{Model, ThinkingLevel};

use crate::catalogue::Provider;
use crate::error::RegistryError;
use crate::nearest::model_not_found;
use crate::offline::OFFLINE;
use crate::store::Registry;
use pattern::{Found, Strictness, by_pattern, exact, split_level};

pub use scope::{Cycled, Scoped, cycle, scope};
pub use start::{Start, StartRequest, default_problem, start, unusable};

/// What `--model` came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The model; synthetic when the provider does not list the id.
    pub model: Model,
    /// The level of a `:level` suffix.
    pub level: Option<ThinkingLevel>,
    /// Lines for the user.
    pub warnings: Vec<String>,
}

impl Resolved {
    fn new(found: &Found<'_>) -> Self {
        let warnings = found.warning.iter().cloned().collect();
        Self {
            model: found.model.clone(),
            level: found.level,
            warnings,
        }
    }
}

/// Finds the model that `--model` (and `--provider`) mean. Credentials are not required, but where several models match, those
/// with credentials come first, then the providers in the order of defaults.
///
/// # Errors
/// [`RegistryError::UnknownProvider`], [`RegistryError::ModelNotFound`].
pub fn resolve(
    registry: &Registry,
    provider: Option<&str>,
    pattern: &str,
) -> Result<Resolved, RegistryError> {
    if let Some(name) = provider {
        let id =
            known_provider(registry, name).ok_or_else(|| RegistryError::UnknownProvider(name.to_owned()))?;
        let inner = strip_provider(pattern, id).unwrap_or(pattern);
        registry.look_if_local(id);
        let found = find_in(registry, id, inner).or_else(|| synthetic(registry, id, inner));
        return found.ok_or_else(|| not_found(registry, id, inner));
    }
    let named = pattern
        .split_once('/')
        .and_then(|(name, inner)| Some((known_provider(registry, name)?, inner)));
    let Some((id, inner)) = named else {
        let found = anywhere(registry, pattern, true).or_else(|| {
            registry.look_for_local(None);
            anywhere(registry, pattern, true)
        });
        return found.ok_or_else(|| model_not_found(registry, pattern));
    };
    registry.look_if_local(id);
    find_in(registry, id, inner)
        .or_else(|| anywhere(registry, pattern, false))
        .or_else(|| synthetic(registry, id, inner))
        .ok_or_else(|| not_found(registry, id, inner))
}

fn not_found(registry: &Registry, provider: &str, id: &str) -> RegistryError {
    if registry.is_only_local(provider) {
        let silent = registry.no_server(provider);
        return silent.unwrap_or_else(|| registry.local.no_model(provider, id));
    }
    model_not_found(registry, &format!("{provider}/{id}"))
}

fn known_provider<'a>(registry: &'a Registry, name: &str) -> Option<&'a str> {
    let known = |name: &str| registry.provider_ids().find(|id| id.eq_ignore_ascii_case(name));
    known(name).or_else(|| known(old_name(name)?))
}

fn strip_provider<'a>(pattern: &'a str, provider: &str) -> Option<&'a str> {
    let (name, inner) = pattern.split_once('/')?;
    let same = name.eq_ignore_ascii_case(provider) || old_name(name) == Some(provider);
    same.then_some(inner)
}

fn find_in(registry: &Registry, provider: &str, pattern: &str) -> Option<Resolved> {
    let models = registry.models_of(provider);
    by_pattern(pattern, &models, Strictness::Strict).map(|found| Resolved::new(&found))
}

/// Exact ids among the models with credentials, then among all; then, when `loosely`, parts of ids and names in the same two
/// steps. The whole catalogue is read only when the available models do not answer.
fn anywhere(registry: &Registry, pattern: &str, loosely: bool) -> Option<Resolved> {
    let available = preferred(registry, registry.models());
    if let Some(found) = exact_or_level(pattern, &available) {
        return Some(Resolved::new(&found));
    }
    let all = preferred(registry, registry.all());
    let found = exact_or_level(pattern, &all).or_else(|| {
        let part = |models| by_pattern(pattern, models, Strictness::Strict);
        if loosely {
            part(&available).or_else(|| part(&all))
        } else {
            None
        }
    });
    found.map(|found| Resolved::new(&found))
}

fn exact_or_level<'a>(pattern: &str, models: &[&'a Model]) -> Option<Found<'a>> {
    let plain = exact(pattern, models).map(|model| Found {
        model,
        level: None,
        warning: None,
    });
    plain.or_else(|| {
        let (id, level) = split_level(pattern)?;
        Some(Found {
            model: exact(id, models)?,
            level: Some(level),
            warning: None,
        })
    })
}

/// Models of better providers first: the user's own, then the order of defaults; otherwise as they come.
fn preferred<'a>(registry: &Registry, mut models: Vec<&'a Model>) -> Vec<&'a Model> {
    models.sort_by_key(|model| match model.provider.as_str() {
        OFFLINE => Some(usize::MAX),
        local if registry.is_only_local(local) => Some(usize::MAX - 1),
        id => registry.catalogue().provider(id).map(Provider::rank),
    });
    models
}

/// The provider's default model under another id, for models that the catalogue does not list yet.
fn synthetic(registry: &Registry, provider: &str, pattern: &str) -> Option<Resolved> {
    let (id, level) = match split_level(pattern) {
        Some((id, level)) => (id, Some(level)),
        None => (pattern, None),
    };
    // A local server says itself what it has.
    if id.is_empty() || registry.is_only_local(provider) {
        return None;
    }
    let default = registry
        .catalogue()
        .provider(provider)
        .map(|known| known.default_model());
    let base = default.and_then(|default| registry.find(provider, default));
    let mut model = base
        .or_else(|| registry.models_of(provider).into_iter().next())?
        .clone();
    model.id = id.to_owned();
    model.name = id.to_owned();
    // A level in the pattern means that the model reasons (pi 1.5.2).
    model.reasoning |= level.is_some_and(|level| level != ThinkingLevel::Off);
    let warning = format!("Model \"{id}\" not found for provider \"{provider}\". Using custom model id.");
    Some(Resolved {
        model,
        level,
        warnings: vec![warning],
    })
}
