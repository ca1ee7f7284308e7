//! Servers on the user's own machines: Ollama, llama.cpp, LM Studio, vLLM. Here: their addresses, the requests to them,
//! and the models made of their responses; one file per kind of server. Not here: when they are probed and how their
//! models are listed, which `registry` decides; answers of their models, which are ordinary chat completions.

mod asker;
mod llama_cpp;
mod lm_studio;
mod model;
mod ollama;
mod places;
mod probe;
#[cfg(test)]
mod tests;
mod vllm;

use std::fmt;
use std::sync::Arc;

use auth::Secret;
use wire::Model;

pub(crate) use places::{places, variables as address_variables};
pub use probe::prober;

/// Which program serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ollama, port 11434.
    Ollama,
    /// llama.cpp's `llama-server`, port 8080.
    LlamaCpp,
    /// LM Studio, port 1234.
    LmStudio,
    /// vLLM, port 8000.
    Vllm,
}

impl Kind {
    /// All of them, in the order in which their models are listed.
    pub const ALL: [Self; 4] = [Self::Ollama, Self::LlamaCpp, Self::LmStudio, Self::Vllm];

    /// The provider id that its models have when it is found at its usual place.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "lm-studio",
            Self::Vllm => "vllm",
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ollama => "Ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::LmStudio => "LM Studio",
            Self::Vllm => "vLLM",
        }
    }

    /// The variable that holds the key of a server which asks for one: the server itself reads it, too.
    pub(crate) const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Ollama => None,
            Self::LlamaCpp => Some("LLAMA_API_KEY"),
            Self::LmStudio => Some("LM_API_TOKEN"),
            Self::Vllm => Some("VLLM_API_KEY"),
        }
    }

    /// The kind whose usual provider id this is.
    pub(crate) fn of_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }
}

/// A place where a server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The provider id of a server at this place.
    pub id: String,
    /// Its address, without a trailing slash and without `/v1`.
    pub url: String,
    /// The expected kind of server; none if the user gave the address a name of its own.
    pub kind: Option<Kind>,
    /// True if the user named the address. Any server of the protocol is accepted there. At a default port only the
    /// kind of server that uses this port is accepted, because other programs listen on these ports, too.
    pub is_named: bool,
    /// The key to ask with.
    pub key: Option<Secret>,
}

/// A server that answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// The provider id of its models.
    pub id: String,
    /// What it is; nothing when it only speaks the protocol.
    pub kind: Option<Kind>,
    /// Its address.
    pub url: String,
    /// True if the server refuses to list models without a key.
    pub wants_key: bool,
    /// Its models that can hold a conversation, models with tool calls first.
    pub models: Vec<Model>,
}

/// Asks all places at once and gives the servers that answered, in the order of the places. It blocks, at most
/// [`crate::limits::LOCAL_WHOLE`], and runs no longer than the slowest place.
pub type Probe = Arc<dyn Fn(Vec<Place>) -> Vec<Server> + Send + Sync>;

/// Where local servers may be, as the user said it.
#[derive(Clone, Default)]
pub struct LocalSources {
    /// True if only servers are probed that the user chose by name (`localServers.enabled` false, `--offline`).
    pub only_named: bool,
    /// Provider id and address of further servers (`localServers.servers`).
    pub servers: Vec<(String, String)>,
    /// How to ask; nothing means: never.
    pub probe: Option<Probe>,
}

impl fmt::Debug for LocalSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSources")
            .field("only_named", &self.only_named)
            .field("servers", &self.servers.len())
            .finish_non_exhaustive()
    }
}
