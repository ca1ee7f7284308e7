//! The registry: catalogue, `models.json`, `auth.json` and environment as one list of models. Keys and headers are in
//! `keys`, choosing is in `choose`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use auth::Secret;
use auth::Secrets;
use auth::login::AuthFile;
use wire::Model;

use crate::catalogue::Catalogue;
use crate::credentials::Credentials;
use crate::error::RegistryError;
use crate::local::{LocalSources, Server};
use crate::local_servers::LocalServers;
use crate::models_file::ModelsFile;
use crate::offline::{OFFLINE, Offline};
use crate::providers::Providers;
use crate::registered::Registered;

/// One variable of the process environment.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Runs a shell command of a `!command` value and returns its trimmed standard output, or nothing when it failed or took
/// too long (10 s, pi-core.md 8.3). It may block: keys and headers are resolved off the reader's thread.
pub type RunCommand = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Where a registry reads from.
#[derive(Clone)]
pub struct Sources {
    /// Folder of `models.json` and `auth.json`.
    pub agent_dir: PathBuf,
    /// The environment.
    pub env: Env,
    /// Runs `!command` values.
    pub run: RunCommand,
    /// Servers on the user's own machines.
    pub local: LocalSources,
    /// True if `models.yml` of oh-my-pi counts, and its levels of models that name none.
    pub is_omp: bool,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("agent_dir", &self.agent_dir)
            .finish_non_exhaustive()
    }
}

/// All models that the agent knows, and the credentials for them.
#[derive(Debug)]
pub struct Registry {
    /// Folder of `models.json` and `auth.json`.
    pub(crate) agent_dir: PathBuf,
    /// True if `models.yml` counts.
    is_omp: bool,
    pub(crate) credentials: Credentials,
    pub(crate) providers: Providers,
    pub(crate) local: LocalServers,
    offline: Offline,
    catalogue_error: Option<String>,
}

