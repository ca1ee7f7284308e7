//! Which model a session asks, and how much it thinks.

use agent::{Fallback, RunBudget};
use models::{Cycled, Registry, Scoped, Start, StartRequest};
use wire::entry::{ModelChange, ThinkingLevelChange};
use wire::reply::ThinkingLevels;
use wire::{EntryBody, Model, ThinkingLevel};

use super::fallbacks::Fallbacks;

/// The model and the thinking level of a session.
#[derive(Debug)]
pub(super) struct ModelChoice {
    /// The model of the next run.
    pub(super) model: Model,
    pub(super) thinking: ThinkingLevel,
    /// What the client chose itself; new sessions of the connection begin with it.
    pub(super) chosen: Chosen,
    /// Models that cycling goes through, when `--models` limits it.
    pub(super) scope: Vec<Scoped>,
    /// What the active run asks. It is fixed with the first request, so that a switch counts from the next run on. With the dialect of
    /// pi 1.5 it counts from the next request on.
    pub(super) run_model: Option<(Model, ThinkingLevel)>,
    /// Models that take over when that one fails for good.
    pub(super) fallbacks: Fallbacks,
}

/// The choices of the client.
pub(super) type Chosen = (Option<Model>, Option<ThinkingLevel>);

/// The levels that the settings give a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelSettings {
    /// The level that the model is switched to.
    pub(super) own: Option<ThinkingLevel>,
    /// The level after a model that cannot reason. Without one, thinking stays off, as in pi 1.5 and oh-my-pi.
    pub(super) restored: Option<ThinkingLevel>,
}

/// A change of model, of thinking level, or of both.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Switch {
    /// The model before, if a model was selected. It may be the same one.
    pub(super) previous_model: Option<Model>,
    /// The level before, if it is another one now.
    pub(super) previous_level: Option<ThinkingLevel>,
}

impl ModelChoice {
    /// A choice of which the client has changed nothing.
    pub(super) fn new(start: Start) -> Self {
        Self {
            model: start.model,
            thinking: start.thinking,
            chosen: (None, None),
            scope: start.scope,
            run_model: None,
            fallbacks: Fallbacks::default(),
        }
    }

    /// Another session takes the place of this one.
    pub(super) fn restart(&mut self, start: Start) {
        // `chosen` stays, since later new sessions begin with it (`keep_chosen`).
        self.model = start.model;
        self.thinking = start.thinking;
        self.scope = start.scope;
        self.run_model = None;
    }

    /// The model and the level of the active run.
    pub(super) fn for_run(&mut self) -> (Model, ThinkingLevel) {
        let now = (self.model.clone(), self.thinking);
        self.run_model.get_or_insert(now).clone()
    }

    /// The model and the level of the next run.
    pub(super) fn selected(&self) -> (&Model, ThinkingLevel) {
        (&self.model, self.thinking)
    }

    /// The rest of the active run asks the model that is selected now.
    pub(super) fn follow_in_run(&mut self) {
        if let Some(of_run) = &mut self.run_model {
            *of_run = (self.model.clone(), self.thinking);
        }
    }

    /// Checks that the model is no placeholder. `unresolved` says why the model that the command line names is not known.
    ///
    /// # Errors
    /// That reason, unless the client has chosen another model.
    pub(super) fn check_named(&self, unresolved: Option<&str>) -> Result<(), String> {
        match unresolved {
            Some(error) if self.chosen.0.is_none() => Err(error.to_owned()),
            _ => Ok(()),
        }
    }

    /// The models that the active run and the next one ask.
    pub(super) fn asked_models(&self) -> impl Iterator<Item = &Model> {
        let of_run = self.run_model.as_ref().map(|(model, _)| model);
        of_run.into_iter().chain([&self.model])
    }

    /// The model of the active run has failed for good: the next fallback model answers from now on, until the session settles.
    /// `skipped` takes the reasons why models were skipped.
    pub(super) fn fall_back(
        &mut self,
        registry: &Registry,
        budget: &RunBudget,
        skipped: &mut Vec<String>,
    ) -> Option<Fallback> {
        let (failed, level) = self.for_run();
        let next = self.fallbacks.take_next(&failed, registry, budget, skipped)?;
        let name = |model: &Model| format!("{}/{}", model.provider, model.id);
        let fallback = Fallback {
            from: name(&failed),
            to: name(&next),
        };
        // The level was chosen for the model that failed, and this one may lack it (behaviour.md 4.4).
        let level = next.clamp_thinking(level);
        // Not `model`: the next prompt asks the model of the session again (docs/guides/models-and-providers.md).
        self.run_model = Some((next, level));
        Some(fallback)
    }

