//! Which credential opens a provider, and the keys, headers, variables and base URLs of requests (pi-core.md 8.3-8.5,
//! providers.md 1 and 10). Not here: where credentials are stored, sending them, renewing OAuth tokens.

use std::sync::Arc;

use auth::Environment;
use auth::Secret;
use auth::login::AuthEntry;
use serde_json::{Map, Value};
use wire::Model;

use crate::credentials::key_of;
use crate::error::RegistryError;
use crate::key_source::KeySource;
use crate::merge::put_header;
use crate::offline::OFFLINE;
use crate::registered::Registered;
use crate::store::Registry;
use crate::value::is_configured;

/// The variable of the token that Anthropic's provider sends as `Authorization: Bearer`, for gateways that want it so (pi 0.82.1). The
/// catalogue does not list it, since only the dialect of today's pi reads it.
pub const TOKEN_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";
/// The provider of [`TOKEN_VARIABLE`].
pub const TOKEN_PROVIDER: &str = "anthropic";

impl Registry {
    /// An environment variable as this provider sees it: its `env` in `auth.json` comes before the process environment.
    /// Empty counts as unset.
    #[must_use]
    pub fn variable(&self, provider: &str, name: &str) -> Option<String> {
        self.credentials.variable(provider, name)
    }

    /// Where the key of a provider comes from, in the order of pi-core.md 8.5, or of pi 1.5.2 after [`Self::use_newest_order`];
    /// `None` when there is none. Runs no command and renews no token.
    #[must_use]
    pub fn key_source(&self, provider: &str) -> Option<KeySource> {
        let credentials = &self.credentials;
        if let Some(answers) = credentials.is_replayed(provider) {
            return answers.then_some(KeySource::None);
        }
        if credentials.runtime_key(provider).is_some() {
            return Some(KeySource::Runtime);
        }
        let env = |name: &str| credentials.variable(provider, name);
        match credentials.file().entry(provider) {
            // An entry may hold only variables (pi 1.5.2).
            Some(AuthEntry::ApiKey { key, .. }) if !key.expose().is_empty() => {
                return is_configured(key.expose(), &env).then_some(KeySource::AuthFile);
            }
            Some(AuthEntry::Oauth { .. }) => return Some(KeySource::Oauth),
            Some(AuthEntry::ApiKey { .. }) | None => {}
        }
        if credentials.has_newest_order() {
            // The key next to an address is meant for it, unlike a variable of the provider (pi 1.5.2).
            if let Some(own) = self.providers.key(provider) {
                return is_configured(own, &env).then_some(KeySource::ModelsFile);
            }
            if provider == TOKEN_PROVIDER && env(TOKEN_VARIABLE).is_some() {
                return Some(KeySource::Env(TOKEN_VARIABLE.to_owned()));
            }
        }
        if let Some(known) = self.catalogue().provider(provider) {
            if let Some(name) = known.key_variables().iter().find(|name| env(name).is_some()) {
                return Some(KeySource::Env(name.clone()));
            }
            let complete = known
                .ambient()
                .iter()
                .any(|group| group.iter().all(|name| env(name).is_some()));
            if complete || (known.accepts_adc() && credentials.has_adc(provider)) {
                return Some(KeySource::Ambient);
            }
        }
        if let Some(name) = credentials.local_key_variable(provider) {
            return Some(KeySource::Env(name.to_owned()));
        }
        let own = self.providers.key(provider);
        if own.is_some_and(|key| is_configured(key, &env)) {
            return Some(KeySource::ModelsFile);
        }
        let theirs = self.providers.of_extension(provider);
        let needs_none = provider == OFFLINE
            || self.local.has_answered(provider)
            || theirs.is_some_and(Registered::needs_no_key);
        needs_none.then_some(KeySource::None)
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
            let own = self.providers.key(provider);
            return self.credentials.check_unset(provider, own).map(|()| None);
        };
        let credentials = &self.credentials;
        Ok(match source {
            KeySource::Runtime => credentials.runtime_key(provider).cloned(),
            // `headers` sends it.
            KeySource::Env(name) if name == TOKEN_VARIABLE => Some(Secret::new(Secret::AMBIENT)),
            KeySource::Env(name) => credentials.variable(provider, &name).map(Secret::from),
            KeySource::Ambient => Some(Secret::new(Secret::AMBIENT)),
            KeySource::None => (provider == OFFLINE).then(|| Secret::new(OFFLINE)),
            KeySource::ModelsFile => {
                let key = self.providers.key(provider);
                key.map(|key| credentials.resolve(provider, key, &key_of(provider)))
                    .transpose()?
                    .map(Secret::from)
            }
            KeySource::AuthFile | KeySource::Oauth => match self.auth().entry(provider) {
                Some(AuthEntry::ApiKey { key, resolved, .. }) => {
                    // Only a success is kept: a command that failed once may be asked again.
                    if resolved.get().is_none() {
                        let key = credentials.resolve(provider, key.expose(), &key_of(provider))?;
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

    /// Returns the token of a login, if the provider uses one. It may have expired; the sender must refresh it.
    #[must_use]
    pub fn login_token(&self, provider: &str) -> Option<Secret> {
        // A recording needs no credentials.
        if self.credentials.is_replay() {
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
        let mut headers = Vec::new();
        if self.credentials.is_replay() {
            return Ok(headers);
        }
        for (name, value) in self
            .providers
            .listed(model)
            .map_or(&[][..], |listed| &listed.headers)
        {
            let what = format!("header \"{name}\" of provider \"{provider}\"");
            let value = self.credentials.resolve(provider, value, &what)?;
            self.secrets().learn_configured_header(name, &value);
            headers.push((name.clone(), value));
        }
        let token = key
            .filter(|key| key.is_ambient() && provider == TOKEN_PROVIDER)
            .and_then(|_| self.credentials.variable(provider, TOKEN_VARIABLE));
        if let Some(token) = token {
            let is_given = headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
            if !is_given {
                headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
            }
        } else if self.providers.sends_bearer(provider) {
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
            .providers
            .listed(model)
            .filter(|listed| listed.model.base_url == model.base_url);
        let address = listed.and_then(|listed| listed.address.as_deref());
        let mut rest = address.unwrap_or(&model.base_url);
        if self.credentials.is_replay() {
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

    /// Returns variables that a tool's environment must not contain: those of all built-in providers, and those from
    /// which `models.json` and `auth.json` read keys and headers.
    #[must_use]
    pub fn key_variables(&self) -> Vec<String> {
        self.credentials.key_variables(&self.providers)
    }

    /// The stored login of a provider whose extension knows how to use and renew it; none when something else opens it.
    #[must_use]
    pub fn lent_login(&self, provider: &str) -> Option<Map<String, Value>> {
        self.providers
            .of_extension(provider)
            .filter(|registered| registered.has_login())?;
        match (self.key_source(provider)?, self.auth().entry(provider)?) {
            (KeySource::Oauth, entry @ AuthEntry::Oauth { .. }) => Some(entry.fields()),
            _ => None,
        }
    }

    /// Providers that a login opens.
    #[must_use]
    pub fn login_providers(&self) -> Vec<&str> {
        let names = self.auth().entries().iter().map(|(name, _)| name.as_str());
        names
            .filter(|name| self.key_source(name) == Some(KeySource::Oauth))
            .collect()
    }

    /// The variables of a provider (its `env` in `auth.json` comes before the process environment) and the runner of
    /// commands, to be put into [`llm::ModelRequest::environment`]. Nothing is read before a family asks.
    #[must_use]
    pub fn environment(self: &Arc<Self>, provider: &str) -> Environment {
        let (variables, own) = (Arc::clone(self), Arc::clone(self));
        let run = Arc::clone(&self.credentials.run);
        let (id, own_id) = (provider.to_owned(), provider.to_owned());
        Environment::new(
            move |name| variables.variable(&id, name),
            move |name| {
                let entry = own.auth().entry(&own_id)?;
                entry.variable(name).map(str::to_owned)
            },
            move |command| run(command),
        )
    }
}
