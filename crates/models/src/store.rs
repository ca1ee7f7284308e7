//! The registry: catalogue, `models.json`, `auth.json` and environment as one list of models. Keys and headers are in
//! `credentials`, choosing is in `choose`.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use auth::Secret;
use auth::Secrets;
use auth::login::alias::old_name;
use auth::login::{AuthEntry, AuthFile, copilot_address};
use wire::Model;

use crate::catalogue::{Catalogue, Listed};
use crate::local::LocalSources;
use crate::local_servers::Local;
use crate::merge::{Entries, merge};
use crate::models_file::{ModelsFile, ProviderDef};
use crate::offline::{OFFLINE, Offline};
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
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("agent_dir", &self.agent_dir)
            .finish_non_exhaustive()
    }
}

/// One provider. Its models are built on first access.
#[derive(Debug)]
struct Slot {
    id: String,
    custom: Option<usize>,
    /// Place among what extensions registered.
    registered: Option<usize>,
    entries: OnceLock<Entries>,
}

/// What a reload does not read anew.
struct Kept {
    runtime: Option<(String, Secret)>,
    secrets: Secrets,
    replayed: Option<Vec<String>>,
    registered: Vec<Registered>,
    local: Arc<Local>,
}

/// All models that the agent knows, and the credentials for them.
#[derive(Debug)]
pub struct Registry {
    sources: Sources,
    catalogue: Arc<Catalogue>,
    file: ModelsFile,
    auth: AuthFile,
    runtime: Option<(String, Secret)>,
    slots: Vec<Slot>,
    offline: Offline,
    secrets: Secrets,
    /// Providers that a recording answers for; none without one.
    replayed: Option<Vec<String>>,
    pub(crate) local: Arc<Local>,
    /// Providers that extensions bring.
    pub(crate) registered: Vec<Registered>,
    catalogue_error: Option<String>,
}

impl Registry {
    /// Reads both files and the provider lines of the catalogue, but no model lines. Damaged files leave the built-in models
    /// usable: see [`Self::models_error`] and [`Self::auth_error`].
    #[must_use]
    pub fn new(sources: Sources) -> Self {
        let (catalogue, problem) = Catalogue::load(&sources.agent_dir);
        let kept = Kept {
            runtime: None,
            secrets: Secrets::default(),
            replayed: None,
            registered: Vec::new(),
            local: Arc::default(),
        };
        let mut registry = Self::build(sources, Arc::new(catalogue), kept);
        registry.catalogue_error = problem;
        registry
    }

    fn build(sources: Sources, catalogue: Arc<Catalogue>, kept: Kept) -> Self {
        let built_in = |id: &str| catalogue.provider(id).is_some();
        let file = ModelsFile::read(&sources.agent_dir.join("models.json"), &built_in);
        let auth = AuthFile::read(&sources.agent_dir.join("auth.json"));
        // A section under a provider's new name that only changes it belongs to the catalogue's provider.
        let renamed = |(name, def): &(String, ProviderDef)| {
            old_name(name).filter(|old| def.models.is_empty() && built_in(old))
        };
        let custom = |id: &str| {
            let mut sections = file.providers().iter();
            let own = sections.position(|(name, _)| name == id);
            own.or_else(|| {
                file.providers()
                    .iter()
                    .position(|section| renamed(section) == Some(id))
            })
        };
        let slot = |id: &str| Slot {
            id: id.to_owned(),
            custom: custom(id),
            registered: kept.registered.iter().position(|theirs| theirs.id() == id),
            entries: OnceLock::new(),
        };
        let known = catalogue.providers().iter().map(|provider| slot(provider.id()));
        let own = file
            .providers()
            .iter()
            .filter(|section| !built_in(&section.0) && renamed(section).is_none())
            .map(|(id, _)| slot(id));
        let mut slots: Vec<Slot> = known.chain(own).collect();
        for theirs in &kept.registered {
            if slots.iter().all(|known| known.id != theirs.id()) {
                slots.push(slot(theirs.id()));
            }
        }
        let registry = Self {
            sources,
            catalogue,
            file,
            auth,
            runtime: kept.runtime,
            slots,
            offline: Offline::default(),
            secrets: kept.secrets,
            replayed: kept.replayed,
            local: kept.local,
            registered: kept.registered,
            catalogue_error: None,
        };
        registry.learn_secrets();
        registry
    }

