//! What the process knows of credentials: `auth.json`, the key of this run, the environment and the runner of commands. Not
//! here: which of them opens a provider (`keys`), renewing OAuth tokens.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use auth::Secret;
use auth::Secrets;
use auth::login::{AuthEntry, AuthFile, copilot_address};

use crate::error::RegistryError;
use crate::local::Kind;
use crate::offline::OFFLINE;
use crate::providers::{COPILOT, Providers};
use crate::store::{Env, RunCommand};
use crate::value::{Lookup, variables};

/// Stored credentials and the places to look up others.
pub(crate) struct Credentials {
    pub(crate) env: Env,
    pub(crate) run: RunCommand,
    file: AuthFile,
    /// The key of `--api-key`, with its provider.
    runtime: Option<(String, Secret)>,
    /// Providers that a recording answers for; none without one.
    replayed: Option<Vec<String>>,
    /// Everything that may be a credential, to be removed from texts.
    secrets: Secrets,
    /// Keys of `models.json` come before variables, as in pi 1.5.2.
    newest_order: bool,
}

/// Hides all of them.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads `auth.json` in the folder.
    pub(crate) fn read(agent_dir: &Path, env: Env, run: RunCommand) -> Self {
        Self {
            env,
            run,
            file: AuthFile::read(&agent_dir.join("auth.json")),
            runtime: None,
            replayed: None,
            secrets: Secrets::default(),
            newest_order: false,
        }
    }

    /// Reads `auth.json` again and keeps the rest.
    pub(crate) fn reread(&self, agent_dir: &Path) -> Self {
        Self {
            env: Arc::clone(&self.env),
            run: Arc::clone(&self.run),
            file: AuthFile::read(&agent_dir.join("auth.json")),
            runtime: self.runtime.clone(),
            replayed: self.replayed.clone(),
            secrets: self.secrets.clone(),
            newest_order: self.newest_order,
        }
    }

    pub(crate) fn use_newest_order(&mut self) {
        self.newest_order = true;
    }

    pub(crate) fn has_newest_order(&self) -> bool {
        self.newest_order
    }

    pub(crate) fn set_runtime_key(&mut self, provider: &str, key: Secret) {
        self.secrets.learn(key.expose());
        self.runtime = Some((provider.to_owned(), key));
    }

    pub(crate) fn set_replayed(&mut self, providers: Vec<String>) {
        self.replayed = Some(providers);
    }

    /// Returns true if a recording answers, so that no credential is needed, looked up or renewed.
    pub(crate) fn is_replay(&self) -> bool {
        self.replayed.is_some()
    }

    /// Returns whether the recording answers for the provider; nothing without a recording.
    pub(crate) fn is_replayed(&self, provider: &str) -> Option<bool> {
        let replayed = self.replayed.as_ref()?;
        Some(provider == OFFLINE || replayed.iter().any(|id| id == provider))
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(crate) fn file(&self) -> &AuthFile {
        &self.file
    }

    /// The key of this run, if it is for the provider.
    pub(crate) fn runtime_key(&self, provider: &str) -> Option<&Secret> {
        self.runtime
            .as_ref()
            .filter(|(id, _)| id == provider)
            .map(|(_, key)| key)
    }

    /// A variable of the process. Empty counts as unset.
    pub(crate) fn process_variable(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    /// An environment variable as this provider sees it: its `env` in `auth.json` comes before the process environment.
    /// Empty counts as unset.
    pub(crate) fn variable(&self, provider: &str, name: &str) -> Option<String> {
        let own = self
            .file
            .entry(provider)
            .and_then(|entry| entry.variable(name))
            .map(str::to_owned);
        own.or_else(|| (self.env)(name)).filter(|value| !value.is_empty())
    }

    /// The value that `text` stands for in a provider's settings; `what` names it in errors. May run a command.
    pub(crate) fn resolve(&self, provider: &str, text: &str, what: &str) -> Result<String, RegistryError> {
        let lookup = Lookup {
            env: &|name| self.variable(provider, name),
            run: &*self.run,
        };
        lookup.resolve(text, what)
    }

    /// Says which variable is missing when `auth.json`, or else the provider's `own` key, names one; otherwise there is just
    /// no key.
    pub(crate) fn check_unset(&self, provider: &str, own: Option<&str>) -> Result<(), RegistryError> {
        let stored = match self.file.entry(provider) {
            Some(AuthEntry::ApiKey { key, .. }) if !key.expose().is_empty() => Some(key.expose()),
            _ => own,
        };
        let Some(text) = stored.filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        let lookup = Lookup {
            env: &|name| self.variable(provider, name),
            run: &|_| None,
        };
        lookup.resolve(text, &key_of(provider)).map(drop)
    }

    /// The variable with a local server's key, if it is set.
    pub(crate) fn local_key_variable(&self, id: &str) -> Option<&'static str> {
        let name = Kind::of_id(id)?.key_variable()?;
        self.variable(id, name).map(|_| name)
    }

    /// A key for listing the models of a local server. Commands are not run for it.
    pub(crate) fn local_key(&self, id: &str) -> Option<Secret> {
        if let Some(key) = self.runtime_key(id) {
            return Some(key.clone());
        }
        if let Some(AuthEntry::ApiKey { key, .. }) = self.file.entry(id) {
            let lookup = Lookup {
                env: &|name| self.variable(id, name),
                run: &|_| None,
            };
            let key = lookup.resolve(key.expose(), "").ok();
            if let Some(key) = key.filter(|key| !key.is_empty()) {
                return Some(Secret::from(key));
            }
        }
        self.variable(id, self.local_key_variable(id)?).map(Secret::from)
    }

    /// Google's application default credentials: the file, a project and a location.
    pub(crate) fn has_adc(&self, provider: &str) -> bool {
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

    /// GitHub Copilot's address for the stored login.
    pub(crate) fn copilot_url(&self) -> Option<String> {
        match self.file.entry(COPILOT)? {
            AuthEntry::Oauth { access, .. } => {
                let domain = self.file.entry(COPILOT)?.extra("enterpriseUrl");
                copilot_address(access.expose(), domain)
            }
            AuthEntry::ApiKey { .. } => None,
        }
    }

    /// Returns variables that a tool's environment must not contain: those of all built-in providers, and those from
    /// which `models.json` and `auth.json` read keys and headers.
    pub(crate) fn key_variables(&self, providers: &Providers) -> Vec<String> {
        let mut names = providers.catalogue().key_variables();
        let local = Kind::ALL.into_iter().filter_map(Kind::key_variable);
        names.extend(local.map(str::to_owned));
        for def in providers.definitions() {
            let headers = def.all_headers().filter_map(|(_, value)| value.as_str());
            names.extend(
                headers
                    .chain(def.api_key.as_deref())
                    .flat_map(|text| self.set_variables(text)),
            );
        }
        for (_, entry) in self.file.entries() {
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
            .filter(|name| (self.env)(name).is_some())
            .map(str::to_owned)
    }

    /// Notes everything that is or may be a credential, as far as one can tell without running commands. All are collected
    /// before they are used, so that no text reveals even unused ones.
    pub(crate) fn learn(&self, providers: &Providers) {
        let secrets = Secrets::default();
        let env = |name: &str| (self.env)(name);
        for name in self.key_variables(providers) {
            env(&name).iter().for_each(|value| secrets.learn(value));
        }
        // A text that names nothing is the credential itself.
        let literal = |text: &str| {
            let lookup = Lookup {
                env: &env,
                run: &|_| None,
            };
            lookup.resolve(text, "").ok().filter(|value| !is_name(value))
        };
        for (_, entry) in self.file.entries() {
            match entry {
                AuthEntry::ApiKey { key, env, .. } => {
                    literal(key.expose()).iter().for_each(|key| secrets.learn(key));
                    let values = env.iter().filter(|(name, _)| holds_key(name));
                    values
                        .filter_map(|(_, value)| value.as_str())
                        .for_each(|value| secrets.learn(value));
                }
                AuthEntry::Oauth { access, refresh, .. } => {
                    secrets.learn(access.expose());
                    secrets.learn(refresh.expose());
                }
            }
        }
        for def in providers.definitions() {
            let own = def.api_key.as_deref().and_then(literal);
            own.iter().for_each(|key| secrets.learn(key));
            let urls = def.models.iter().filter_map(|model| model.base_url.as_deref());
            urls.chain(def.base_url.as_deref())
                .for_each(|url| secrets.learn_url(url));
            for (name, value) in def.all_headers() {
                let value = value.as_str().and_then(literal);
                value
                    .iter()
                    .for_each(|value| secrets.learn_configured_header(name, value));
            }
        }
        self.secrets.keep(&secrets);
    }
}

/// A provider's key, for errors.
pub(crate) fn key_of(provider: &str) -> String {
    format!("API key for provider \"{provider}\"")
}

/// Returns true if a variable of `auth.json` holds a credential, judged by its name.
fn holds_key(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD"]
        .iter()
        .any(|part| name.contains(part))
}

/// A variable that is not set, rather than a key.
fn is_name(text: &str) -> bool {
    text.contains('_')
        && text
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit())
}
