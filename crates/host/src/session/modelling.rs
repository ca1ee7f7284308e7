//! Which model, and how much it thinks (behaviour.md 4, pi-core.md 8.6).

use models::{Cycled, Start};
use store::Context;
use wire::command::{SetModelParams, ThinkingParams};
use wire::entry::{ModelChange, ThinkingLevelChange};
use wire::reply::{CycledModel, CycledThinking, Models, ThinkingLevels};
use wire::{EntryBody, Event, Model, Reply, ThinkingLevel};

use crate::HostError;
use crate::strings;

use super::Session;

impl Session {
    pub(super) async fn set_model(&mut self, params: &SetModelParams) -> Result<Reply, String> {
        let (provider, id) = (params.provider.as_deref(), params.model_id.as_deref());
        let found = match provider.zip(id) {
            Some((provider, id)) => self.agent.available_model(provider, id).await,
            None => None,
        };
        let model = found.ok_or_else(|| strings::model_not_found(provider, id))?;
        self.use_model(model.clone(), None, "set").await;
        Ok(Reply::Model(Box::new(model)))
    }

    pub(super) async fn cycle_model(&mut self) -> Reply {
        let next = models::cycle(&self.agent.registry, &self.scope, &self.model);
        let Some(Cycled {
            model,
            level,
            is_scoped,
        }) = next
        else {
            return Reply::CycledModel(None);
        };
        self.use_model(model.clone(), level, "cycle").await;
        let thinking_level = self.thinking;
        Reply::CycledModel(Some(Box::new(CycledModel {
            model,
            thinking_level,
            is_scoped,
        })))
    }

    pub(super) async fn available_models(&self) -> Reply {
        Reply::Models(Models {
            models: self.agent.available_models().await,
        })
    }

    pub(super) async fn set_thinking_level(&mut self, params: &ThinkingParams) -> Result<Reply, String> {
        let level = ThinkingLevel::parse(&params.level)
            .ok_or_else(|| format!("Invalid thinking level: {}", params.level))?;
        self.chosen.1 = Some(level);
        self.use_thinking(level).await;
        Ok(Reply::Nothing)
    }

    pub(super) async fn cycle_thinking_level(&mut self) -> Reply {
        if !self.model.reasoning {
            return Reply::CycledThinking(None);
        }
        let levels = self.model.thinking_levels();
        let at = levels.iter().position(|level| *level == self.thinking);
        let next = levels
            .get(at.map_or(0, |at| (at + 1) % levels.len().max(1)))
            .copied();
        let level = next.unwrap_or(ThinkingLevel::Off);
        self.chosen.1 = Some(level);
        self.use_thinking(level).await;
        Reply::CycledThinking(Some(CycledThinking { level }))
    }

    pub(super) fn available_thinking_levels(&self) -> Reply {
        let levels = self.model.thinking_levels();
        Reply::ThinkingLevels(ThinkingLevels { levels })
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

    /// Model, level and scope for another conversation. A model that the command line names and nobody knows may be one that
    /// its extensions bring.
    pub(super) fn choose_for(&mut self, context: &Context, flags: bool) -> Result<Start, HostError> {
        match self.agent.choose(context, flags) {
            Err(error) if self.extensions.may_resolve(&error) => self.agent.choose_without_flags(context),
            chosen => chosen,
        }
    }

    /// What the client chose stays chosen in new sessions, unless the command line says otherwise. In pi it does because it
    /// became the user's default; here it is the session's and nobody else's.
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
