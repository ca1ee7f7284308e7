//! Probes all places at once. An absent server must cost little; a present one must answer soon and briefly.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use llm::ClientConfig;
use serde::Deserialize;
use tokio::time::timeout;
use wire::Model;

use super::asker::{Asker, Listed, Miss};
use super::{Kind, Place, Probe, Server, llama_cpp, lm_studio, ollama, vllm};
use crate::limits::{LOCAL_ANSWER, LOCAL_CONNECT, LOCAL_MODELS, LOCAL_WHOLE};

/// Timeouts of a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// Timeout of a connection.
    pub(super) connect: Duration,
    /// Timeout for the status of a response.
    pub(super) answer: Duration,
    /// Timeout of the whole query.
    pub(super) whole: Duration,
}

const TIMEOUTS: Timeouts = Timeouts {
    connect: LOCAL_CONNECT,
    answer: LOCAL_ANSWER,
    whole: LOCAL_WHOLE,
};

/// A prober with these proxies and this name. Its threads and connections live as long as one question.
#[must_use]
pub fn prober(config: ClientConfig) -> Probe {
    prober_with(config, TIMEOUTS)
}

/// A prober with other timeouts, for tests on a busy machine.
pub(super) fn prober_with(config: ClientConfig, timeouts: Timeouts) -> Probe {
    let config = ClientConfig {
        connect_timeout: timeouts.connect,
        ..config
    };
    Arc::new(move |places| {
        let config = config.clone();
        // A thread of its own: the caller may be inside a runtime, where nothing may block on another one.
        let thread = std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_io().enable_time().build().ok()?;
            let asker = Asker::new(config, timeouts.answer);
            let servers = runtime.block_on(ask(asker, &places, timeouts.whole));
            runtime.shutdown_background();
            Some(servers)
        });
        thread.join().ok().flatten().unwrap_or_default()
    })
}

async fn ask(asker: Asker, places: &[Place], whole: Duration) -> Vec<Server> {
    let asked = places.iter().map(|place| {
        let asker = &asker;
        async move { timeout(whole, server(asker, place)).await.ok().flatten() }
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// `/v1/models`.
#[derive(Deserialize)]
struct List {
    data: Vec<Listed>,
}

/// The server at a place, if one is there.
async fn server(asker: &Asker, place: &Place) -> Option<Server> {
    let mut kinds: Vec<Kind> = place.kind.into_iter().collect();
    if place.is_named {
        // llama.cpp answers some of Ollama's questions: it comes before.
        let all = [Kind::LlamaCpp, Kind::Vllm, Kind::LmStudio, Kind::Ollama];
        kinds.extend(all.into_iter().filter(|kind| Some(*kind) != place.kind));
    }
    let found = |kind, wants_key, models| {
        Some(Server {
            id: place.id.clone(),
            kind,
            url: place.url.clone(),
            wants_key,
            models: best_first(models),
        })
    };
    let mut wants_key = false;
    let mut plain = None;
    for kind in kinds {
        let answer = match kind {
            Kind::Ollama => ollama::models(asker, place).await,
            Kind::LmStudio => lm_studio::models(asker, place).await,
            // Both list in the same way; who owns the models tells who serves.
            Kind::LlamaCpp | Kind::Vllm => match by_owner(asker, place, kind).await {
                Ok(Ok(models)) => Ok(models),
                Ok(Err(other)) => {
                    plain = Some(other);
                    Err(Miss::Other)
                }
                Err(miss) => Err(miss),
            },
        };
        match answer {
            Ok(models) => return found(Some(kind), false, models),
            Err(Miss::Absent) => return None,
            Err(Miss::Key) => wants_key = true,
            Err(Miss::Other) => {}
        }
    }
    match plain.filter(|_| place.is_named) {
        Some(listed) => found(None, false, vllm::models(place, listed)),
        None if wants_key => found(place.kind, true, Vec::new()),
        None => None,
    }
}

/// The models of a server of this kind, or the list of a server of another.
async fn by_owner(asker: &Asker, place: &Place, kind: Kind) -> Result<Result<Vec<Model>, Vec<Listed>>, Miss> {
    let mut list: List = asker.get(place, "/v1/models").await?;
    list.data.truncate(LOCAL_MODELS);
    let owner = if kind == Kind::Vllm { "vllm" } else { "llamacpp" };
    if !list.data.iter().any(|model| model.owned_by == owner) {
        return Ok(Err(list.data));
    }
    if kind == Kind::Vllm {
        return Ok(Ok(vllm::models(place, list.data)));
    }
    llama_cpp::models(asker, place, list.data).await.map(Ok)
}

/// The server's own order, but what cannot call tools comes last: an agent lives by them.
fn best_first(mut models: Vec<Model>) -> Vec<Model> {
    models.sort_by_key(|model| !llm::compat::flag(model, "supportsTools", true));
    models
}
