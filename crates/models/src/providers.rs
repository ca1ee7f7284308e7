//! The providers in registry order, and what the catalogue, `models.json` and extensions say of each. Not here: keys of
//! providers (`credentials`), servers on the user's own machines (`local_servers`).

use std::sync::{Arc, OnceLock};

use auth::login::alias::old_name;
use wire::Model;

use crate::catalogue::{Catalogue, Listed};
use crate::merge::{Entries, merge};
use crate::models_file::{ModelsFile, ProviderDef};
use crate::registered::Registered;

/// The provider whose address follows from its login.
pub(crate) const COPILOT: &str = "github-copilot";

/// One provider. Its models are built on first access.
#[derive(Debug)]
struct Slot {
    id: String,
    /// Place of its section in `models.json`.
    custom: Option<usize>,
    /// Place among what extensions registered.
    registered: Option<usize>,
    entries: OnceLock<Entries>,
}

/// All providers but those of local servers and the offline one.
#[derive(Debug)]
pub(crate) struct Providers {
    catalogue: Arc<Catalogue>,
    file: ModelsFile,
    registered: Vec<Registered>,
    /// GitHub Copilot's address for the stored login, if there is one.
    copilot_url: Option<String>,
    slots: Vec<Slot>,
}

impl Providers {
    /// Orders the providers: the catalogue's, then further ones of `models.json`, then further ones of extensions.
    pub(crate) fn new(
        catalogue: Arc<Catalogue>,
        file: ModelsFile,
        registered: Vec<Registered>,
        copilot_url: Option<String>,
    ) -> Self {
        let built_in = |id: &str| catalogue.provider(id).is_some();
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
            registered: registered.iter().position(|theirs| theirs.id() == id),
            entries: OnceLock::new(),
        };
        let known = catalogue.providers().iter().map(|provider| slot(provider.id()));
        let own = file
            .providers()
            .iter()
            .filter(|section| !built_in(&section.0) && renamed(section).is_none())
            .map(|(id, _)| slot(id));
        let mut slots: Vec<Slot> = known.chain(own).collect();
        for theirs in &registered {
            if slots.iter().all(|known| known.id != theirs.id()) {
                slots.push(slot(theirs.id()));
            }
        }
        Self {
            catalogue,
            file,
            registered,
            copilot_url,
            slots,
        }
    }

    pub(crate) fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    pub(crate) fn file(&self) -> &ModelsFile {
        &self.file
    }

    /// Providers that extensions bring.
    pub(crate) fn registered(&self) -> &[Registered] {
        &self.registered
    }

    /// All ids in registry order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.id.as_str())
    }

    /// Returns true if the catalogue, `models.json` or an extension has the provider under this very name.
    pub(crate) fn contains(&self, provider: &str) -> bool {
        self.exact(provider).is_some()
    }

    fn exact(&self, provider: &str) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.id == provider)
    }

    /// The section of `models.json` for a provider.
    pub(crate) fn custom(&self, provider: &str) -> Option<&ProviderDef> {
        self.section(self.exact(provider)?)
    }

    fn section(&self, slot: &Slot) -> Option<&ProviderDef> {
        Some(&self.file.providers().get(slot.custom?)?.1)
    }

    /// The provider as an extension describes it.
    pub(crate) fn of_extension(&self, provider: &str) -> Option<&Registered> {
        self.registered
            .iter()
            .find(|registered| registered.id() == provider)
    }

    fn entries<'a>(&'a self, slot: &'a Slot) -> &'a Entries {
        slot.entries.get_or_init(|| {
            let def = self.section(slot);
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
            // An address that the user or an extension names counts before that of the login.
            let has_own_url = theirs.is_some() || def.is_some_and(|def| def.base_url.is_some());
            if let Some(url) = self
                .copilot_url
                .as_ref()
                .filter(|_| slot.id == COPILOT && !has_own_url)
            {
                entries
                    .base
                    .iter_mut()
                    .for_each(|listed| listed.model.base_url.clone_from(url));
            }
            entries
        })
    }

    /// The models of the providers to keep: first in the catalogue's order, then the models that `models.json` or an extension
    /// adds.
    pub(crate) fn in_order(&self, keep: impl Fn(&str) -> bool) -> Vec<&Model> {
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

    /// The models of a provider, by its name or by a newer one.
    pub(crate) fn models_of(&self, provider: &str) -> impl Iterator<Item = &Model> {
        let slot = self.exact(provider).or_else(|| self.exact(old_name(provider)?));
        let listed = slot.into_iter().flat_map(|slot| self.entries(slot).iter());
        listed.map(|listed| &listed.model)
    }

    /// The model with its unresolved headers; a synthetic one has those of its provider's first model.
    pub(crate) fn listed(&self, model: &Model) -> Option<&Listed> {
        let entries = self.entries(self.exact(&model.provider)?);
        entries
            .iter()
            .find(|listed| listed.model.id == model.id)
            .or_else(|| entries.iter().next())
    }

    /// Whose extension answers for this model itself: its own provider's, else the one whose API the model names.
    pub(crate) fn lender(&self, model: &Model) -> Option<&str> {
        let own = self
            .of_extension(&model.provider)
            .filter(|registered| registered.answers(model));
        let any = || {
            let mut others = self.registered.iter();
            others.find(|other| !other.is_native() && other.answers(model) && !llm::supports(&model.api))
        };
        own.or_else(any).map(Registered::id)
    }

    /// What `models.json` and extensions say of providers.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &ProviderDef> {
        let theirs = self.registered.iter().map(|registered| &registered.def);
        self.file.providers().iter().map(|(_, def)| def).chain(theirs)
    }

    /// The key that an extension or `models.json` names for a provider: an extension's word counts first.
    pub(crate) fn key(&self, provider: &str) -> Option<&str> {
        let theirs = self
            .of_extension(provider)
            .and_then(|registered| registered.def.api_key.as_deref());
        theirs.or_else(|| self.custom(provider)?.api_key.as_deref())
    }

    /// Returns true if the key is also sent as `Authorization: Bearer`.
    pub(crate) fn sends_bearer(&self, provider: &str) -> bool {
        let theirs = self
            .of_extension(provider)
            .is_some_and(|theirs| theirs.def.auth_header);
        theirs || self.custom(provider).is_some_and(|def| def.auth_header)
    }
}
