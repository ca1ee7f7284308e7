//! Providers that extensions bring (pi's `registerProvider`): laid over the catalogue and `models.json` as long as their
//! extension is there. Not here: asking an extension that answers for its models itself.

use std::fmt;

use serde_json::{Map, Value, json};
use wire::Model;

use crate::merge::{Entries, merge};
use crate::models_file::{ProviderDef, provider};

/// One provider as an extension describes it.
#[derive(Clone)]
pub struct Registered {
    id: String,
    pub(crate) def: ProviderDef,
    /// True if the extension streams answers itself.
    streams: bool,
    /// A whole provider object of pi 1.x, which answers for all of its models.
    native: bool,
    /// True if it needs no key, or finds it itself.
    open: bool,
    /// True if it has a login.
    login: bool,
    /// True if it changes its models after a login.
    changes_models: bool,
    /// True if it lists its models itself.
    refreshes: bool,
}

/// The providers of several extensions, which may describe the same one.
#[derive(Default)]
pub struct Registrations {
    /// Each provider, with everything that was said of it.
    providers: Vec<(Registered, Value)>,
}

impl Registrations {
    /// Adds what an extension says of a provider. As in pi, what it leaves out stays as an extension before it said.
    ///
    /// # Errors
    /// As [`Registered::parse`]; the provider then stays as it was.
    pub fn add(&mut self, id: &str, config: &Value) -> Result<(), String> {
        let at = self.providers.iter().position(|(known, _)| known.id == id);
        let before = at.and_then(|at| self.providers.get(at));
        let config = laid_over(before.map(|(_, config)| config), config);
        let parsed = Registered::parse(id, &config)?;
        // The place among the others is that of the last registration.
        if let Some(at) = at {
            self.providers.remove(at);
        }
        self.providers.push((parsed, config));
        Ok(())
    }

    /// The providers as all registrations together describe them.
    #[must_use]
    pub fn into_providers(self) -> Vec<Registered> {
        self.providers.into_iter().map(|(provider, _)| provider).collect()
    }
}

/// A configuration, with the members that it leaves out from the one before.
fn laid_over(before: Option<&Value>, config: &Value) -> Value {
    // A whole provider object has nothing in common with a configuration.
    let is_native = |config: &Map<String, Value>| config.get("native") == Some(&Value::Bool(true));
    match (before, config) {
        (Some(Value::Object(before)), Value::Object(own)) if !is_native(before) && !is_native(own) => {
            let mut merged = before.clone();
            merged.extend(own.clone());
            Value::Object(merged)
        }
        _ => config.clone(),
    }
}

/// Hides key and headers.
impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Registered {
    /// Understands what `registerProvider` was given, functions left out. Models of other kinds than chat are left out.
    ///
    /// # Errors
    /// The error in the configuration, worded as pi does where pi has a text.
    pub fn parse(id: &str, config: &Value) -> Result<Self, String> {
        let mut config = config.clone();
        if let Some(models) = config.get_mut("models").and_then(Value::as_array_mut) {
            models.retain(|model| matches!(model.get("type").and_then(Value::as_str), None | Some("chat")));
        }
        let def = provider(id, &config).map_err(|error| format!("Provider {id}: {error}"))?;
        let says = |name: &str| config.get(name).and_then(Value::as_bool).unwrap_or(false);
        let login = config.get("oauth").filter(|oauth| oauth.is_object());
        let has_no_key = def.api_key.as_deref().is_none_or(str::is_empty);
        let registered = Self {
            id: id.to_owned(),
            def,
            streams: says("streams"),
            native: says("native"),
            open: says("open") || (says("streams") && has_no_key && login.is_none()),
            login: login.is_some(),
            refreshes: says("refreshes"),
            changes_models: login.is_some_and(|login| login.get("changesModels") == Some(&Value::Bool(true))),
        };
        registered.check()?;
        Ok(registered)
    }

    fn check(&self) -> Result<(), String> {
        let missing = |value: &Option<String>| value.as_deref().is_none_or(str::is_empty);
        let (id, def) = (&self.id, &self.def);
        if id.is_empty() {
            return Err("A provider needs a name".to_owned());
        }
        if self.native {
            return Ok(());
        }
        if self.streams && missing(&def.api) {
            return Err(format!(
                "Provider {id}: \"api\" is required when registering streamSimple."
            ));
        }
        for model in &def.models {
            if missing(&def.base_url) && missing(&model.base_url) && !self.streams {
                return Err(format!(
                    "Provider {id}: \"baseUrl\" is required when defining models."
                ));
            }
            if missing(&def.api) && missing(&model.api) {
                return Err(format!(
                    "Provider {id}, model {}: no \"api\" specified.",
                    model.id
                ));
            }
        }
        // Models need no key here: pi 1.5.2 accepts them, and the user may have stored one (`auth.json`).
        Ok(())
    }

    /// Returns the provider with these models.
    ///
    /// # Errors
    /// When they are invalid.
    pub fn with_models(&self, models: &Value) -> Result<Self, String> {
        let def = provider(&self.id, &json!({"models": models}))?;
        let mut with_models = self.clone();
        with_models.def.models = def.models;
        with_models.check()?;
        Ok(with_models)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns true if it has a login.
    #[must_use]
    pub fn has_login(&self) -> bool {
        self.login
    }

    /// Its name for people.
    #[must_use]
    pub fn name(&self) -> &str {
        self.def.name.as_deref().unwrap_or(&self.id)
    }

    /// Returns true if it changes its models after a login.
    #[must_use]
    pub fn changes_models(&self) -> bool {
        self.changes_models
    }

    /// Returns true if it lists its models itself.
    #[must_use]
    pub fn refreshes(&self) -> bool {
        self.refreshes
    }

    /// Returns true if it streams the answers of this model itself.
    pub(crate) fn answers(&self, model: &Model) -> bool {
        self.streams && (self.native || self.def.api.as_deref() == Some(model.api.as_str()))
    }

    /// Returns true if it is a whole provider object of pi 1.x.
    pub(crate) fn is_native(&self) -> bool {
        self.native
    }

    /// Returns true if its extension streams answers without a key.
    pub(crate) fn needs_no_key(&self) -> bool {
        self.open
    }

    /// Replaces the known models with its own, or only changes how they are reached.
    pub(crate) fn lay_over(&self, mut entries: Entries, file: Option<&ProviderDef>) -> Entries {
        if self.def.models.is_empty() && !self.native {
            let change = ProviderDef {
                base_url: self.def.base_url.clone(),
                headers: self.def.headers.clone(),
                ..ProviderDef::default()
            };
            entries.base.append(&mut entries.added);
            return merge(&self.id, &entries.base, Some(&change));
        }
        let mut own = merge(&self.id, &[], Some(&self.def));
        // What the user says of a single model comes last.
        if let Some(file) = file.filter(|file| !file.overrides.is_empty()) {
            let change = ProviderDef {
                overrides: file.overrides.clone(),
                ..ProviderDef::default()
            };
            own.added = merge(&self.id, &own.added, Some(&change)).base;
        }
        own
    }
}
