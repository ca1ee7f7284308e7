//! Local servers in the registry: when they are probed, and their models in the list of all. [`crate::local`] probes
//! them. No server is probed unless a model of it was named, all models are listed, or no other model exists.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use auth::Secret;
use auth::login::AuthEntry;
use wire::Model;

use crate::error::RegistryError;
use crate::limits::{LOCAL_CHANGES, LOCAL_FRESH};
use crate::local::{Kind, Place, Server, places};
use crate::store::Registry;

/// The servers found so far. Callers hold references to models, so lists are never freed: a change appends a new list,
/// and the last one counts.
#[derive(Debug, Default)]
pub(crate) struct Local {
    first: Found,
    /// When each place was asked last, by provider id.
    asked: Mutex<BTreeMap<String, Instant>>,
}

#[derive(Debug, Default)]
struct Found {
    servers: Vec<Server>,
    next: OnceLock<Box<Found>>,
}

impl Local {
    fn lists(&self) -> impl Iterator<Item = &Found> {
        std::iter::successors(Some(&self.first), |found| found.next.get().map(Box::as_ref))
    }

    fn servers(&self) -> &[Server] {
        self.lists().last().map_or(&[], |found| &found.servers)
    }

    /// Replaces the servers of these places with the found ones.
    fn note(&self, places: &[Place], found: Vec<Server>) {
        let mut servers = self.servers().to_vec();
        servers.retain(|server| !places.iter().any(|place| place.id == server.id));
        servers.extend(found);
        if servers == self.servers() || self.lists().count() > LOCAL_CHANGES {
            return;
        }
        let mut list = Box::new(Found {
            servers,
            next: OnceLock::new(),
        });
        // Another thread may append a list at the same time.
        while let Some(last) = self.lists().last() {
            match last.next.set(list) {
                Ok(()) => return,
                Err(back) => list = back,
            }
        }
    }

    /// Those of the places that were not asked just now; they count as asked from here on.
    fn due(&self, mut places: Vec<Place>) -> Vec<Place> {
        let now = Instant::now();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| {
            let last = asked.get(&place.id);
            last.is_none_or(|last| now.duration_since(*last) >= LOCAL_FRESH)
        });
        asked.extend(places.iter().map(|place| (place.id.clone(), now)));
        places
    }
}

impl Registry {
    /// Asks local servers for their models, unless that was done within the last seconds: the one with this provider id, or
    /// all of them. Blocks for as long as that takes: milliseconds, and at most [`crate::limits::LOCAL_WHOLE`].
    pub fn look_for_local(&self, only: Option<&str>) {
        let sources = &self.sources().local;
        let Some(probe) = &sources.probe else { return };
        if only.is_none() && sources.only_named {
            return;
        }
        let mut places = self.local_places();
        places.retain(|place| only.is_none_or(|id| place.id == id));
        let places = self.local.due(places);
        if !places.is_empty() {
            let found = probe(places.clone());
            self.local.note(&places, found);
        }
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

    /// Places where a server may be, with the keys to ask with.
    fn local_places(&self) -> Vec<Place> {
        let sources = self.sources();
        let file = |id: &str| self.custom(id)?.base_url.clone();
        let env = |name: &str| (sources.env)(name).filter(|value| !value.is_empty());
        let mut places = places(&sources.local, &env, &file);
        for place in &mut places {
            place.key = self.local_key(&place.id);
        }
        places
    }

    /// A key for listing models. Commands are not run for it.
    fn local_key(&self, id: &str) -> Option<Secret> {
        if let Some(key) = self.runtime_key(id) {
            return Some(key.clone());
        }
        if let Some(AuthEntry::ApiKey { key, .. }) = self.auth().entry(id)
            && !key.expose().starts_with(['!', '$'])
        {
            return Some(key.clone());
        }
        self.variable(id, self.local_key_variable(id)?).map(Secret::from)
    }

    /// The variable with a local server's key, if it is set.
    pub(crate) fn local_key_variable(&self, id: &str) -> Option<&'static str> {
        let name = Kind::of_id(id)?.key_variable()?;
        self.variable(id, name).map(|_| name)
    }

