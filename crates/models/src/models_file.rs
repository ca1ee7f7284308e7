//! `models.json`: the user's own providers, models and changes to built-in ones (pi-core.md 8.2), and `models.yml`, which oh-my-pi has in
//! its place. Here: reading and checking them. Not here: laying them over the catalogue.

use std::fmt;
use std::path::Path;

use auth::login::json_file::{describe, plain_json, read_text};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wire::model::{InputLimits, Modality, PriceTier, Prices, PromptCache};

/// Every string-valued header of the file, in file order.
pub(crate) type Headers = Map<String, Value>;

/// One entry of `providers`.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderDef {
    /// Name for people.
    pub name: Option<String>,
    /// URL that requests start with; also applies to the provider's built-in models.
    pub base_url: Option<String>,
    /// Key: literal, variable or command.
    pub api_key: Option<String>,
    /// API family of models that name none.
    pub api: Option<String>,
    /// Extra request headers.
    #[serde(default, deserialize_with = "strings")]
    pub(crate) headers: Headers,
    /// Quirks; also apply to the provider's built-in models.
    pub(crate) compat: Option<Map<String, Value>>,
    /// Send the key as `Authorization: Bearer` as well.
    #[serde(default)]
    pub auth_header: bool,
    /// Models without `thinkingLevelMap` have the levels that oh-my-pi gives them.
    #[serde(skip)]
    pub(crate) has_omp_levels: bool,
    #[serde(skip)]
    pub(crate) models: Vec<ModelDef>,
    #[serde(skip)]
    pub(crate) overrides: Vec<(String, OverrideDef)>,
}

impl ProviderDef {
    /// The headers of the provider, of its models and of its changes to built-in models.
    pub(crate) fn all_headers(&self) -> impl Iterator<Item = (&String, &Value)> {
        let models = self.models.iter().flat_map(|model| &model.headers);
        let changes = self.overrides.iter().flat_map(|(_, change)| &change.headers);
        self.headers.iter().chain(models).chain(changes)
    }
}

/// Hides key and headers.
impl fmt::Debug for ProviderDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderDef")
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// One entry of a provider's `models`.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelDef {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) api: Option<String>,
    pub(crate) base_url: Option<String>,
    #[serde(default)]
    pub(crate) reasoning: bool,
    #[serde(default, deserialize_with = "level_map")]
    pub(crate) thinking_level_map: Option<Map<String, Value>>,
    pub(crate) input: Option<Vec<Modality>>,
    pub(crate) cost: Option<CostDef>,
    #[serde(default, deserialize_with = "tokens")]
    pub(crate) context_window: Option<u64>,
    #[serde(default, deserialize_with = "tokens")]
    pub(crate) max_tokens: Option<u64>,
    #[serde(default, deserialize_with = "strings")]
    pub(crate) headers: Headers,
    pub(crate) compat: Option<Map<String, Value>>,
    pub(crate) sampling_params: Option<Map<String, Value>>,
    pub(crate) sampling_params_by_thinking_level: Option<Map<String, Value>>,
    #[serde(flatten)]
    pub(crate) hosting: Hosting,
}

/// One entry of a provider's `modelOverrides`.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OverrideDef {
    pub(crate) name: Option<String>,
    pub(crate) reasoning: Option<bool>,
    #[serde(default, deserialize_with = "level_map")]
    pub(crate) thinking_level_map: Option<Map<String, Value>>,
    pub(crate) input: Option<Vec<Modality>>,
    pub(crate) cost: Option<PartCost>,
    #[serde(default, deserialize_with = "tokens")]
    pub(crate) context_window: Option<u64>,
    #[serde(default, deserialize_with = "tokens")]
    pub(crate) max_tokens: Option<u64>,
    #[serde(default, deserialize_with = "strings")]
    pub(crate) headers: Headers,
    pub(crate) compat: Option<Map<String, Value>>,
    pub(crate) sampling_params: Option<Map<String, Value>>,
    pub(crate) sampling_params_by_thinking_level: Option<Map<String, Value>>,
    #[serde(flatten)]
    pub(crate) hosting: Hosting,
}