impl Registry {
    /// Reads both files and the provider lines of the catalogue, but no model lines. Damaged files leave the built-in models
    /// usable: see [`ModelsFile::error`] and [`AuthFile::error`].
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        let (catalogue, catalogue_error) = Catalogue::load(&sources.agent_dir);
        let credentials = Credentials::read(&sources.agent_dir, sources.env, sources.run);
        let local = LocalServers::new(sources.local);
        let catalogue = Arc::new(catalogue);
        let (agent_dir, is_omp) = (sources.agent_dir, sources.is_omp);
        Self {
            catalogue_error,
            ..Self::build(agent_dir, is_omp, catalogue, credentials, local, Vec::new())
        }
    }

    fn build(
        agent_dir: PathBuf,
        is_omp: bool,
        catalogue: Arc<Catalogue>,
        credentials: Credentials,
        local: LocalServers,
        registered: Vec<Registered>,
    ) -> Self {
        let built_in = |id: &str| catalogue.provider(id).is_some();
        let mut file = ModelsFile::read(&agent_dir.join("models.json"), &built_in);
        if is_omp {
            file.add_yaml(&agent_dir, &built_in);
            file.use_omp_levels();
        }
        let providers = Providers::new(catalogue, file, registered, credentials.copilot_url());
        credentials.learn(&providers);
        Self {
            agent_dir,
            is_omp,
            credentials,
            providers,
            local,
            offline: Offline::default(),
            catalogue_error: None,
        }
    }

    /// A new registry from the files as they are now; a key given with [`Self::set_runtime_key`] is kept, and what has been
    /// read of the catalogue is shared.
    #[must_use]
    pub fn reload(&self) -> Self {
        self.with_registered(self.providers.registered().to_vec())
    }

    /// Returns the registry with these providers of extensions in place of the earlier ones. Reads the files again.
    #[must_use]
    pub fn with_registered(&self, registered: Vec<Registered>) -> Self {
        Self::build(
            self.agent_dir.clone(),
            self.is_omp,
            Arc::clone(self.providers.catalogue()),
            self.credentials.reread(&self.agent_dir),
            self.local.clone(),
            registered,
        )
    }

    /// A key for this run only (`--api-key`); it wins over all others of that provider.
    pub fn set_runtime_key(&mut self, provider: &str, key: Secret) {
        self.credentials.set_runtime_key(provider, key);
    }

    /// Looks keys up in the order of pi 1.5.2: `apiKey` of `models.json` before the environment, and `ANTHROPIC_AUTH_TOKEN` before
    /// other variables of Anthropic.
    pub fn use_newest_order(&mut self) {
        self.credentials.use_newest_order();
    }

    /// A recording answers for these providers: they count as having keys, and nothing is looked up, run or renewed.
    pub fn set_replayed(&mut self, providers: Vec<String>) {
        self.credentials.set_replayed(providers);
    }

    /// All credentials that this process has seen; grows with each that is looked up.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        self.credentials.secrets()
    }

    /// Why the catalogue in the agent directory is not used, if there is one.
    #[must_use]
    pub fn catalogue_error(&self) -> Option<&str> {
        self.catalogue_error.as_deref()
    }

    /// The catalogue: the built-in one, or the one in the agent directory.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        self.providers.catalogue()
    }

    /// The stored credentials.
    #[must_use]
    pub fn auth(&self) -> &AuthFile {
        self.credentials.file()
    }

    /// `models.json` as it was read, with the error if it was ignored.
    #[must_use]
    pub fn models_file(&self) -> &ModelsFile {
        self.providers.file()
    }

    /// Providers that extensions bring.
    #[must_use]
    pub fn registered_providers(&self) -> &[Registered] {
        self.providers.registered()
    }

    /// All provider ids in registry order, local servers and `offline` last.
    pub fn provider_ids(&self) -> impl Iterator<Item = &str> {
        let local = self.local.ids().filter(|id| !self.providers.contains(id));
        self.providers.ids().chain(local).chain([OFFLINE])
    }

    /// Every model: built-in ones, then those of `models.json`, then the offline ones. Reads the whole catalogue.
    #[must_use]
    pub fn all(&self) -> Vec<&Model> {
        let mut models = self.providers.in_order(|_| true);
        models.extend(self.found_models());
        models.extend([&self.offline.echo, &self.offline.script]);
        models
    }

    /// The models with credentials whose API is spoken here, in registry order, then those found at local servers so far;
    /// `offline/echo` if there are none. Reads only the providers that have credentials; sends no request.
    #[must_use]
    pub fn models(&self) -> Vec<&Model> {
        let mut models = self.providers.in_order(|provider| self.has_auth(provider));
        models.retain(|model| llm::supports(&model.api) || self.lender(model).is_some());
        models.extend(self.found_models());
        if models.is_empty() {
            models.push(&self.offline.echo);
        }
        models
    }

    /// The models of one provider.
    #[must_use]
    pub fn models_of(&self, provider: &str) -> Vec<&Model> {
        if provider == OFFLINE && !self.providers.contains(OFFLINE) {
            return vec![&self.offline.echo, &self.offline.script];
        }
        let found = self.found_models().filter(|model| model.provider == provider);
        self.providers.models_of(provider).chain(found).collect()
    }

    /// One model, with or without credentials.
    #[must_use]
    pub fn find(&self, provider: &str, id: &str) -> Option<&Model> {
        self.models_of(provider).into_iter().find(|model| model.id == id)
    }

    /// The model that needs no key and no network, so that there is always one.
    #[must_use]
    pub fn echo(&self) -> &Model {
        &self.offline.echo
    }

    /// Whose extension answers for this model itself: its own provider's, else the one whose API the model names.
    #[must_use]
    pub fn lender(&self, model: &Model) -> Option<&str> {
        // The recording has the answer; an extension would ask its server for a second one.
        if self.credentials.is_replay() {
            return None;
        }
        self.providers.lender(model)
    }

    /// Asks local servers for their models, unless that was done within the last seconds: the one with this provider id, or
    /// all of them. Blocks for as long as that takes, and until other threads have their answers: milliseconds, and at most
    /// [`crate::limits::LOCAL_WHOLE`] for each.
    pub fn look_for_local(&self, only: Option<&str>) {
        self.local.look(only, &self.credentials, &self.providers);
    }

    /// Probes before `provider` is looked up, if it is a local one; does nothing for others.
    pub(crate) fn look_if_local(&self, provider: &str) {
        if self.is_local(provider) {
            self.look_for_local(Some(provider));
        }
    }

    /// The servers that answered when they were asked last.
    #[must_use]
    pub fn local_servers(&self) -> &[Server] {
        self.local.servers()
    }

    /// Returns true if this is the provider id of a local server.
    #[must_use]
    pub fn is_local(&self, provider: &str) -> bool {
        self.local.contains(provider)
    }

    /// Returns true if only a local server can have the provider's models: no file describes any.
    pub(crate) fn is_only_local(&self, provider: &str) -> bool {
        self.is_local(provider) && !self.providers.contains(provider)
    }

    /// The models found at local servers, except models that `models.json` describes itself.
    fn found_models(&self) -> impl Iterator<Item = &Model> {
        self.local.models().filter(|found| {
            let mut described = self.providers.models_of(&found.provider);
            !described.any(|model| model.id == found.id)
        })
    }

    /// Why a local server cannot be asked; nothing when it can, or when the provider is none.
    pub(crate) fn no_server(&self, provider: &str) -> Option<RegistryError> {
        self.local
            .why_silent(provider, &self.credentials, &self.providers)
    }
}
