//! Which model, and how much it thinks (behaviour.md 4, pi-core.md 8.6).

use std::sync::Arc;

use models::{Cycled, Start};
use serde_json::json;
use store::Context;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use wire::command::{SetModelParams, ThinkingParams};
use wire::entry::{ModelChange, ThinkingLevelChange};
use wire::reply::{CycledModel, CycledThinking, Models, ThinkingLevels};
use wire::table::Respond;
use wire::{EntryBody, Event, Model, ThinkingLevel};

use crate::HostError;
use crate::agent::Agent;
use crate::outbox::Responder;
use crate::{limits, strings};

use super::Session;
use super::compacting::Asker;

/// Requests to local servers: for the model of a `set_model`, and for the lists of `get_available_models`.
pub(super) struct Probes {
    models: JoinSet<Probed>,
    /// Each listing occupies a blocking thread until the servers answer, and file work needs these threads, too.
    listings: Arc<Semaphore>,
}

impl Default for Probes {
    fn default() -> Self {
        Self {
            models: JoinSet::new(),
            listings: Arc::new(Semaphore::new(limits::MODEL_LISTINGS)),
        }
    }
}

/// A `set_model` whose model was looked for.
pub(super) struct Probed {
    asker: Asker<Model>,
    params: SetModelParams,
    /// None if there is no such model with credentials.
    model: Option<Model>,
}

impl Probes {
    /// Asks the local server of the model that `params` name.
    fn begin(&mut self, agent: Arc<Agent>, asker: Asker<Model>, params: SetModelParams) {
        self.models.spawn(async move {
            let (provider, id) = (params.provider.as_deref(), params.model_id.as_deref());
            let model = match provider.zip(id) {
                Some((provider, id)) => agent.ask_for_model(provider, id).await,
                None => None,
            };
            Probed { asker, params, model }
        });
    }

    /// Returns true while a server is being asked.
    pub(super) fn are_running(&self) -> bool {
        !self.models.is_empty()
    }

    /// Waits for the next answer; returns none at once if no server is being asked. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Probed> {
        // A task that panicked is a defect; its command stays without a response.
        self.models.join_next().await?.ok()
    }
}

impl Session {
    /// Sets the model. If only a local server can know it, a task asks the server meanwhile: it may be busy for seconds, and
    /// deltas and aborts must not wait for it.
    pub(super) async fn set_model(&mut self, asker: Asker<Model>, params: SetModelParams) {
        let named = params.provider.as_deref().zip(params.model_id.as_deref());
        match named {
            Some((provider, id)) if self.agent.must_ask_for(provider, id) => {
                self.probes.begin(Arc::clone(&self.agent), asker, params);
            }
            named => {
                let model = named.and_then(|(provider, id)| self.agent.known_model(provider, id));
                let probed = Probed { asker, params, model };
                self.on_probed(probed).await;
            }
        }
    }

    /// Takes a model that was found, and answers.
    pub(super) async fn on_probed(&mut self, probed: Probed) {
        let SetModelParams { provider, model_id } = probed.params;
        let outcome = match probed.model {
            Some(model) => {
                self.use_model(model.clone(), None, "set").await;
                Ok(model)
            }
            None => Err(strings::model_not_found(provider.as_deref(), model_id.as_deref())),
        };
        match probed.asker {
            Asker::Client(responder) => responder.respond(outcome).await,
            Asker::Extension(id) => self.answer_later(id, Ok(json!(outcome.is_ok()))),
        }
    }

    pub(super) async fn cycle_model(&mut self) -> Option<CycledModel> {
        let Cycled {
            model,
            level,
            is_scoped,
        } = models::cycle(&self.agent.registry, &self.scope, &self.model)?;
        self.use_model(model.clone(), level, "cycle").await;
        let thinking_level = self.thinking;
        Some(CycledModel {
            model,
            thinking_level,
            is_scoped,
        })
    }

