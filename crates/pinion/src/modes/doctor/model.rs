//! Section: the model that a new session would start with, the reason, and whether it is usable. Sends no request.

use auth::login::AuthEntry;
use config::settings::{FoundKey, KeyUse, SettingsFile};
use models::{KeySource, Start, start};
use serde_json::{Value, json};
use wire::{Model, ThinkingLevel};

use super::report::{Mark, Problem, Section, Verdict};
use super::{Patient, keys};

/// Who chose the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chooser {
    Flag,
    Scope,
    Settings,
    ProviderDefault,
    FirstUsable,
    /// The first model of the first local server that answered.
    FirstFound,
    /// No chooser found a usable model; the offline model stands in.
    Nobody,
}

pub(super) fn section(patient: &Patient<'_>) -> (Section, Verdict) {
    let mut section = Section::new("model", "Model");
    let chosen = match start(&patient.registry, &patient.start) {
        Ok(chosen) => chosen,
        Err(error) => {
            let message = error.to_string();
            section.marked(Mark::Bad, "model", message.clone());
            section.problems.push(Problem::error(message.clone()));
            section.data = json!({ "error": message });
            list_row(&mut section, patient);
            let advice = "Look for a name with  pinion --list-models  and give it with --model.".to_owned();
            return (section, refused(&message, advice));
        }
    };
    for warning in &chosen.warnings {
        section.warn(warning.clone());
    }
    let chooser = chooser(patient, &chosen);
    forgotten_default(&mut section, patient);
    let model = &chosen.model;
    let outcome = usable(patient, model, chooser);
    let mark = if outcome.is_ok() { Mark::Good } else { Mark::Bad };
    let name = format!("{}/{}", model.provider, model.id);
    let why = why(patient, chooser);
    section.marked(mark, "model", format!("{name}  ({})", model.name));
    section.row("chosen by", why.clone());
    if let Ok(from) = &outcome {
        section.row("key from", from.clone());
    }
    let (level, level_why) = (chosen.thinking, thinking_why(patient, &chosen));
    section.row("thinking", format!("{} ({level_why})", level.as_str()));
    scope_row(&mut section, &chosen);
    section.data = data(&chosen, &why, &level_why, outcome.as_ref().ok());
    list_row(&mut section, patient);
    let verdict = match outcome {
        Ok(_) => Verdict {
            ready: true,
            headline: format!("Ready: {name} can be asked. Try:  pinion -p \"Hello\""),
            advice: None,
        },
        Err((headline, advice)) => {
            section.problems.push(Problem::error(headline.clone()));
            refused(&headline, advice)
        }
    };
    (section, verdict)
}

/// Days after which a list of models is called old.
const OLD_DAYS: i64 = 60;

/// The list of known models and its age. New models and new prices are missing in an old one.
fn list_row(section: &mut Section, patient: &Patient<'_>) {
    let list = patient.registry.catalogue().list();
    let age = list.age_days(patient.now);
    let days = match age {
        Some(1) => "1 day old".to_owned(),
        Some(days) => format!("{days} days old"),
        None => "of unknown age".to_owned(),
    };
    let text = format!(
        "{} models from {} of {}, {days}",
        list.models,
        list.source,
        list.day()
    );
    let is_old = age.is_none_or(|days| days > OLD_DAYS);
    section.marked(if is_old { Mark::Odd } else { Mark::None }, "list", text);
    if is_old {
        section.row("", "Renew it: pinion models update");
    }
    if let Some(data) = section.data.as_object_mut() {
        let list = json!({"source": list.source, "date": list.fetched, "ageDays": age, "models": list.models,
            "providers": list.providers});
        data.insert("list".to_owned(), list);
    }
}

fn refused(headline: &str, advice: String) -> Verdict {
    Verdict {
        ready: false,
        headline: format!("Not ready: {headline}"),
        advice: Some(advice),
    }
}

fn data(chosen: &Start, why: &str, level_why: &str, key_from: Option<&String>) -> Value {
    let model = &chosen.model;
    let scope = chosen
        .scope
        .iter()
        .map(|scoped| format!("{}/{}", scoped.model.provider, scoped.model.id));
    json!({
        "provider": model.provider, "id": model.id, "name": model.name, "api": model.api, "chosenBy": why,
        "contextWindow": model.context_window, "maxTokens": model.max_tokens, "thinking": chosen.thinking.as_str(),
        "thinkingBy": level_why, "keyFrom": key_from, "scope": scope.collect::<Vec<_>>(),
    })
}