/// How the provider serves a model.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hosting {
    pub(crate) input_limits: Option<InputLimits>,
    pub(crate) prompt_cache: Option<PromptCache>,
    /// Thinking levels in the form of oh-my-pi.
    pub(crate) thinking: Option<Value>,
}

/// Prices of an own model: all four are required.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CostDef {
    input: f64,
    output: f64,
    cache_read: f64,
    cache_write: f64,
    #[serde(default)]
    tiers: Vec<TierDef>,
}

/// Other prices above a size of the input (pi-1.5-delta.md 6); missing prices are those below it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TierDef {
    #[serde(deserialize_with = "tokens")]
    input_tokens_above: Option<u64>,
    #[serde(flatten)]
    rates: PartRates,
}

impl From<CostDef> for Prices {
    fn from(cost: CostDef) -> Self {
        let mut prices = Self {
            input: cost.input,
            output: cost.output,
            cache_read: cost.cache_read,
            cache_write: cost.cache_write,
            tiers: Vec::new(),
        };
        prices.tiers = tiers(&cost.tiers, &prices);
        prices
    }
}

fn tiers(defs: &[TierDef], base: &Prices) -> Vec<PriceTier> {
    let tier = |def: &TierDef| PriceTier {
        input_tokens_above: def.input_tokens_above.unwrap_or(0),
        input: def.rates.input.unwrap_or(base.input),
        output: def.rates.output.unwrap_or(base.output),
        cache_read: def.rates.cache_read.unwrap_or(base.cache_read),
        cache_write: def.rates.cache_write.unwrap_or(base.cache_write),
    };
    defs.iter().map(tier).collect()
}

/// Any of the four prices.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartRates {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

/// Changed prices of a built-in model.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartCost {
    #[serde(flatten)]
    rates: PartRates,
    tiers: Option<Vec<TierDef>>,
}

impl PartCost {
    /// Lays the changes over a model's prices. Who changes a price and names no tiers means the price for every size.
    pub(crate) fn apply(&self, prices: &mut Prices) {
        let rates = &self.rates;
        let given = [rates.input, rates.output, rates.cache_read, rates.cache_write];
        let slots = [
            &mut prices.input,
            &mut prices.output,
            &mut prices.cache_read,
            &mut prices.cache_write,
        ];
        for (slot, given) in slots.into_iter().zip(given) {
            *slot = given.unwrap_or(*slot);
        }
        match &self.tiers {
            Some(defs) => prices.tiers = tiers(defs, prices),
            None if given.iter().any(Option::is_some) => prices.tiers.clear(),
            None => {}
        }
    }
}

/// The whole file. A value of the wrong type empties `providers`; a provider that lacks something is left out alone (pi 1.5.2). The
/// built-in models stay.
#[derive(Debug, Clone, Default)]
pub struct ModelsFile {
    providers: Vec<(String, ProviderDef)>,
    error: Option<String>,
}

impl ModelsFile {
    /// Reads the file; a missing one is an empty one. `is_built_in` says which provider ids the catalogue knows.
    #[must_use]
    pub fn read(path: &Path, is_built_in: &dyn Fn(&str) -> bool) -> Self {
        let text = match read_text(path) {
            Ok(Some(text)) => text,
            Ok(None) => return Self::default(),
            Err(error) => {
                return Self {
                    error: Some(describe("Failed to read", &error.to_string(), path)),
                    ..Self::default()
                };
            }
        };
        let mut file = Self::parse(&text, is_built_in);
        file.error = file
            .error
            .map(|error| format!("{error}\n\nFile: {}", path.display()));
        file
    }

    /// Parses the text of the file.
    #[must_use]
    pub fn parse(text: &str, is_built_in: &dyn Fn(&str) -> bool) -> Self {
        match parse(text, is_built_in) {
            Ok((providers, error)) => Self { providers, error },
            Err(error) => Self {
                providers: Vec::new(),
                error: Some(error),
            },
        }
    }