    /// All variables that can hold a local server's key.
    pub(crate) fn local_key_variables() -> impl Iterator<Item = &'static str> {
        Kind::ALL.into_iter().filter_map(Kind::key_variable)
    }

    /// Provider ids of local servers, whether they are there or not.
    pub(crate) fn local_ids(&self) -> impl Iterator<Item = &str> {
        let own = self.sources().local.servers.iter().map(|(id, _)| id.as_str());
        let own = own.filter(|id| Kind::of_id(id).is_none());
        let usual = Kind::ALL.into_iter().map(|kind| -> &str { kind.id() });
        usual.chain(own)
    }

    /// Returns true if this is the provider id of a local server.
    #[must_use]
    pub fn is_local(&self, provider: &str) -> bool {
        self.local_ids().any(|id| id == provider)
    }

    /// Returns true if a server with this provider id has ever answered.
    pub(crate) fn was_found(&self, provider: &str) -> bool {
        let mut servers = self.local.lists().flat_map(|found| &found.servers);
        servers.any(|server| server.id == provider && !server.wants_key)
    }

    /// The models found at local servers, except models that `models.json` describes itself.
    pub(crate) fn found_models(&self) -> impl Iterator<Item = &Model> {
        let models = self.local.servers().iter().flat_map(|server| &server.models);
        models.filter(|model| !self.describes(&model.provider, &model.id))
    }

    /// Why a local server cannot be asked; nothing when it can, or when the provider is none.
    pub(crate) fn no_server(&self, provider: &str) -> Option<RegistryError> {
        if !self.is_local(provider) || self.has_slot(provider) || self.was_found(provider) {
            return None;
        }
        let place = self
            .local_places()
            .into_iter()
            .find(|place| place.id == provider)?;
        let server = place.kind.map_or(provider, |kind| kind.name()).to_owned();
        let servers = self.local_servers();
        if servers
            .iter()
            .any(|server| server.id == provider && server.wants_key)
        {
            let variable = place.kind.and_then(Kind::key_variable);
            let set = variable.map_or_else(String::new, |name| format!("set {name}, "));
            let help = format!(
                "The server at {} asks for one: {set}pass --api-key, or store it in auth.json in the agent directory.",
                place.url
            );
            return Some(RegistryError::NoKey {
                provider: provider.to_owned(),
                help,
            });
        }
        Some(RegistryError::NoServer {
            server,
            help: how_to_start(&place),
            url: place.url,
        })
    }

    /// How to start a local server; none for other providers.
    pub(crate) fn how_to_start(&self, provider: &str) -> Option<String> {
        let places = self.local_places();
        let place = places.iter().find(|place| place.id == provider)?;
        Some(how_to_start(place))
    }

    /// Servers that variables or settings name, one sentence each on why they cannot be used.
    pub(crate) fn unusable_servers(&self) -> Vec<String> {
        let places = self.local_places().into_iter().filter(|place| place.is_named);
        let mut out = Vec::new();
        for place in places {
            let id = place.id.as_str();
            self.look_for_local(Some(id));
            let by = place.kind.and_then(|kind| self.address_variable(kind));
            let by = by.unwrap_or("localServers in settings.json");
            out.push(match self.no_server(id) {
                Some(error) => format!("{by} names a model server: {error}"),
                // With `--offline` or without `localServers.enabled` it is asked only when it is named.
                None => format!(
                    "{by} names a model server that is not searched for. Use it with: --provider {id}"
                ),
            });
        }
        out
    }

    /// The variable that names the address of a kind of server, if one is set.
    fn address_variable(&self, kind: Kind) -> Option<&'static str> {
        let mut names = crate::local::address_variables(kind).iter().copied();
        names.find(|name| (self.sources().env)(name).is_some_and(|value| !value.is_empty()))
    }

    /// The error for a model that a local server does not have.
    pub(crate) fn not_served(&self, provider: &str, model: &str) -> Option<RegistryError> {
        if !self.is_local(provider) || self.has_slot(provider) {
            return None;
        }
        if let Some(error) = self.no_server(provider) {
            return Some(error);
        }
        let server = self.local_servers().iter().find(|server| server.id == provider);
        let Some(server) = server else {
            return Some(RegistryError::ModelNotFound {
                model: format!("{provider}/{model}"),
                nearest: Vec::new(),
            });
        };
        let ids: Vec<&str> = server.models.iter().map(|model| model.id.as_str()).collect();
        let models = if ids.is_empty() {
            "none".to_owned()
        } else {
            ids.join(", ")
        };
        Some(RegistryError::NotServed {
            model: model.to_owned(),
            server: server.kind.map_or(provider, |kind| kind.name()).to_owned(),
            url: server.url.clone(),
            models,
        })
    }
}

/// How to start the server of a place, in two sentences.
fn how_to_start(place: &Place) -> String {
    let (start, variable) = match place.kind {
        Some(Kind::Ollama) => (" with: ollama serve", "OLLAMA_HOST or "),
        Some(Kind::LlamaCpp) => (" with: llama-server -m MODEL.gguf", "LLAMA_CPP_BASE_URL or "),
        Some(Kind::LmStudio) => (" with: lms server start", "LMSTUDIO_BASE_URL or "),
        Some(Kind::Vllm) => (" with: vllm serve MODEL", "VLLM_BASE_URL or "),
        None => ("", ""),
    };
    format!("Start it{start}. If it has another address, set {variable}\"localServers\" in settings.json.")
}
