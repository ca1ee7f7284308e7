//! Local servers in the registry: when they are probed, and their models in the list of all. [`crate::local`] probes
//! them. No server is probed unless a model of it was named, all models are listed, or no other model exists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use wire::Model;

use crate::credentials::Credentials;
use crate::error::RegistryError;
use crate::limits::{LOCAL_CHANGES, LOCAL_FRESH};
use crate::local::{Kind, LocalSources, Place, Probe, Server, places};
use crate::providers::Providers;

/// The servers found so far. Callers hold references to models, so lists are never freed: a change appends a new list,
/// and the last one counts.
#[derive(Debug, Default)]
struct Found {
    first: List,
    /// When each place was asked last, by provider id. Locked until the answers are noted, so that a thread that needs a
    /// server which another thread asks right now waits for its answer.
    asked: Mutex<BTreeMap<String, Instant>>,
}

#[derive(Debug, Default)]
struct List {
    servers: Vec<Server>,
    next: OnceLock<Box<List>>,
}

impl Found {
    fn lists(&self) -> impl Iterator<Item = &List> {
        std::iter::successors(Some(&self.first), |list| list.next.get().map(Box::as_ref))
    }

    fn servers(&self) -> &[Server] {
        self.lists().last().map_or(&[], |list| &list.servers)
    }

    /// Asks those of the places that were not asked just now. Waits for threads that are asking.
    fn ask(&self, places: Vec<Place>, probe: &Probe) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let places = due(&mut asked, places);
        if !places.is_empty() {
            let found = probe(places.clone());
            self.note(&places, found);
        }
    }

    /// Replaces the servers of these places with the found ones. One thread at a time may do so.
    fn note(&self, places: &[Place], found: Vec<Server>) {
        let mut servers = self.servers().to_vec();
        servers.retain(|server| !places.iter().any(|place| place.id == server.id));
        servers.extend(found);
        if servers == self.servers() || self.lists().count() > LOCAL_CHANGES {
            return;
        }
        if let Some(last) = self.lists().last() {
            let next = OnceLock::new();
            let _appended = last.next.set(Box::new(List { servers, next }));
        }
    }
}

/// Those of the places that were not asked just now; they count as asked from here on.
fn due(asked: &mut BTreeMap<String, Instant>, mut places: Vec<Place>) -> Vec<Place> {
    let now = Instant::now();
    places.retain(|place| {
        let last = asked.get(&place.id);
        last.is_none_or(|last| now.duration_since(*last) >= LOCAL_FRESH)
    });
    asked.extend(places.iter().map(|place| (place.id.clone(), now)));
    places
}

/// Local servers: where they may be and which have answered. A reload of the registry shares the found servers.
#[derive(Debug, Clone)]
pub(crate) struct LocalServers {
    sources: LocalSources,
    found: Arc<Found>,
}

impl LocalServers {
    pub(crate) fn new(sources: LocalSources) -> Self {
        Self {
            sources,
            found: Arc::default(),
        }
    }

