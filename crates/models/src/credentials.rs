//! Keys, headers and base URLs of requests (pi-core.md 8.3-8.5, providers.md 1 and 10). Not here: sending them, renewing
//! OAuth tokens.

use std::path::Path;

use auth::Secret;
use auth::login::AuthEntry;
use wire::Model;

use crate::error::RegistryError;
use crate::key_source::KeySource;
use crate::merge::put_header;
use crate::offline::OFFLINE;
use crate::store::Registry;
use crate::value::{Lookup, is_configured, variables};

/// Variables that name a server which also needs a key.
const SERVER_VARIABLES: [&str; 2] = ["AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_RESOURCE_NAME"];

impl Registry {
    /// An environment variable as this provider sees it: its `env` in `auth.json` comes before the process environment.
    /// Empty counts as unset.
    #[must_use]
    pub fn variable(&self, provider: &str, name: &str) -> Option<String> {
        let own = self
            .auth()
            .entry(provider)
            .and_then(|entry| entry.variable(name))
            .map(str::to_owned);
        own.or_else(|| (self.sources().env)(name))
            .filter(|value| !value.is_empty())
    }

    /// Where the key of a provider comes from, in the order of pi-core.md 8.5; `None` when there is none. Runs no command
    /// and renews no token.
    #[must_use]
    pub fn key_source(&self, provider: &str) -> Option<KeySource> {
        if let Some(replayed) = self.replayed() {
            let answers = provider == OFFLINE || replayed.iter().any(|id| id == provider);
            return answers.then_some(KeySource::None);
        }
        if self.runtime_key(provider).is_some() {
            return Some(KeySource::Runtime);
        }
        let env = |name: &str| self.variable(provider, name);
        match self.auth().entry(provider) {
            Some(AuthEntry::ApiKey { key, .. }) => {
                return is_configured(key.expose(), &env).then_some(KeySource::AuthFile);
            }
            Some(AuthEntry::Oauth { .. }) => return Some(KeySource::Oauth),
            None => {}
        }
        if let Some(known) = self.catalogue().provider(provider) {
            if let Some(name) = known.key_variables().iter().find(|name| env(name).is_some()) {
                return Some(KeySource::Env(name.clone()));
            }
            let complete = known
                .ambient()
                .iter()
                .any(|group| group.iter().all(|name| env(name).is_some()));
            if complete || (known.accepts_adc() && self.has_adc(provider)) {
                return Some(KeySource::Ambient);
            }
        }
        if let Some(name) = self.local_key_variable(provider) {
            return Some(KeySource::Env(name.to_owned()));
        }
        if self.own_key(provider).is_some_and(|key| is_configured(key, &env)) {
            return Some(KeySource::ModelsFile);
        }
        let needs_none = provider == OFFLINE || self.was_found(provider) || self.needs_no_key(provider);
        needs_none.then_some(KeySource::None)
    }

    /// Google's application default credentials: the file, a project and a location.
    fn has_adc(&self, provider: &str) -> bool {
        let env = |name: &str| self.variable(provider, name);
        let file = env("GOOGLE_APPLICATION_CREDENTIALS").or_else(|| {
            Some(format!(
                "{}/.config/gcloud/application_default_credentials.json",
                env("HOME")?
            ))
        });
        let project = env("GOOGLE_CLOUD_PROJECT").or_else(|| env("GCLOUD_PROJECT"));
        project.is_some()
            && env("GOOGLE_CLOUD_LOCATION").is_some()
            && file.is_some_and(|file| Path::new(&file).exists())
    }

    /// Returns true if a provider has credentials, as far as that is known without running commands.
    #[must_use]
    pub fn has_auth(&self, provider: &str) -> bool {
        self.key_source(provider).is_some()
    }

