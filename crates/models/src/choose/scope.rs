//! `--models` and `enabledModels`: the models that `cycle_model` walks (pi-core.md 8.6, behaviour.md 4.3).

use wire::{Model, ThinkingLevel};

use crate::choose::glob::{Glob, is_glob};
use crate::choose::pattern::{Found, Strictness, by_pattern, exact, split_level};
use crate::offline::OFFLINE;
use crate::store::Registry;

/// A model that the user put into the scope.
#[derive(Debug, Clone, PartialEq)]
pub struct Scoped {
    /// The model.
    pub model: Model,
    /// The level of its `:level` suffix.
    pub level: Option<ThinkingLevel>,
}

/// What `cycle_model` came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Cycled {
    /// The next model.
    pub model: Model,
    /// The level to set, when the scope names one.
    pub level: Option<ThinkingLevel>,
    /// True if there was a scope.
    pub is_scoped: bool,
}

/// Resolves the patterns against the models with credentials, in the order of the patterns, each model once. The second part
/// are lines for the user. `newest`: as in today's pi, an id means the model of every provider that has it, and what follows a
/// provider may be a part of an id.
#[must_use]
pub fn scope(registry: &Registry, patterns: &[String], newest: bool) -> (Vec<Scoped>, Vec<String>) {
    for (provider, _) in patterns
        .iter()
        .filter_map(|pattern| pattern.trim().split_once('/'))
    {
        if let Some(id) = super::known_provider(registry, provider) {
            registry.look_if_local(id);
        }
    }
    look_if_alone(registry);
    let available = registry.models();
    let mut scoped: Vec<Scoped> = Vec::new();
    let mut warnings = Vec::new();
    for pattern in patterns
        .iter()
        .map(|pattern| pattern.trim())
        .filter(|pattern| !pattern.is_empty())
    {
        let offline = if names_offline(pattern) {
            registry.models_of(OFFLINE)
        } else {
            Vec::new()
        };
        let models: Vec<&Model> = available.iter().copied().chain(offline).collect();
        let found = matching(pattern, &models, newest, &mut warnings);
        if found.is_empty() {
            warnings.push(format!("No models match pattern \"{pattern}\""));
        }
        for Found {
            model,
            level,
            warning,
        } in found
        {
            warnings.extend(warning);
            let is_same = |other: &Scoped| other.model.is_same(&model.provider, &model.api, &model.id);
            if !scoped.iter().any(is_same) {
                scoped.push(Scoped {
                    model: model.clone(),
                    level,
                });
            }
        }
    }
    (scoped, warnings)
}

/// Local servers are looked for when there is no other model.
pub(super) fn look_if_alone(registry: &Registry) {
    if registry.models().iter().all(|model| model.provider == OFFLINE) {
        registry.look_for_local(None);
    }
}

/// Offline models must be named: `*` does not mean them.
fn names_offline(pattern: &str) -> bool {
    pattern
        .split_once('/')
        .is_some_and(|(provider, _)| provider.eq_ignore_ascii_case(OFFLINE))
}

fn matching<'a>(
    pattern: &str,
    models: &[&'a Model],
    newest: bool,
    warnings: &mut Vec<String>,
) -> Vec<Found<'a>> {
    if !is_glob(pattern) {
        let found = by_pattern(pattern, models, Strictness::Lenient);
        return match found {
            Some(found) if newest => of_every_provider(pattern, found, models, warnings),
            None if newest => part_of_provider(pattern, models).into_iter().collect(),
            found => found.into_iter().collect(),
        };
    }
    let whole = pattern;
    let (pattern, level) = match split_level(whole) {
        Some((rest, level)) => (rest, Some(level)),
        None => (whole, None),
    };
    // An id may have brackets, such as `model[1m]` (pi 1.5.2).
    if let Some(model) = exact(pattern, models) {
        let found = Found {
            model,
            level,
            warning: None,
        };
        return if newest {
            of_every_provider(whole, found, models, warnings)
        } else {
            vec![found]
        };
    }
    let glob = Glob::new(pattern);
    let is_match =
        |model: &Model| glob.matches(&model.id) || glob.matches(&format!("{}/{}", model.provider, model.id));
    let matching = models.iter().filter(|model| is_match(model));
    matching
        .map(|model| Found {
            model,
            level,
            warning: None,
        })
        .collect()
}

/// The found model and those of other providers with its id, unless the pattern names the provider. Credentials cannot decide: all
/// these models have some.
fn of_every_provider<'a>(
    pattern: &str,
    found: Found<'a>,
    models: &[&'a Model],
    warnings: &mut Vec<String>,
) -> Vec<Found<'a>> {
    let names_provider = pattern
        .split_once('/')
        .is_some_and(|(name, _)| name.trim().eq_ignore_ascii_case(&found.model.provider));
    let same = models.iter().copied();
    let same = same.filter(|model| model.id.eq_ignore_ascii_case(&found.model.id));
    let all: Vec<Found<'a>> = same
        .map(|model| Found {
            model,
            level: found.level,
            warning: None,
        })
        .collect();
    let mut providers: Vec<&str> = all.iter().map(|found| found.model.provider.as_str()).collect();
    providers.sort_unstable();
    providers.dedup();
    if names_provider || providers.len() < 2 {
        return vec![found];
    }
    warnings.extend(found.warning);
    warnings.push(format!(
        "Pattern \"{pattern}\" matches several providers: {}. Use provider/id to choose one.",
        providers.join(", ")
    ));
    all
}

/// The best model of the provider that the pattern names, by a part of its id or name.
fn part_of_provider<'a>(pattern: &str, models: &[&'a Model]) -> Option<Found<'a>> {
    let (name, part) = pattern.split_once('/')?;
    let own = models.iter().copied();
    let own = own.filter(|model| model.provider.eq_ignore_ascii_case(name.trim()));
    by_pattern(part, &own.collect::<Vec<_>>(), Strictness::Lenient)
}

/// The model after `current`: within the scope (those with credentials) when there is one, else among all available ones.
/// `None` when there is no other; wraps round; from a model outside the list it goes to the first. `takes_single`: also to the only
/// one, as in today's pi.
#[must_use]
pub fn cycle(registry: &Registry, scope: &[Scoped], current: &Model, takes_single: bool) -> Option<Cycled> {
    let is_scoped = !scope.is_empty();
    let list: Vec<(&Model, Option<ThinkingLevel>)> = if is_scoped {
        let usable = scope
            .iter()
            .filter(|scoped| registry.has_auth(&scoped.model.provider));
        usable.map(|scoped| (&scoped.model, scoped.level)).collect()
    } else {
        registry.models().into_iter().map(|model| (model, None)).collect()
    };
    let is_current = |(model, _): &(&Model, Option<ThinkingLevel>)| {
        model.provider == current.provider && model.id == current.id
    };
    let at = list.iter().position(is_current);
    if list.len() < 2 && (at.is_some() || !takes_single) {
        return None;
    }
    let next = at.map_or(0, |at| (at + 1) % list.len());
    let (model, level) = list.get(next)?;
    Some(Cycled {
        model: (*model).clone(),
        level: *level,
        is_scoped,
    })
}