fn scope_row(section: &mut Section, chosen: &Start) {
    if !chosen.scope.is_empty() {
        let ids: Vec<&str> = chosen
            .scope
            .iter()
            .map(|scoped| scoped.model.id.as_str())
            .collect();
        section.row("to switch among", ids.join(", "));
    }
}

/// The model of `defaultProvider` and `defaultModel`, if it exists.
fn saved<'a>(patient: &'a Patient<'_>) -> Option<&'a Model> {
    let start = &patient.start;
    let (provider, id) = start
        .default_provider
        .as_deref()
        .zip(start.default_model.as_deref())?;
    patient.registry.find(provider, id)
}

fn chooser(patient: &Patient<'_>, chosen: &Start) -> Chooser {
    let model = &chosen.model;
    let catalogue = patient.registry.catalogue();
    let default = catalogue
        .provider(&model.provider)
        .map(|known| known.default_model());
    if patient.start.model.is_some() {
        Chooser::Flag
    } else if !chosen.scope.is_empty() {
        Chooser::Scope
    } else if saved(patient).is_some() {
        Chooser::Settings
    } else if default == Some(model.id.as_str()) {
        Chooser::ProviderDefault
    } else if patient.registry.is_local(&model.provider) {
        Chooser::FirstFound
    } else if patient.registry.key_source(&model.provider) == Some(KeySource::None) {
        Chooser::Nobody
    } else {
        Chooser::FirstUsable
    }
}

fn why(patient: &Patient<'_>, chooser: Chooser) -> String {
    let file = |key: &str| setting_of(patient, key).unwrap_or_else(|| "the settings".to_owned());
    match chooser {
        Chooser::Flag => "--model".to_owned(),
        Chooser::Scope if patient.args.models.is_empty() => {
            format!("enabledModels in {}", file("enabledModels"))
        }
        Chooser::Scope => "--models".to_owned(),
        Chooser::Settings => format!("defaultProvider and defaultModel in {}", file("defaultModel")),
        Chooser::ProviderDefault => {
            "default: it is the default model of the first provider with a key".to_owned()
        }
        Chooser::FirstFound => {
            "default: no provider has a key, and a server of your own has this model".to_owned()
        }
        Chooser::FirstUsable => "default: it is the first model with a key".to_owned(),
        Chooser::Nobody => "default: no provider has a key, so the built-in offline model answers".to_owned(),
    }
}

/// The file whose value of a key counts.
fn setting_of(patient: &Patient<'_>, key: &str) -> Option<String> {
    let is_key = |found: &FoundKey| match &found.usage {
        KeyUse::Renamed(name) => *name == key,
        _ => found.key == key,
    };
    let has = |file: &&SettingsFile| file.keys.iter().any(is_key);
    let file = patient.settings.files.iter().rev().find(has)?;
    Some(patient.short(&file.path))
}

fn thinking_why(patient: &Patient<'_>, chosen: &Start) -> String {
    let start = &patient.start;
    let level = |level: Option<ThinkingLevel>| level.filter(|_| start.thinking.is_none());
    let suffix = suffix_level(patient, chosen);
    let (wanted, by) = if let Some(level) = start.thinking {
        (level, "--thinking".to_owned())
    } else if let Some(level) = level(suffix) {
        (level, "said with the model's name".to_owned())
    } else if let Some(level) = start.default_thinking {
        let file = setting_of(patient, "defaultThinkingLevel").unwrap_or_default();
        (level, format!("defaultThinkingLevel in {file}"))
    } else {
        (ThinkingLevel::default(), "default".to_owned())
    };
    match wanted == chosen.thinking {
        true => by,
        false if !chosen.model.reasoning => {
            format!("{by}: {}, but this model does not think", wanted.as_str())
        }
        false => format!("{by}: {}, fitted to the model", wanted.as_str()),
    }
}

/// The `:level` that came with the chosen model.
fn suffix_level(patient: &Patient<'_>, chosen: &Start) -> Option<ThinkingLevel> {
    let start = &patient.start;
    if let Some(pattern) = &start.model {
        let resolved = models::resolve(&patient.registry, start.provider.as_deref(), pattern);
        return resolved.ok()?.level;
    }
    let same = |other: &Model| other.is_same(&chosen.model.provider, &chosen.model.api, &chosen.model.id);
    chosen.scope.iter().find(|scoped| same(&scoped.model))?.level
}

