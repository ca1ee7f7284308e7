//! Matching a text against models: exact id, `provider/id`, part of an id or name, `:level` suffix (pi-core.md 8.6).

use wire::{Model, ThinkingLevel};

/// A match.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found<'a> {
    pub(crate) model: &'a Model,
    pub(crate) level: Option<ThinkingLevel>,
    pub(crate) warning: Option<String>,
}

/// What to do with a suffix that is no thinking level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// No match (`--model`).
    Strict,
    /// Leave it out and say so (`--models`).
    Lenient,
}

/// The model with exactly this id or `provider/id`, in any case. Of several, the first.
pub(crate) fn exact<'a>(text: &str, models: &[&'a Model]) -> Option<&'a Model> {
    let text = text.to_lowercase();
    let is = |model: &&&Model| {
        let id = model.id.to_lowercase();
        id == text || format!("{}/{id}", model.provider.to_lowercase()) == text
    };
    models.iter().find(is).copied()
}

/// Cuts a valid `:level` suffix off.
pub(crate) fn split_level(text: &str) -> Option<(&str, ThinkingLevel)> {
    let (rest, suffix) = text.rsplit_once(':')?;
    Some((rest, ThinkingLevel::parse(suffix)?))
}

/// The best match of a pattern: the whole text first, then without its suffixes.
pub(crate) fn by_pattern<'a>(text: &str, models: &[&'a Model], strictness: Strictness) -> Option<Found<'a>> {
    if text.trim().is_empty() {
        return None;
    }
    if let Some(model) = exact(text, models).or_else(|| partial(text, models)) {
        return Some(Found {
            model,
            level: None,
            warning: None,
        });
    }
    let (rest, suffix) = text.rsplit_once(':')?;
    match ThinkingLevel::parse(suffix) {
        Some(level) => {
            let mut found = by_pattern(rest, models, strictness)?;
            // With an invalid suffix the pattern was not understood, so a level before it must not count.
            found.level = found.warning.is_none().then_some(level);
            Some(found)
        }
        None if strictness == Strictness::Strict => None,
        None => {
            let mut found = by_pattern(rest, models, strictness)?;
            found.level = None;
            found.warning = Some(format!(
                "Invalid thinking level \"{suffix}\" in pattern \"{text}\". Using default instead."
            ));
            Some(found)
        }
    }
}

/// The best model whose id or name contains the text: ids without a date before dated ones, then the highest id.
fn partial<'a>(text: &str, models: &[&'a Model]) -> Option<&'a Model> {
    let text = text.to_lowercase();
    let mut best: Option<(bool, String, &Model)> = None;
    for model in models {
        let id = model.id.to_lowercase();
        if !id.contains(&text) && !model.name.to_lowercase().contains(&text) {
            continue;
        }
        let alias = !is_dated(&id);
        let better = best
            .as_ref()
            .is_none_or(|(old_alias, old, _)| (alias, &id) > (*old_alias, old));
        if better {
            best = Some((alias, id, model));
        }
    }
    best.map(|(_, _, model)| model)
}

/// Returns true if the id ends in `-YYYYMMDD`.
fn is_dated(id: &str) -> bool {
    let date = id.rsplit_once('-').map(|(_, date)| date);
    date.is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}
