//! Asks local servers about the model of a `set_model`, in tasks: a server may be busy for seconds, and deltas and
//! aborts must not wait for it.

use std::sync::Arc;

use tokio::task::JoinSet;
use wire::Model;
use wire::command::SetModelParams;

use crate::factory::Agent;

use super::asker::Asker;

/// The requests that are running.
#[derive(Default)]
pub(super) struct ModelProbes {
    tasks: JoinSet<Probed>,
}

/// A `set_model` whose model was looked for.
pub(super) struct Probed {
    pub(super) asker: Asker<Model>,
    pub(super) params: SetModelParams,
    /// `None` if there is no such model with credentials.
    pub(super) model: Option<Model>,
}

impl ModelProbes {
    /// Looks for the model that `params` name. Returns it at once unless only a local server can know it.
    pub(super) fn look_for(
        &mut self,
        agent: &Arc<Agent>,
        asker: Asker<Model>,
        params: SetModelParams,
    ) -> Option<Probed> {
        let named = params.provider.as_deref().zip(params.model_id.as_deref());
        if named.is_some_and(|(provider, id)| agent.must_ask_for(provider, id)) {
            self.begin(Arc::clone(agent), asker, params);
            return None;
        }
        let model = named.and_then(|(provider, id)| agent.known_model(provider, id));
        Some(Probed { asker, params, model })
    }

    fn begin(&mut self, agent: Arc<Agent>, asker: Asker<Model>, params: SetModelParams) {
        self.tasks.spawn(async move {
            let (provider, id) = (params.provider.as_deref(), params.model_id.as_deref());
            let model = match provider.zip(id) {
                Some((provider, id)) => agent.ask_for_model(provider, id).await,
                // `look_for` begins only with a whole name, so this does not happen.
                None => None,
            };
            Probed { asker, params, model }
        });
    }

    /// Returns true while a server is being asked.
    pub(super) fn are_running(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Waits for the next answer; returns `None` at once if no server is being asked. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Probed> {
        // A task that panicked is a defect; its command stays without a response.
        self.tasks.join_next().await?.ok()
    }
}