    /// The key for a request at `now_ms` (ms since 1970). `Ok(None)` means that there is none. May run a command.
    ///
    /// # Errors
    /// When a command or variable gives nothing, or a login has run out; neither falls through to the next source.
    pub fn resolve_key(&self, provider: &str, now_ms: u64) -> Result<Option<Secret>, RegistryError> {
        let key = self.find_key(provider, now_ms)?;
        if let Some(key) = &key {
            self.secrets().learn(key.expose());
        }
        Ok(key)
    }

    fn find_key(&self, provider: &str, now_ms: u64) -> Result<Option<Secret>, RegistryError> {
        let Some(source) = self.key_source(provider) else {
            return self.unconfigured(provider);
        };
        let env = |name: &str| self.variable(provider, name);
        let lookup = Lookup {
            env: &env,
            run: &*self.sources().run,
        };
        Ok(match source {
            KeySource::Runtime => self.runtime_key(provider).cloned(),
            KeySource::Env(name) => env(&name).map(Secret::from),
            KeySource::Ambient => Some(Secret::new(Secret::AMBIENT)),
            KeySource::None => (provider == OFFLINE).then(|| Secret::new(OFFLINE)),
            KeySource::ModelsFile => {
                let key = self.own_key(provider);
                key.map(|key| lookup.resolve(key, &what(provider)))
                    .transpose()?
                    .map(Secret::from)
            }
            KeySource::AuthFile | KeySource::Oauth => match self.auth().entry(provider) {
                Some(AuthEntry::ApiKey { key, resolved, .. }) => {
                    // Only a success is kept: a command that failed once may be asked again.
                    if resolved.get().is_none() {
                        let key = lookup.resolve(key.expose(), &what(provider))?;
                        let _ = resolved.set(Secret::from(key));
                    }
                    resolved.get().cloned()
                }
                Some(AuthEntry::Oauth { access, expires, .. }) => {
                    #[expect(clippy::cast_precision_loss, reason = "times stay far below 2^53")]
                    let now = now_ms as f64;
                    if now >= *expires {
                        return Err(RegistryError::Expired(provider.to_owned()));
                    }
                    Some(access.clone())
                }
                None => None,
            },
        })
    }

    /// Says which variable is missing when `auth.json` or `models.json` names one; otherwise there is just no key.
    fn unconfigured(&self, provider: &str) -> Result<Option<Secret>, RegistryError> {
        let stored = match self.auth().entry(provider) {
            Some(AuthEntry::ApiKey { key, .. }) => Some(key.expose()),
            _ => self.own_key(provider),
        };
        let Some(text) = stored.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let env = |name: &str| self.variable(provider, name);
        Lookup {
            env: &env,
            run: &|_| None,
        }
        .resolve(text, &what(provider))
        .map(|_| None)
    }

    /// Returns the token of a login, if the provider uses one. It may have expired; the sender must refresh it.
    #[must_use]
    pub fn login_token(&self, provider: &str) -> Option<Secret> {
        // A recording needs no credentials.
        if self.replayed().is_some() {
            return None;
        }
        match (self.key_source(provider)?, self.auth().entry(provider)?) {
            (KeySource::Oauth, AuthEntry::Oauth { access, .. }) => Some(access.clone()),
            _ => None,
        }
    }

    /// The error for a request without a key, naming what would help.
    #[must_use]
    pub fn no_key(&self, provider: &str) -> RegistryError {
        if let Some(error) = self.no_server(provider) {
            return error;
        }
        let known = self.catalogue().provider(provider);
        let names = known
            .map(|known| known.key_variables().join(" or "))
            .filter(|names| !names.is_empty());
        let set = names.map_or_else(String::new, |names| format!("set {names}, "));
        let login = auth::login::way(provider).map_or_else(String::new, |_| {
            format!("log in with: pinion auth login {provider}, ")
        });
        let help = format!(
            "To use it, {login}{set}store a key with: pinion auth login {provider} --api-key, pass --api-key, or edit auth.json or \
             models.json in the agent directory."
        );
        RegistryError::NoKey {
            provider: provider.to_owned(),
            help,
        }
    }