/// A default that names no model is passed over silently at start; here it is said.
fn forgotten_default(section: &mut Section, patient: &Patient<'_>) {
    let start = &patient.start;
    let message = match (&start.default_provider, &start.default_model) {
        (Some(provider), Some(id)) if saved(patient).is_none() => {
            format!("The default model of the settings, {provider}/{id}, is not known and is passed over")
        }
        (None, Some(_)) => "defaultModel does not count without defaultProvider".to_owned(),
        (Some(_), None) => "defaultProvider does not count without defaultModel".to_owned(),
        _ => return,
    };
    section.warn(message);
}

/// Returns the source of the key, or the problem and its solution.
fn usable(patient: &Patient<'_>, model: &Model, chooser: Chooser) -> Result<String, (String, String)> {
    let registry = &patient.registry;
    let provider = model.provider.as_str();
    if chooser == Chooser::Nobody {
        return Err(("no provider has a key.".to_owned(), first_steps(patient)));
    }
    if !llm::supports(&model.api) {
        let headline = format!("{provider} speaks {}, which is not built in yet.", model.api);
        return Err((
            headline,
            "Choose a model of another provider with --model.".to_owned(),
        ));
    }
    let Some(source) = registry.key_source(provider) else {
        let error = registry.no_key(provider).to_string();
        let (headline, advice) = error.split_once("\n\n").unwrap_or((&error, ""));
        let mut lines = vec![advice.to_owned()];
        lines.extend(another(patient));
        return Err((lower_first(headline), lines.join("\n")));
    };
    // A login that is renewed when it is needed has not run out.
    if source == KeySource::Oauth
        && auth::login::way(provider).is_none()
        && let Some(AuthEntry::Oauth { expires, .. }) = registry.auth().entry(provider)
    {
        #[expect(clippy::cast_precision_loss, reason = "times stay far below 2^53")]
        let is_over = patient.now as f64 >= *expires;
        if is_over {
            let headline = format!("the login for {provider} has run out.");
            let advice = format!(
                "Log in again with the agent that made it, or store a key in its place: pinion auth login {provider} --api-key"
            );
            return Err((headline, advice));
        }
    }
    registry
        .base_url(model)
        .map_err(|error| (lower_first(&error.to_string()), "Set this variable.".to_owned()))?;
    Ok(keys::from(&source))
}

/// A model that could be asked instead: the default of a provider that has a key.
fn another(patient: &Patient<'_>) -> Option<String> {
    let registry = &patient.registry;
    let ready = |id: &&str| {
        registry
            .key_source(id)
            .is_some_and(|source| source != KeySource::None)
    };
    let mut models = registry.provider_ids().filter(ready).filter_map(|id| {
        let default = registry
            .catalogue()
            .provider(id)
            .map(|known| known.default_model());
        let model = default.and_then(|default| registry.find(id, default));
        model.or_else(|| registry.models_of(id).into_iter().next())
    });
    let model = models.find(|model| llm::supports(&model.api))?;
    let (provider, id) = (&model.provider, &model.id);
    Some(format!(
        "Or take a provider that has a key:  --model {provider}/{id}"
    ))
}

/// Returns the first steps after an installation.
fn first_steps(patient: &Patient<'_>) -> String {
    let dir = patient.short(&patient.env.agent_dir);
    let mut lines = Vec::new();
    if patient.registry.models_file().error().is_some() {
        lines.push(format!(
            "{dir}/models.json is broken: what it defines comes back once it is repaired."
        ));
    }
    if patient.registry.auth().error().is_some() {
        lines.push(format!(
            "{dir}/auth.json is broken: its keys come back once it is repaired."
        ));
    }
    lines.push("Set the API key of a provider, for example".to_owned());
    lines.push(
        "  export ANTHROPIC_API_KEY=...    (or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY)"
            .to_owned(),
    );
    lines.push(
        "or store it (pinion auth login PROVIDER --api-key), or start a local server (ollama, llama.cpp, LM Studio, vLLM)."
            .to_owned(),
    );
    lines.push("Until then the built-in offline model answers. It is not an AI.".to_owned());
    lines.join("\n")
}

fn lower_first(text: &str) -> String {
    // Names in capitals (variables, "API") stay.
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            format!("{}{second}{}", first.to_lowercase(), letters.as_str())
        }
        _ => text.to_owned(),
    }
}
