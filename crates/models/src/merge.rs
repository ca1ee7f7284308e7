//! Lays one provider of `models.json` over its built-in models (pi-core.md 8.2). Not here: reading either of them.

use auth::secrets::open_url;
use serde_json::{Map, Value};
use wire::model::{InputLimits, Modality};
use wire::{Model, ThinkingLevel};

use crate::catalogue::Listed;
use crate::limits::{DEFAULT_CONTEXT, DEFAULT_OUTPUT};
use crate::models_file::{Headers, ModelDef, OverrideDef, ProviderDef};

/// A provider's models after merging.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Built-in models, changed or replaced in place.
    pub(crate) base: Vec<Listed>,
    /// Models that only `models.json` has, in file order; in the registry they come after all built-in ones.
    pub(crate) added: Vec<Listed>,
}

impl Entries {
    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Listed> {
        self.base.iter().chain(&self.added)
    }

    /// Removes keys from the addresses of models, since clients see models. The full address is stored separately.
    pub(crate) fn hide_url_secrets(&mut self) {
        for listed in self.base.iter_mut().chain(&mut self.added) {
            let open = open_url(&listed.model.base_url);
            if open != listed.model.base_url {
                listed.address = Some(std::mem::replace(&mut listed.model.base_url, open));
            }
        }
    }
}

/// Merges; `built_in` is empty for a provider that the catalogue does not know.
pub(crate) fn merge(provider: &str, built_in: &[Listed], def: Option<&ProviderDef>) -> Entries {
    let mut entries = Entries {
        base: built_in.to_vec(),
        added: Vec::new(),
    };
    let Some(def) = def else { return entries };
    for listed in &mut entries.base {
        if let Some(url) = &def.base_url {
            listed.model.base_url.clone_from(url);
        }
        merge_compat(&mut listed.model.compat, def.compat.as_ref());
        merge_headers(&mut listed.headers, &def.headers);
    }
    for model in &def.models {
        let pattern = pattern_of(built_in, &model.id, model.api.as_ref().or(def.api.as_ref()));
        let listed = own_model(provider, def, model, pattern);
        let same = |other: &&mut Listed| other.model.id == model.id;
        match entries.base.iter_mut().chain(&mut entries.added).find(same) {
            Some(slot) => *slot = listed,
            None => entries.added.push(listed),
        }
    }
    // Last, so that they count for models of the file, too (pi 1.5.2).
    for listed in entries.base.iter_mut().chain(&mut entries.added) {
        let id = listed.model.id.as_str();
        if let Some((_, change)) = def.overrides.iter().find(|(model, _)| model == id) {
            apply(listed, change);
        }
    }
    entries
}

/// The built-in model whose API and address a model of `models.json` has unless it names its own: that of the same id, else the first
/// of the wanted API, of chat completions, or of all (pi 1.5.2).
fn pattern_of<'a>(built_in: &'a [Listed], id: &str, api: Option<&String>) -> Option<&'a Model> {
    let find = |fits: &dyn Fn(&Model) -> bool| {
        built_in
            .iter()
            .map(|listed| &listed.model)
            .find(|model| fits(model))
    };
    find(&|model| model.id == id)
        .or_else(|| api.and_then(|api| find(&|model| model.api == *api)))
        .or_else(|| find(&|model| model.api == "openai-completions"))
        .or_else(|| find(&|_| true))
}

fn own_model(provider: &str, def: &ProviderDef, own: &ModelDef, pattern: Option<&Model>) -> Listed {
    let pick = |own: &Option<String>, shared: &Option<String>, built_in: Option<&String>| {
        own.as_ref()
            .or(shared.as_ref())
            .or(built_in)
            .cloned()
            .unwrap_or_default()
    };
    let mut compat = def.compat.clone();
    merge_compat(&mut compat, own.compat.as_ref());
    let mut headers = Vec::new();
    merge_headers(&mut headers, &def.headers);
    merge_headers(&mut headers, &own.headers);
    let mut model = Model {
        id: own.id.clone(),
        name: own.name.clone().unwrap_or_else(|| own.id.clone()),
        api: pick(&own.api, &def.api, pattern.map(|model| &model.api)),
        provider: provider.to_owned(),
        base_url: pick(&own.base_url, &def.base_url, pattern.map(|model| &model.base_url)),
        reasoning: own.reasoning,
        thinking_level_map: own.thinking_level_map.clone(),
        input: own.input.clone().unwrap_or_else(|| vec![Modality::Text]),
        cost: own.cost.clone().map(Into::into).unwrap_or_default(),
        context_window: own.context_window.unwrap_or(DEFAULT_CONTEXT),
        max_tokens: own.max_tokens.unwrap_or(DEFAULT_OUTPUT),
        compat,
        input_limits: own.hosting.input_limits.clone(),
        prompt_cache: own.hosting.prompt_cache,
        sampling_params: own.sampling_params.clone().map(Box::new),
        sampling_params_by_thinking_level: own.sampling_params_by_thinking_level.clone().map(Box::new),
        kind: None,
    };
    if def.has_omp_levels && model.reasoning && model.thinking_level_map.is_none() {
        model.thinking_level_map = omp_levels(own, &model);
    }
    Listed {
        model,
        headers,
        address: None,
    }
}