    /// Lists models in a task of its own, so that a slow local server delays nothing else.
    pub(super) fn available_models(&self, responder: Responder<Models>) {
        let (agent, listings) = (Arc::clone(&self.agent), Arc::clone(&self.probes.listings));
        tokio::spawn(async move {
            // The semaphore is never closed, and a listing ends with the timeout of its servers.
            let _permit = listings.acquire().await;
            let models = agent.available_models().await;
            responder.respond(Ok(Models { models })).await;
        });
    }

    pub(super) async fn set_thinking_level(&mut self, params: &ThinkingParams) -> Result<(), String> {
        let level = ThinkingLevel::parse(&params.level)
            .ok_or_else(|| format!("Invalid thinking level: {}", params.level))?;
        self.chosen.1 = Some(level);
        self.use_thinking(level).await;
        Ok(())
    }

    pub(super) async fn cycle_thinking_level(&mut self) -> Option<CycledThinking> {
        if !self.model.reasoning {
            return None;
        }
        let levels = self.model.thinking_levels();
        let at = levels.iter().position(|level| *level == self.thinking);
        let next = levels
            .get(at.map_or(0, |at| (at + 1) % levels.len().max(1)))
            .copied();
        let level = next.unwrap_or(ThinkingLevel::Off);
        self.chosen.1 = Some(level);
        self.use_thinking(level).await;
        Some(CycledThinking { level })
    }

    pub(super) fn available_thinking_levels(&self) -> ThinkingLevels {
        let levels = self.model.thinking_levels();
        ThinkingLevels { levels }
    }

    /// Changes the model, writes it down and fits the thinking level to it. A level that was lost on a model that cannot
    /// reason comes back from the settings, and a level that the settings give the model counts.
    async fn use_model(&mut self, model: Model, level: Option<ThinkingLevel>, source: &str) {
        let could_reason = self.model.reasoning;
        let settings = &self.agent.settings;
        let own = settings.model_thinking_level(&model.provider, &model.id);
        let wanted = match level {
            Some(level) => level,
            None if !could_reason && model.reasoning => self.agent.default_thinking(&model),
            None => own.unwrap_or(self.thinking),
        };
        self.record(EntryBody::ModelChange(ModelChange {
            provider: model.provider.clone(),
            model_id: model.id.clone(),
            model: None,
            extra: wire::Extra::default(),
        }))
        .await;
        self.chosen.0 = Some(model.clone());
        let previous = std::mem::replace(&mut self.model, model);
        self.note_model(&previous, source);
        self.use_thinking(wanted).await;
    }

    /// Chooses model, level and scope for another conversation. An unknown model of the command line may come from an
    /// extension that loads later.
    pub(super) async fn choose_for(&mut self, context: &Context, flags: bool) -> Result<Start, HostError> {
        match self.agent.choose_off_thread(context, flags).await {
            Err(error) if self.extensions.may_resolve(&error) => {
                self.agent.choose_without_flags_off_thread(context).await
            }
            chosen => chosen,
        }
    }

    /// What the client chose stays chosen in new sessions, unless the command line says otherwise. In pi it does because it
    /// became the user's default; here it belongs to the session alone.
    pub(super) fn keep_choice(&self, start: &mut Start) {
        let (model, level) = &self.chosen;
        let flags = &self.agent.options.start;
        let says_nothing = flags.model.is_none() || self.extensions.is_unresolved();
        if let Some(model) = model.as_ref().filter(|_| says_nothing) {
            start.model = model.clone();
        }
        let level = level.filter(|_| flags.thinking.is_none());
        start.thinking = start.model.clamp_thinking(level.unwrap_or(start.thinking));
    }

    async fn use_thinking(&mut self, wanted: ThinkingLevel) {
        let level = self.model.clamp_thinking(wanted);
        if level == self.thinking {
            return;
        }
        let previous = std::mem::replace(&mut self.thinking, level);
        self.note_thinking(previous);
        self.record(EntryBody::ThinkingLevelChange(ThinkingLevelChange {
            thinking_level: Some(level.as_str().to_owned()),
            extra: wire::Extra::default(),
        }))
        .await;
        self.outbox.tell(Event::ThinkingLevelChanged { level }).await;
    }
}