    /// Adds the providers of `models.yml` or `models.yaml` that `models.json` does not name. Both files have the same members; members of
    /// oh-my-pi alone, such as `discovery`, are ignored.
    pub(crate) fn add_yaml(&mut self, dir: &Path, is_built_in: &dyn Fn(&str) -> bool) {
        let mut names = ["models.yml", "models.yaml"].into_iter();
        let Some(name) = names.find(|name| dir.join(name).symlink_metadata().is_ok()) else {
            return;
        };
        let path = dir.join(name);
        let read = match read_text(&path) {
            Ok(text) => parse_yaml(name, &text.unwrap_or_default(), is_built_in),
            Err(error) => Err(format!("Failed to read {name}: {error}")),
        };
        let (providers, error) = read.unwrap_or_else(|error| (Vec::new(), Some(error)));
        let is_new = |id: &str| self.providers.iter().all(|(known, _)| known != id);
        let new: Providers = providers.into_iter().filter(|(id, _)| is_new(id)).collect();
        self.providers.extend(new);
        if let Some(error) = error {
            let error = format!("{error}\n\nFile: {}", path.display());
            let earlier = self.error.take().map(|earlier| format!("{earlier}\n\n"));
            self.error = Some(earlier.unwrap_or_default() + &error);
        }
    }

    /// Gives models without `thinkingLevelMap` the levels that oh-my-pi gives them.
    pub(crate) fn use_omp_levels(&mut self) {
        for (_, def) in &mut self.providers {
            def.has_omp_levels = true;
        }
    }

    /// The providers in file order.
    #[must_use]
    pub fn providers(&self) -> &[(String, ProviderDef)] {
        &self.providers
    }

    /// Why the file, or a provider of it, was ignored.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

type Providers = Vec<(String, ProviderDef)>;

/// The usable providers, and what others lack.
fn parse(text: &str, is_built_in: &dyn Fn(&str) -> bool) -> Result<(Providers, Option<String>), String> {
    let text = plain_json(text.strip_prefix('\u{feff}').unwrap_or(text));
    let root: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| format!("Failed to parse models.json: {error}"))?;
    let Some(providers) = root.get("providers") else {
        return Err("Invalid models.json: `providers` is missing".to_owned());
    };
    usable("models.json", providers, is_built_in)
}

/// As [`parse`], of the YAML file `name`. The parser bounds depth, aliases and nodes; a file without providers says nothing.
fn parse_yaml(
    name: &str,
    text: &str,
    is_built_in: &dyn Fn(&str) -> bool,
) -> Result<(Providers, Option<String>), String> {
    let options = serde_saphyr::options! { strict_booleans: true };
    let root = serde_saphyr::from_str_with_options::<Value>(text, options).map_err(|error| {
        // Further lines show the text, which may be a key.
        let reason = error.to_string();
        format!("Invalid {name}: {}", reason.lines().next().unwrap_or_default())
    })?;
    if !root.is_object() && !root.is_null() {
        return Err(format!("Invalid {name}: the file is not a mapping"));
    }
    let mut providers = match root.get("providers") {
        None | Some(Value::Null) => return Ok((Vec::new(), None)),
        Some(providers) => providers.clone(),
    };
    for provider in providers.as_object_mut().into_iter().flat_map(Map::values_mut) {
        // Such a provider needs no key. Any text is one, which its server ignores.
        if let Some(members) = provider.as_object_mut()
            && members.get("auth").and_then(Value::as_str) == Some("none")
        {
            members.entry("apiKey").or_insert_with(|| "none".into());
        }
    }
    usable(name, &providers, is_built_in)
}

/// The usable providers of the object, and what others lack. Errors begin with the name of the file.
fn usable(
    name: &str,
    providers: &Value,
    is_built_in: &dyn Fn(&str) -> bool,
) -> Result<(Providers, Option<String>), String> {
    let invalid = |error: String| format!("Invalid {name}: {error}");
    let providers: Map<String, Value> = typed(providers, "providers").map_err(invalid)?;
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    for (id, value) in &providers {
        let def = provider(id, value).map_err(invalid)?;
        match check(id, &def, is_built_in(id)) {
            Ok(()) => out.push((id.clone(), def)),
            Err(error) => errors.push(invalid(format!("provider {id}: {error}"))),
        }
    }
    Ok((out, (!errors.is_empty()).then(|| errors.join("\n"))))
}