    /// The session has settled.
    pub(super) fn on_idle(&mut self) {
        self.run_model = None;
        self.fallbacks.on_idle();
    }

    /// The client selects a model, with a level or with that of the settings.
    pub(super) fn select(
        &mut self,
        model: Model,
        level: Option<ThinkingLevel>,
        settings: LevelSettings,
    ) -> Switch {
        // The level was lost on a model that cannot reason.
        let is_lost = !self.model.reasoning && model.reasoning;
        let wanted = level
            .or(settings.restored.filter(|_| is_lost))
            .or(settings.own)
            .unwrap_or(self.thinking);
        self.chosen.0 = Some(model.clone());
        // Before `fit`, which clamps the level to what the new model offers.
        let previous = std::mem::replace(&mut self.model, model);
        Switch {
            previous_model: Some(previous),
            previous_level: self.fit(wanted),
        }
    }

    /// The client selects a level; the model may only have one near it.
    pub(super) fn select_level(&mut self, level: ThinkingLevel) -> Switch {
        self.chosen.1 = Some(level);
        Switch {
            previous_model: None,
            previous_level: self.fit(level),
        }
    }

    /// Sets the level that the model offers for the one wanted. Returns the previous one if it was another.
    fn fit(&mut self, wanted: ThinkingLevel) -> Option<ThinkingLevel> {
        let level = self.model.clamp_thinking(wanted);
        (level != self.thinking).then(|| std::mem::replace(&mut self.thinking, level))
    }

    /// The next model of the scope, or of all; `None` if there is no other. `takes_single`: also the only one, if the session has
    /// another model.
    pub(super) fn next_model(&self, registry: &Registry, takes_single: bool) -> Option<Cycled> {
        models::cycle(registry, &self.scope, &self.model, takes_single)
    }

    /// The next level; `None` if the model does not reason.
    pub(super) fn next_level(&self) -> Option<ThinkingLevel> {
        if !self.model.reasoning {
            return None;
        }
        let levels = self.model.thinking_levels();
        let at = levels.iter().position(|level| *level == self.thinking);
        // A map that removes every level leaves none, which must not divide by zero.
        let next = levels.get(at.map_or(0, |at| (at + 1) % levels.len().max(1)));
        Some(next.copied().unwrap_or(ThinkingLevel::Off))
    }

    /// The levels of the model.
    pub(super) fn levels(&self) -> ThinkingLevels {
        let levels = self.model.thinking_levels();
        ThinkingLevels { levels }
    }

    /// What the client chose stays chosen in new sessions, unless the command line says otherwise. In pi it does because it
    /// became the user's default; here it belongs to the session alone. `is_unresolved`: an extension may still bring the model
    /// that the command line names, so until then it does not count.
    pub(super) fn keep_chosen(&self, flags: &StartRequest, is_unresolved: bool, start: &mut Start) {
        let (model, level) = &self.chosen;
        let says_nothing = flags.model.is_none() || is_unresolved;
        if let Some(model) = model.as_ref().filter(|_| says_nothing) {
            start.model = model.clone();
        }
        let level = level.filter(|_| flags.thinking.is_none());
        start.thinking = start.model.clamp_thinking(level.unwrap_or(start.thinking));
    }

    /// The first entries of a session. A session with messages keeps its model.
    pub(super) fn first_entries(&self, has_messages: bool) -> Vec<EntryBody> {
        let model = (!has_messages).then(|| self.model_entry());
        model.into_iter().chain([self.level_entry()]).collect()
    }

    /// The entries that a switch leaves in the log.
    pub(super) fn entries_of(&self, switch: &Switch) -> Vec<EntryBody> {
        // A model is always recorded, a level only if it has changed (pi-core.md 2.4).
        let model = switch.previous_model.as_ref().map(|_| self.model_entry());
        let level = switch.previous_level.map(|_| self.level_entry());
        model.into_iter().chain(level).collect()
    }

    /// The entry that says which model the session has.
    pub(super) fn model_entry(&self) -> EntryBody {
        EntryBody::ModelChange(ModelChange {
            provider: self.model.provider.clone(),
            model_id: self.model.id.clone(),
            // Only xcsh names the model in this member (dialects.md 12).
            model: None,
            extra: wire::Extra::default(),
        })
    }

    /// The entry that says which level the session has.
    pub(super) fn level_entry(&self) -> EntryBody {
        EntryBody::ThinkingLevelChange(ThinkingLevelChange {
            thinking_level: Some(self.thinking.as_str().to_owned()),
            extra: wire::Extra::default(),
        })
    }
}
