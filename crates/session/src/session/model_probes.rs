//! Asks local servers about the model of a `set_model`, in tasks: a server may be busy for seconds, and deltas and
//! aborts must not wait for it.

use std::sync::Arc;

use wire::Model;
use wire::command::SetModelParams;

use crate::factory::Agent;

use super::asker::Asker;
use super::extensions::Pending;

/// The requests that are running.
#[derive(Default)]
pub(super) struct ModelProbes {
    open: Pending<(Asker<Model>, SetModelParams), Result<Option<Model>, String>>,
}

/// A `set_model` whose model was looked for.
pub(super) struct Probed {
    pub(super) asker: Asker<Model>,
    pub(super) params: SetModelParams,
    /// `None` if there is no such model with credentials, an error if the search failed.
    pub(super) model: Result<Option<Model>, String>,
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
        if let Some((provider, id)) = named
            && agent.must_ask_for(provider, id)
        {
            let (agent, provider, id) = (Arc::clone(agent), provider.to_owned(), id.to_owned());
            let asking = async move { Ok(agent.ask_for_model(&provider, &id).await) };
            self.open.ask((asker, params), asking);
            return None;
        }
        let model = named.and_then(|(provider, id)| agent.known_model(provider, id));
        Some(Probed {
            asker,
            params,
            model: Ok(model),
        })
    }

    /// Returns true while a server is being asked.
    pub(super) fn are_running(&self) -> bool {
        !self.open.is_empty()
    }

    /// Waits for the next answer; never resolves while no server is being asked. Cancel-safe.
    pub(super) async fn next(&mut self) -> Probed {
        loop {
            let answered = self.open.next().await;
            // None if the question was given up meanwhile: its asker has an answer already.
            if let Some((asker, params)) = self.open.take(answered.number) {
                let model = answered.answer;
                return Probed { asker, params, model };
            }
        }
    }

    /// Stops asking. Returns who waits for an answer.
    pub(super) fn give_up(&mut self) -> Vec<Asker<Model>> {
        let questions = self.open.give_up(|_| true).into_iter();
        questions.map(|(asker, _)| asker).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn panicking() -> Result<Option<Model>, String> {
        panic!("the defect that this test is about")
    }

    #[tokio::test]
    async fn panicked_probe_gives_an_error() {
        let mut probes = ModelProbes::default();
        let params = SetModelParams {
            provider: None,
            model_id: None,
        };
        probes.open.ask((Asker::Extension(Some(7)), params), panicking());
        let probed = probes.next().await;
        assert!(probed.model.is_err());
        assert!(matches!(probed.asker, Asker::Extension(Some(7))));
        // Commands behind it go on.
        assert!(!probes.are_running());
    }
}