    /// Extra headers of a request: catalogue, then provider, then model; with `authHeader` also the key. Runs the commands
    /// that header values name.
    ///
    /// # Errors
    /// When a value cannot be resolved, or `authHeader` is set and there is no key.
    pub fn headers(
        &self,
        model: &Model,
        key: Option<&Secret>,
    ) -> Result<Vec<(String, String)>, RegistryError> {
        let provider = model.provider.as_str();
        let env = |name: &str| self.variable(provider, name);
        let lookup = Lookup {
            env: &env,
            run: &*self.sources().run,
        };
        let mut headers = Vec::new();
        if self.replayed().is_some() {
            return Ok(headers);
        }
        for (name, value) in self.listed(model).map_or(&[][..], |listed| &listed.headers) {
            let what = format!("header \"{name}\" of provider \"{provider}\"");
            let value = lookup.resolve(value, &what)?;
            self.secrets().learn_header(name, &value);
            headers.push((name.clone(), value));
        }
        if self.sends_bearer(provider) {
            let key = key.ok_or_else(|| self.no_key(provider))?;
            put_header(&mut headers, "Authorization", format!("Bearer {}", key.expose()));
        }
        Ok(headers)
    }

    /// The base URL with `{NAME}` placeholders filled in (providers.md 1). Lower-case ones belong to the provider's module.
    ///
    /// # Errors
    /// When a placeholder's variable is not set.
    pub fn base_url(&self, model: &Model) -> Result<String, RegistryError> {
        let mut out = String::new();
        let listed = self
            .listed(model)
            .filter(|listed| listed.model.base_url == model.base_url);
        let address = listed.and_then(|listed| listed.address.as_deref());
        let mut rest = address.unwrap_or(&model.base_url);
        if self.replayed().is_some() {
            return Ok(rest.to_owned());
        }
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, tail)) = after.split_once('}') else {
                break;
            };
            out.push_str(before);
            let is_variable = name.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase());
            if is_variable && !name.is_empty() {
                out.push_str(&self.variable(&model.provider, name).ok_or_else(|| {
                    RegistryError::Placeholder {
                        name: name.to_owned(),
                        provider: model.provider.clone(),
                    }
                })?);
            } else {
                out.push('{');
                out.push_str(name);
                out.push('}');
            }
            rest = tail;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Variables of providers that are set although no model can be used, one sentence each.
    pub(crate) fn unusable_variables(&self) -> Vec<String> {
        let is_set = |name: &&str| (self.sources().env)(name).is_some_and(|value| !value.is_empty());
        let mut out = Vec::new();
        for known in self.catalogue().providers() {
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
                self.no_key("azure-openai-responses")
            ));
        }
        out
    }

    /// Returns variables that a tool's environment must not contain: those of all built-in providers, and those from
    /// which `models.json` and `auth.json` read keys and headers.
    #[must_use]
    pub fn key_variables(&self) -> Vec<String> {
        let mut names = self.catalogue().key_variables();
        names.extend(Self::local_key_variables().map(str::to_owned));
        for def in self.definitions() {
            let models = def.models.iter().flat_map(|model| model.headers.values());
            let changes = def
                .overrides
                .iter()
                .flat_map(|(_, change)| change.headers.values());
            let headers = def
                .headers
                .values()
                .chain(models)
                .chain(changes)
                .filter_map(|value| value.as_str());
            names.extend(
                headers
                    .chain(def.api_key.as_deref())
                    .flat_map(|text| self.set_variables(text)),
            );
        }
        for (_, entry) in self.auth().entries() {
            if let AuthEntry::ApiKey { key, .. } = entry {
                names.extend(self.set_variables(key.expose()));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the named variables that are set: a literal key may look like a name.
    fn set_variables<'a>(&'a self, text: &'a str) -> impl Iterator<Item = String> + 'a {
        variables(text)
            .into_iter()
            .filter(|name| (self.sources().env)(name).is_some())
            .map(str::to_owned)
    }
}

fn what(provider: &str) -> String {
    format!("API key for provider \"{provider}\"")
}