    /// A new registry from the files as they are now; a key given with [`Self::set_runtime_key`] is kept, and what has been
    /// read of the catalogue is shared.
    #[must_use]
    pub fn reload(&self) -> Self {
        self.rebuild(self.registered.clone())
    }

    pub(crate) fn rebuild(&self, registered: Vec<Registered>) -> Self {
        Self::build(
            self.sources.clone(),
            Arc::clone(&self.catalogue),
            Kept {
                runtime: self.runtime.clone(),
                secrets: self.secrets.clone(),
                replayed: self.replayed.clone(),
                registered,
                local: Arc::clone(&self.local),
            },
        )
    }

    /// A key for this run only (`--api-key`); it wins over all others of that provider.
    pub fn set_runtime_key(&mut self, provider: &str, key: Secret) {
        self.secrets.learn(key.expose());
        self.runtime = Some((provider.to_owned(), key));
    }

    /// A recording answers for these providers: they count as having keys, and nothing is looked up, run or renewed.
    pub fn set_replayed(&mut self, providers: Vec<String>) {
        self.replayed = Some(providers);
    }

    pub(crate) fn replayed(&self) -> Option<&[String]> {
        self.replayed.as_deref()
    }

    /// All credentials that this process has seen; grows with each that is looked up.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(crate) fn runtime_key(&self, provider: &str) -> Option<&Secret> {
        self.runtime
            .as_ref()
            .filter(|(id, _)| id == provider)
            .map(|(_, key)| key)
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Why the catalogue in the agent directory is not used, if there is one.
    #[must_use]
    pub fn catalogue_error(&self) -> Option<&str> {
        self.catalogue_error.as_deref()
    }

    /// The catalogue: the built-in one, or the one in the agent directory.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The stored credentials.
    #[must_use]
    pub fn auth(&self) -> &AuthFile {
        &self.auth
    }

    /// Why `models.json` was ignored, if it was.
    #[must_use]
    pub fn models_error(&self) -> Option<&str> {
        self.file.error()
    }

    /// What of `auth.json` was ignored, if anything.
    #[must_use]
    pub fn auth_error(&self) -> Option<&str> {
        self.auth.error()
    }

    /// The providers of `models.json`.
    #[must_use]
    pub fn custom_providers(&self) -> &[(String, ProviderDef)] {
        self.file.providers()
    }

    pub(crate) fn custom(&self, provider: &str) -> Option<&ProviderDef> {
        let slot = self.slots.iter().find(|slot| slot.id == provider)?;
        Some(&self.file.providers().get(slot.custom?)?.1)
    }

    /// All provider ids in registry order, local servers and `offline` last.
    pub fn provider_ids(&self) -> impl Iterator<Item = &str> {
        let local = self.local_ids().filter(|id| !self.has_slot(id));
        self.slots
            .iter()
            .map(|slot| slot.id.as_str())
            .chain(local)
            .chain([OFFLINE])
    }

    /// Returns true if the catalogue or `models.json` contains the provider.
    pub(crate) fn has_slot(&self, provider: &str) -> bool {
        self.slots.iter().any(|slot| slot.id == provider)
    }

