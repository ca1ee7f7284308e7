//! The model and thinking level that a session starts with (pi-core.md 8.6).

use std::collections::BTreeMap;

use wire::{Model, ThinkingLevel};

use crate::choose::scope::{Scoped, look_if_alone, scope};
use crate::choose::{Resolved, resolve};
use crate::error::RegistryError;
use crate::nearest::model_not_found;
use crate::store::Registry;

/// Variables that name a server which also needs a key.
const SERVER_VARIABLES: [&str; 2] = ["AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_RESOURCE_NAME"];

/// What the caller knows at start-up.
#[derive(Debug, Clone, Default)]
pub struct StartRequest {
    /// `--provider`; without `model` it means the provider's default model.
    pub provider: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--models`, or `enabledModels` of the settings.
    pub models: Vec<String>,
    /// True if `models` is read as in today's pi; see [`scope`].
    pub newest_patterns: bool,
    /// `--thinking`.
    pub thinking: Option<ThinkingLevel>,
    /// Provider and id that an opened session used last.
    pub session_model: Option<(String, String)>,
    /// The level that an opened session used last.
    pub session_thinking: Option<ThinkingLevel>,
    /// True if the opened session has messages.
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

/// Chooses. Order: `--model`; the default model of `--provider`; the scope, if the session has no messages; the session's last model, if it has credentials; the
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
        scope(registry, &request.models, request.newest_patterns)
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
        None => match &request.provider {
            Some(provider) => Scoped {
                model: provider_model(registry, provider)?.clone(),
                level: None,
            },
            None => without_flag(registry, request, &scope, &mut warnings),
        },
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
    let saved = saved_default(registry, request).and_then(Result::ok);
    let default = saved.or_else(|| provider_default(registry));
    if default.is_none() {
        look_if_alone(registry);
    }
    default
        .or_else(|| registry.models().into_iter().next())
        .unwrap_or_else(|| registry.echo())
}

/// The model that `defaultProvider` and `defaultModel` name, or why there is none. A provider alone needs credentials; with a
/// model, the missing key is reported when the model is asked.
fn saved_default<'a>(
    registry: &'a Registry,
    request: &StartRequest,
) -> Option<Result<&'a Model, RegistryError>> {
    let (provider, id) = (
        request.default_provider.as_deref(),
        request.default_model.as_deref(),
    );
    Some(match (provider, id) {
        (None, None) => return None,
        (Some(provider), Some(id)) => {
            registry.look_if_local(provider);
            let inner = super::strip_provider(id, provider);
            let found = registry
                .find(provider, id)
                .or_else(|| registry.find(provider, inner?));
            found.ok_or_else(|| super::not_found(registry, provider, id))
        }
        (Some(provider), None) => provider_model(registry, provider).and_then(|model| {
            if registry.has_auth(&model.provider) {
                Ok(model)
            } else {
                Err(registry.no_key(&model.provider))
            }
        }),
        (None, Some(id)) => {
            let mut models = registry.models().into_iter();
            let found =
                models.find(|model| model.id == id || format!("{}/{}", model.provider, model.id) == id);
            found.ok_or_else(|| model_not_found(registry, id))
        }
    })
}

/// The model that a provider alone stands for: its default, or its first.
fn provider_model<'a>(registry: &'a Registry, name: &str) -> Result<&'a Model, RegistryError> {
    let id = super::known_provider(registry, name);
    let id = id.ok_or_else(|| RegistryError::UnknownProvider(name.to_owned()))?;
    registry.look_if_local(id);
    let known = registry.catalogue().provider(id);
    let default = known.and_then(|known| registry.find(id, known.default_model()));
    default
        .or_else(|| registry.models_of(id).into_iter().next())
        .ok_or_else(|| registry.no_server(id).unwrap_or_else(|| registry.no_key(id)))
}

/// A default of the settings that cannot be used: another model answers, and the user must hear of it.
fn missed(registry: &Registry, request: &StartRequest) -> Option<String> {
    let error = default_problem(registry, request)?;
    let reason = error.lines().next().unwrap_or_default().to_owned();
    Some(reason)
}

/// Says why the default of the settings cannot be used; `None` if it can, or if there is none.
#[must_use]
pub fn default_problem(registry: &Registry, request: &StartRequest) -> Option<String> {
    let error = saved_default(registry, request)?.err()?;
    let parts = [
        request.default_provider.as_deref(),
        request.default_model.as_deref(),
    ];
    let name = parts.into_iter().flatten().collect::<Vec<_>>().join("/");
    let keys = match parts {
        [Some(_), Some(_)] => "defaultProvider and defaultModel",
        [Some(_), None] => "defaultProvider",
        _ => "defaultModel",
    };
    Some(format!(
        "The default model {name} ({keys} in the settings) is not used: {error}"
    ))
}

/// Lists everything that the user configured to name a model, when none of it can be used, with the reason for each. Empty if
/// nothing was configured. Local servers that were named are asked once more.
#[must_use]
pub fn unusable(registry: &Registry, request: &StartRequest) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    if !request.models.is_empty() {
        let list = request.models.join(", ");
        out.push(format!(
            "No usable model matches {list} (--models, or enabledModels in the settings). List the models: pinion --list-models"
        ));
    }
    out.extend(default_problem(registry, request));
    let errors = [registry.models_file().error(), registry.auth().error()];
    out.extend(errors.into_iter().flatten().map(str::to_owned));
    let stored = registry
        .auth()
        .entries()
        .iter()
        .map(|(id, _)| (id.as_str(), "auth.json"));
    let described = registry
        .models_file()
        .providers()
        .iter()
        .map(|(id, _)| (id.as_str(), "models.json"));
    let named: Vec<(&str, &str)> = stored.chain(described).collect();
    for (id, file) in named {
        let reason = match registry.resolve_key(id, 0) {
            Err(error) => error.to_string(),
            Ok(_) if registry.has_auth(id) => "none of its models can be used".to_owned(),
            Ok(_) => registry.no_key(id).to_string(),
        };
        out.push(format!("{file} names the provider {id}: {reason}"));
    }
    out.extend(unusable_variables(registry));
    out.extend(
        registry
            .local
            .unusable(&registry.credentials, &registry.providers),
    );
    out
}

/// Variables of providers that are set although no model can be used, one sentence each.
fn unusable_variables(registry: &Registry) -> Vec<String> {
    let is_set = |name: &&str| registry.credentials.process_variable(name).is_some();
    let mut out = Vec::new();
    for known in registry.catalogue().providers() {
        let id = known.id();
        for name in known.key_variables().iter().map(String::as_str).filter(is_set) {
            out.push(format!(
                "{name} is set, but no model of the provider {id} can be used. Check with: pinion doctor"
            ));
        }
    }
    for name in SERVER_VARIABLES.iter().copied().filter(is_set) {
        out.push(format!(
            "{name} is set, but its provider has no key. {}",
            registry.no_key("azure-openai-responses")
        ));
    }
    out
}

/// The default model of the first provider with credentials, in the order of defaults.
fn provider_default(registry: &Registry) -> Option<&Model> {
    let mut providers: Vec<_> = registry.catalogue().providers().iter().collect();
    providers.sort_by_key(|provider| provider.rank());
    let usable = providers
        .into_iter()
        .filter(|provider| registry.has_auth(provider.id()));
    // A provider with a key but an unsupported API must not hide usable providers after it.
    usable
        .filter_map(|provider| registry.find(provider.id(), provider.default_model()))
        .find(|model| llm::supports(&model.api))
}