    /// Provider ids of local servers, whether they are there or not.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let own = self.sources.servers.iter().map(|(id, _)| id.as_str());
        let own = own.filter(|id| Kind::of_id(id).is_none());
        let usual = Kind::ALL.into_iter().map(|kind| -> &str { kind.id() });
        usual.chain(own)
    }

    /// Returns true if this is the provider id of a local server.
    pub(crate) fn contains(&self, provider: &str) -> bool {
        self.ids().any(|id| id == provider)
    }

    /// The servers that answered when they were asked last.
    pub(crate) fn servers(&self) -> &[Server] {
        self.found.servers()
    }

    /// The models found at servers.
    pub(crate) fn models(&self) -> impl Iterator<Item = &Model> {
        self.servers().iter().flat_map(|server| &server.models)
    }

    /// Returns true if a server with this provider id has ever answered.
    pub(crate) fn has_answered(&self, provider: &str) -> bool {
        let mut servers = self.found.lists().flat_map(|list| &list.servers);
        servers.any(|server| server.id == provider && !server.wants_key)
    }

    /// Asks servers for their models, unless that was done within the last seconds: the one with this provider id, or all of
    /// them. Blocks for as long as that takes, and until other threads have their answers: milliseconds, and at most
    /// [`crate::limits::LOCAL_WHOLE`] for each.
    pub(crate) fn look(&self, only: Option<&str>, credentials: &Credentials, providers: &Providers) {
        let Some(probe) = &self.sources.probe else { return };
        if only.is_none() && self.sources.only_named {
            return;
        }
        let mut places = self.places(credentials, providers);
        places.retain(|place| only.is_none_or(|id| place.id == id));
        self.found.ask(places, probe);
    }

    /// Places where a server may be, with the keys to ask with.
    fn places(&self, credentials: &Credentials, providers: &Providers) -> Vec<Place> {
        let file = |id: &str| providers.custom(id)?.base_url.clone();
        let mut places = places(&self.sources, &|name| credentials.process_variable(name), &file);
        for place in &mut places {
            place.key = credentials.local_key(&place.id);
        }
        places
    }

    /// How to start a local server; none for other providers.
    pub(crate) fn how_to_start(
        &self,
        provider: &str,
        credentials: &Credentials,
        providers: &Providers,
    ) -> Option<String> {
        let places = self.places(credentials, providers);
        let place = places.iter().find(|place| place.id == provider)?;
        Some(how_to_start(place))
    }

    /// Why a local server cannot be asked; nothing when it can, or when the provider is none.
    pub(crate) fn why_silent(
        &self,
        provider: &str,
        credentials: &Credentials,
        providers: &Providers,
    ) -> Option<RegistryError> {
        if !self.contains(provider) || providers.contains(provider) || self.has_answered(provider) {
            return None;
        }
        let mut places = self.places(credentials, providers).into_iter();
        let place = places.find(|place| place.id == provider)?;
        let mut servers = self.servers().iter();
        if servers.any(|server| server.id == provider && server.wants_key) {
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
            server: place.kind.map_or(provider, |kind| kind.name()).to_owned(),
            help: how_to_start(&place),
            url: place.url,
        })
    }

    /// Servers that variables or settings name, one sentence each on why they cannot be used.
    pub(crate) fn unusable(&self, credentials: &Credentials, providers: &Providers) -> Vec<String> {
        let places = self.places(credentials, providers).into_iter();
        let mut out = Vec::new();
        for place in places.filter(|place| place.is_named) {
            let id = place.id.as_str();
            self.look(Some(id), credentials, providers);
            // The variable that names the address of this kind of server, if one is set.
            let by = place.kind.and_then(|kind| {
                let mut names = crate::local::address_variables(kind).iter().copied();
                names.find(|name| credentials.process_variable(name).is_some())
            });
            let by = by.unwrap_or("localServers in settings.json");
            out.push(match self.why_silent(id, credentials, providers) {
                Some(error) => format!("{by} names a model server: {error}"),
                // With `--offline` or without `localServers.enabled` it is asked only when it is named.
                None => format!(
                    "{by} names a model server that is not searched for. Use it with: --provider {id}"
                ),
            });
        }
        out
    }

    /// The error for a model that the server of this provider does not have.
    pub(crate) fn no_model(&self, provider: &str, model: &str) -> RegistryError {
        let server = self.servers().iter().find(|server| server.id == provider);
        let Some(server) = server else {
            return RegistryError::ModelNotFound {
                model: format!("{provider}/{model}"),
                nearest: Vec::new(),
            };
        };
        let ids: Vec<&str> = server.models.iter().map(|model| model.id.as_str()).collect();
        let models = if ids.is_empty() {
            "none".to_owned()
        } else {
            ids.join(", ")
        };
        RegistryError::NotServed {
            model: model.to_owned(),
            server: server.kind.map_or(provider, |kind| kind.name()).to_owned(),
            url: server.url.clone(),
            models,
        }
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
