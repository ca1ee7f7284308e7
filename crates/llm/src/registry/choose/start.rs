//! The model and thinking level that a session starts with (pi-core.md 8.6, DESIGN "Default model").

use std::collections::BTreeMap;

use wire::{Model, ThinkingLevel};

use crate::registry::choose::scope::{Scoped, look_if_alone, scope};
use crate::registry::choose::{Resolved, resolve};
use crate::registry::error::RegistryError;
use crate::registry::store::Registry;

/// What the caller knows at start-up.
#[derive(Debug, Clone, Default)]
pub struct StartRequest {
    /// `--provider`; only used together with `model`.
    pub provider: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--models`, or `enabledModels` of the settings.
    pub models: Vec<String>,
    /// `--thinking`.
    pub thinking: Option<ThinkingLevel>,
    /// Provider and id that an opened session used last.
    pub session_model: Option<(String, String)>,
    /// The level that an opened session used last.
    pub session_thinking: Option<ThinkingLevel>,
    /// Does the opened session have messages?
    pub has_messages: bool,
    /// `defaultProvider` of the settings.
    pub default_provider: Option<String>,
    /// `defaultModel` of the settings.
    pub default_model: Option<String>,
    /// `defaultThinkingLevel` of the settings.
    pub default_thinking: Option<ThinkingLevel>,
    /// `modelThinkingLevels` of the settings: the default of single models, by `provider/id`.
    pub model_thinking: BTreeMap<String, ThinkingLevel>,
}

/// What a session starts with.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The model; always one, `offline/echo` in the end.
    pub model: Model,
    /// A level that the model offers.
    pub thinking: ThinkingLevel,
    /// The scope of `cycle_model`; empty means all available models.
    pub scope: Vec<Scoped>,
    /// Lines for the user.
    pub warnings: Vec<String>,
}

/// Chooses. Order: `--model`; the scope, if the session has no messages; the session's last model, if it has credentials; the
/// settings' default, with or without credentials; the first provider default with credentials; the first available model;
/// the first model of a local server; `offline/echo`. Local servers are asked only where one is named or nothing else is
/// left: see [`Registry::look_for_local`].
///
/// # Errors
/// Only from `--model` and `--provider`: see [`resolve`].
pub fn start(registry: &Registry, request: &StartRequest) -> Result<Start, RegistryError> {
    let (scope, mut warnings) = if request.models.is_empty() {
        (Vec::new(), Vec::new())
    } else {
        scope(registry, &request.models)
    };
    let chosen = match &request.model {
        Some(pattern) => {
            let Resolved {
                model,
                level,
                warnings: more,
            } = resolve(registry, request.provider.as_deref(), pattern)?;
            warnings.extend(more);
            Scoped { model, level }
        }
        None => without_flag(registry, request, &scope, &mut warnings),
    };
    let thinking = request.thinking.or(chosen.level).or(request.session_thinking);
    let name = format!("{}/{}", chosen.model.provider, chosen.model.id);
    let own = request.model_thinking.get(&name).copied();
    let thinking = thinking.or(own).or(request.default_thinking).unwrap_or_default();
    let thinking = chosen.model.clamp_thinking(thinking);
    Ok(Start {
        model: chosen.model,
        thinking,
        scope,
        warnings,
    })
}

fn without_flag(
    registry: &Registry,
    request: &StartRequest,
    scope: &[Scoped],
    warnings: &mut Vec<String>,
) -> Scoped {
    if !request.has_messages {
        let saved = |scoped: &&Scoped| {
            request.default_provider.as_ref() == Some(&scoped.model.provider)
                && request.default_model.as_ref() == Some(&scoped.model.id)
        };
        if let Some(scoped) = scope.iter().find(saved).or_else(|| scope.first()) {
            return scoped.clone();
        }
    }
    let mut lost = None;
    if let Some((provider, id)) = &request.session_model {
        registry.look_if_local(provider);
        match registry
            .find(provider, id)
            .filter(|_| registry.has_auth(provider))
        {
            Some(model) => {
                return Scoped {
                    model: model.clone(),
                    level: None,
                };
            }
            None => lost = Some(format!("{provider}/{id}")),
        }
    }
    let model = fallback(registry, request).clone();
    warnings.extend(missed(registry, request));
    if let Some(lost) = lost {
        warnings.push(format!(
            "Could not restore model {lost}. Using {}/{}",
            model.provider, model.id
        ));
    }
    Scoped { model, level: None }
}

fn fallback<'a>(registry: &'a Registry, request: &StartRequest) -> &'a Model {
    let (provider, id) = (
        request.default_provider.as_deref(),
        request.default_model.as_deref(),
    );
    let saved = provider.zip(id).and_then(|(provider, id)| {
        registry.look_if_local(provider);
        registry.find(provider, id)
    });
    let default = saved.or_else(|| provider_default(registry));
    if default.is_none() {
        look_if_alone(registry);
    }
    default
        .or_else(|| registry.models().into_iter().next())
        .unwrap_or_else(|| registry.echo())
}

/// A default of the settings that a local server does not have now: who counts on a model at home must hear that another
/// one answers.
fn missed(registry: &Registry, request: &StartRequest) -> Option<String> {
    let provider = request.default_provider.as_deref()?;
    let id = request.default_model.as_deref()?;
    if !registry.is_local(provider) || registry.find(provider, id).is_some() {
        return None;
    }
    let error = registry.not_served(provider, id)?.to_string();
    let reason = error.lines().next().unwrap_or_default();
    Some(format!("The default model {provider}/{id} is not used: {reason}"))
}

/// The default model of the first provider with credentials, in the order of defaults.
fn provider_default(registry: &Registry) -> Option<&Model> {
    let mut providers: Vec<_> = registry.catalogue().providers().iter().collect();
    providers.sort_by_key(|provider| provider.rank());
    let usable = providers
        .into_iter()
        .filter(|provider| registry.has_auth(provider.id()));
    // Keys of a provider whose API is not spoken here must not stand in the way of those that are.
    usable
        .filter_map(|provider| registry.find(provider.id(), provider.default_model()))
        .find(|model| crate::supports(&model.api))
}