/// The levels that oh-my-pi gives a model: those of its member `thinking`, else the defaults of its API.
fn omp_levels(own: &ModelDef, model: &Model) -> Option<Map<String, Value>> {
    let thinking = own.hosting.thinking.as_ref();
    let named = thinking.and_then(|thinking| thinking.get("efforts").or_else(|| thinking.get("levels")));
    let Some(named) = named.and_then(Value::as_array).filter(|named| !named.is_empty()) else {
        return llm::takes_xhigh(model).then(|| Map::from_iter([("xhigh".to_owned(), "xhigh".into())]));
    };
    let words = thinking.and_then(|thinking| thinking.get("effortMap"));
    let levels = ThinkingLevel::ALL.into_iter().skip(1);
    let value = |level: ThinkingLevel| {
        let name = level.as_str();
        let word = words.and_then(|words| words.get(name)?.as_str());
        // Without a value, these two would not exist.
        let word = word.or((level >= ThinkingLevel::Xhigh).then_some(name));
        match named.iter().any(|listed| listed.as_str() == Some(name)) {
            true => Some((name.to_owned(), word?.into())),
            false => Some((name.to_owned(), Value::Null)),
        }
    };
    Some(levels.filter_map(value).collect())
}

fn apply(listed: &mut Listed, change: &OverrideDef) {
    let model = &mut listed.model;
    if let Some(name) = &change.name {
        model.name.clone_from(name);
    }
    model.reasoning = change.reasoning.unwrap_or(model.reasoning);
    if let Some(input) = &change.input {
        model.input.clone_from(input);
    }
    if let Some(cost) = &change.cost {
        cost.apply(&mut model.cost);
    }
    model.context_window = change.context_window.unwrap_or(model.context_window);
    model.max_tokens = change.max_tokens.unwrap_or(model.max_tokens);
    if let Some(levels) = &change.thinking_level_map {
        model
            .thinking_level_map
            .get_or_insert_default()
            .extend(levels.clone());
    }
    merge_compat(&mut model.compat, change.compat.as_ref());
    if let Some(params) = &change.sampling_params {
        model
            .sampling_params
            .get_or_insert_default()
            .extend(params.clone());
    }
    if let Some(levels) = &change.sampling_params_by_thinking_level {
        merge_levels(
            model.sampling_params_by_thinking_level.get_or_insert_default(),
            levels,
        );
    }
    if let Some(limits) = &change.hosting.input_limits {
        merge_limits(listed.model.input_limits.get_or_insert_default(), limits);
    }
    if let Some(change) = change.hosting.prompt_cache {
        let cache = listed.model.prompt_cache.get_or_insert_default();
        cache.short = change.short.or(cache.short);
        cache.long = change.long.or(cache.long);
    }
    merge_headers(&mut listed.headers, &change.headers);
}

/// Numbers of `over` win, the others stay (pi 1.5.2).
fn merge_limits(under: &mut InputLimits, over: &InputLimits) {
    under.max_request_bytes = over.max_request_bytes.or(under.max_request_bytes);
    let Some(over) = &over.images else { return };
    let images = under.images.get_or_insert_default();
    images.max_per_message = over.max_per_message.or(images.max_per_message);
    images.max_per_request = over.max_per_request.or(images.max_per_request);
    let Some(over) = over.resize else { return };
    let size = images.resize.get_or_insert_default();
    size.max_width = over.max_width.or(size.max_width);
    size.max_height = over.max_height.or(size.max_height);
    size.max_bytes = over.max_bytes.or(size.max_bytes);
    size.jpeg_quality = over.jpeg_quality.or(size.jpeg_quality);
}

/// Flags of `over` win; objects of routing and of chat templates are merged one level deep.
fn merge_compat(under: &mut Option<Map<String, Value>>, over: Option<&Map<String, Value>>) {
    let Some(over) = over.filter(|over| !over.is_empty()) else {
        return;
    };
    let under = under.get_or_insert_default();
    for (flag, value) in over {
        let routing = matches!(
            flag.as_str(),
            "openRouterRouting" | "vercelGatewayRouting" | "chatTemplateKwargs" | "chatTemplateArgs"
        );
        match (under.get_mut(flag), value) {
            (Some(Value::Object(old)), Value::Object(new)) if routing => old.extend(new.clone()),
            _ => drop(under.insert(flag.clone(), value.clone())),
        }
    }
}

/// Adds parameters to a thinking level that has some.
pub(crate) fn merge_levels(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (level, params) in over {
        match (under.get_mut(level), params) {
            (Some(Value::Object(old)), Value::Object(new)) => old.extend(new.clone()),
            _ => {
                under.insert(level.clone(), params.clone());
            }
        }
    }
}

/// Header names are the same in any case; the later value wins and keeps the earlier place.
fn merge_headers(under: &mut Vec<(String, String)>, over: &Headers) {
    for (name, value) in over
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_str()?)))
    {
        put_header(under, name, value.to_owned());
    }
}

/// Sets one header.
pub(crate) fn put_header(headers: &mut Vec<(String, String)>, name: &str, value: String) {
    match headers.iter_mut().find(|(old, _)| old.eq_ignore_ascii_case(name)) {
        Some(slot) => *slot = (name.to_owned(), value),
        None => headers.push((name.to_owned(), value)),
    }
}