    fn entries<'a>(&self, slot: &'a Slot) -> &'a Entries {
        let fill = || {
            let def = slot
                .custom
                .and_then(|index| self.file.providers().get(index))
                .map(|(_, def)| def);
            let built_in = self
                .catalogue
                .provider(&slot.id)
                .map_or(&[][..], |provider| provider.models());
            let mut entries = merge(&slot.id, built_in, def);
            let theirs = slot.registered.and_then(|index| self.registered.get(index));
            if let Some(theirs) = theirs {
                entries = theirs.lay_over(entries, def);
            }
            entries.hide_url_secrets();
            if let Some(url) = self
                .auth
                .entry(&slot.id)
                .filter(|_| theirs.is_none() && def.is_none_or(|def| def.base_url.is_none()))
                .and_then(|entry| copilot_base_url(&slot.id, entry))
            {
                entries
                    .base
                    .iter_mut()
                    .for_each(|listed| listed.model.base_url.clone_from(&url));
            }
            entries
        };
        slot.entries.get_or_init(fill)
    }

    fn in_order(&self, keep: impl Fn(&str) -> bool) -> Vec<&Model> {
        let slots: Vec<&Slot> = self.slots.iter().filter(|slot| keep(&slot.id)).collect();
        let mut own: Vec<&Slot> = slots
            .iter()
            .copied()
            .filter(|slot| slot.custom.is_some() || slot.registered.is_some())
            .collect();
        own.sort_by_key(|slot| (slot.registered, slot.custom));
        let base = slots.iter().flat_map(|slot| &self.entries(slot).base);
        let added = own.iter().flat_map(|slot| &self.entries(slot).added);
        base.chain(added).map(|listed| &listed.model).collect()
    }

    /// Every model: built-in ones, then those of `models.json`, then the offline ones. Reads the whole catalogue.
    #[must_use]
    pub fn all(&self) -> Vec<&Model> {
        let mut models = self.in_order(|_| true);
        models.extend(self.found_models());
        models.extend([&self.offline.echo, &self.offline.script]);
        models
    }

    /// The models with credentials whose API is spoken here, in registry order, then those found at local servers so far;
    /// `offline/echo` if there are none. Reads only the providers that have credentials; sends no request.
    #[must_use]
    pub fn models(&self) -> Vec<&Model> {
        let mut models = self.in_order(|provider| self.has_auth(provider));
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
        if provider == OFFLINE && !self.slots.iter().any(|slot| slot.id == OFFLINE) {
            return vec![&self.offline.echo, &self.offline.script];
        }
        let listed = self
            .slot(provider)
            .into_iter()
            .flat_map(|slot| self.entries(slot).iter());
        let found = self.found_models().filter(|model| model.provider == provider);
        listed.map(|listed| &listed.model).chain(found).collect()
    }

    /// Returns true if the catalogue or `models.json` describes the model.
    pub(crate) fn describes(&self, provider: &str, id: &str) -> bool {
        let mut listed = self
            .slot(provider)
            .into_iter()
            .flat_map(|slot| self.entries(slot).iter());
        listed.any(|listed| listed.model.id == id)
    }

    /// A provider by its name, or by a newer one.
    fn slot(&self, provider: &str) -> Option<&Slot> {
        let named = |id: &str| self.slots.iter().find(|slot| slot.id == id);
        named(provider).or_else(|| named(old_name(provider)?))
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

    /// The unresolved headers of a model; a synthetic one has those of its provider's first model.
    pub(crate) fn listed(&self, model: &Model) -> Option<&Listed> {
        let slot = self.slots.iter().find(|slot| slot.id == model.provider)?;
        let entries = self.entries(slot);
        entries
            .iter()
            .find(|listed| listed.model.id == model.id)
            .or_else(|| entries.iter().next())
    }

    /// Place of a provider when several could serve: the user's own first, then the order of defaults.
    pub(crate) fn rank(&self, provider: &str) -> Option<usize> {
        if provider == OFFLINE {
            return Some(usize::MAX);
        }
        if self.is_local(provider) && !self.has_slot(provider) {
            return Some(usize::MAX - 1);
        }
        self.catalogue.provider(provider).map(|provider| provider.rank())
    }
}

/// GitHub Copilot's address for a stored login.
fn copilot_base_url(provider: &str, entry: &AuthEntry) -> Option<String> {
    let AuthEntry::Oauth { access, .. } = entry else {
        return None;
    };
    if provider != "github-copilot" {
        return None;
    }
    copilot_address(access.expose(), entry.extra("enterpriseUrl"))
}