/// One entry of `providers`, unchecked. Errors name the place in the file, not the file.
pub(crate) fn provider(id: &str, value: &Value) -> Result<ProviderDef, String> {
    let at = format!("providers.{id}");
    let mut def: ProviderDef = typed(value, &at)?;
    drop_empty([&mut def.base_url, &mut def.api_key, &mut def.api]);
    if let Some(models) = value.get("models") {
        let models: Vec<Value> = typed(models, &format!("{at}.models"))?;
        for (index, model) in models.iter().enumerate() {
            let mut model: ModelDef = typed(model, &format!("{at}.models[{index}]"))?;
            drop_empty([&mut model.base_url, &mut model.api]);
            def.models.push(model);
        }
    }
    if let Some(overrides) = value.get("modelOverrides") {
        let overrides: Map<String, Value> = typed(overrides, &format!("{at}.modelOverrides"))?;
        for (model, change) in overrides {
            let change = typed(&change, &format!("{at}.modelOverrides.{model}"))?;
            def.overrides.push((model, change));
        }
    }
    Ok(def)
}

/// Empty texts say nothing, as in pi: they do not replace built-in values.
fn drop_empty<const N: usize>(texts: [&mut Option<String>; N]) {
    for text in texts {
        if text.as_deref() == Some("") {
            *text = None;
        }
    }
}

fn typed<T: DeserializeOwned>(value: &Value, at: &str) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("{at}: {}", unquoted(&error.to_string())))
}

/// Takes a quoted value out of serde's `invalid type: string "…", expected …`: it may be a key in the wrong place.
fn unquoted(error: &str) -> String {
    let value = error.split_once(" string \"");
    match value.and_then(|(before, rest)| Some((before, rest.rsplit_once("\", expected")?.1))) {
        Some((before, after)) => format!("{before} string, expected{after}"),
        None => error.to_owned(),
    }
}

/// What a provider must say (pi-core.md 8.2).
fn check(id: &str, def: &ProviderDef, built_in: bool) -> Result<(), String> {
    let missing = |value: &Option<String>| value.as_deref().is_none_or(str::is_empty);
    if id.is_empty() {
        return Err("the id is empty".to_owned());
    }
    if def.models.is_empty() {
        let says = !missing(&def.base_url) || !def.headers.is_empty() || def.compat.is_some();
        // A key, or how it is sent, is a change to a built-in provider (pi 1.5.2).
        let has_key = !missing(&def.api_key) || def.auth_header;
        return if says || has_key || !def.overrides.is_empty() {
            Ok(())
        } else {
            Err(
                "it needs \"baseUrl\", \"apiKey\", \"headers\", \"compat\", \"modelOverrides\" or \"models\""
                    .to_owned(),
            )
        };
    }
    // The key may be in auth.json (pi 1.5.2).
    if !built_in && missing(&def.base_url) {
        return Err("\"baseUrl\" is required when it defines models".to_owned());
    }
    for model in &def.models {
        if model.id.is_empty() {
            return Err("a model has an empty \"id\"".to_owned());
        }
        if !built_in && missing(&def.api) && missing(&model.api) {
            return Err(format!(
                "model {}: \"api\" is required at the provider or the model",
                model.id
            ));
        }
    }
    Ok(())
}

/// A token count, which JSON may write as `128000`, `128000.0` or `1.28e5`.
fn tokens<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<f64>::deserialize(input)? else {
        return Ok(None);
    };
    if !(1.0..=9_007_199_254_740_992.0).contains(&number) {
        return Err(D::Error::custom("a token count must be a positive number"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded by the range check above"
    )]
    let whole = number as u64;
    Ok(Some(whole))
}

/// An object of strings.
fn strings<'de, D: Deserializer<'de>>(input: D) -> Result<Headers, D::Error> {
    let map = Option::<Headers>::deserialize(input)?.unwrap_or_default();
    match map.iter().find(|(_, value)| !value.is_string()) {
        Some((name, _)) => Err(D::Error::custom(format!("header {name} must be a string"))),
        None => Ok(map),
    }
}

/// An object of strings and nulls.
fn level_map<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Map<String, Value>>, D::Error> {
    let map = Option::<Map<String, Value>>::deserialize(input)?;
    let bad = map
        .iter()
        .flatten()
        .find(|(_, value)| !value.is_string() && !value.is_null());
    match bad {
        Some((level, _)) => Err(D::Error::custom(format!(
            "thinking level {level} must be a string or null"
        ))),
        None => Ok(map),
    }
}
