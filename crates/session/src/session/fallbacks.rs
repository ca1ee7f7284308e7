//! Models that take over when the model of a run fails for good (docs/guides/models-and-providers.md).

use agent::RunBudget;
use models::Registry;
use wire::Model;

use crate::outbox::Outbox;

use super::run_limits::check_price;

/// The fallback models of a session, and how far its current run has come with them.
#[derive(Debug, Default)]
pub(super) struct Fallbacks {
    /// Names (`provider/id`) of the session.
    session: Vec<String>,
    /// Names that the current prompt brought, in their place.
    prompt: Option<Vec<String>>,
    /// How many names the current run has used up.
    tried: usize,
    /// The names of the session were not compared with the models that there are.
    is_unchecked: bool,
}

impl Fallbacks {
    /// The names of the session.
    pub(super) fn names(&self) -> &[String] {
        &self.session
    }

    /// Sets the names of the session.
    pub(super) fn set(&mut self, names: Vec<String>) {
        self.session = names;
        self.is_unchecked = true;
    }

    /// Tells clients once for each list which names of the session stand for no model. Call it when extensions have loaded, which bring
    /// models. A local server may be started later, so its models are reported only when their turn comes.
    pub(super) async fn report_unknown(&mut self, registry: &Registry, outbox: &Outbox) {
        if !std::mem::take(&mut self.is_unchecked) {
            return;
        }
        let is_local = |name: &str| {
            name.split_once('/')
                .is_some_and(|(provider, _)| registry.is_local(provider))
        };
        let names = self.session.iter().filter(|name| !is_local(name));
        for reason in names.filter_map(|name| unknown(registry, name)) {
            let notice = format!("fallbackModels in the settings: {reason}");
            outbox.notice("warning", notice).await;
        }
    }

    /// A prompt begins, with names of its own or those of the session.
    pub(super) fn begin_prompt(&mut self, names: Option<Vec<String>>) {
        self.prompt = names;
        self.tried = 0;
    }

    /// The session has settled: the next run begins with the first model again.
    pub(super) fn on_idle(&mut self) {
        // A run that an extension begins names no models. Without this the names of the last prompt would count for it.
        self.prompt = None;
        self.tried = 0;
    }

    /// The next model that is known, has credentials and may be asked within the budget. The failed model is skipped.
    /// `skipped` takes the reasons why a name stands for no model, or the budget does not allow the model.
    pub(super) fn take_next(
        &mut self,
        failed: &Model,
        registry: &Registry,
        budget: &RunBudget,
        skipped: &mut Vec<String>,
    ) -> Option<Model> {
        loop {
            let name = self.current().get(self.tried)?.clone();
            // Also for a model that is skipped: each is tried once in a run.
            self.tried += 1;
            skipped.extend(unknown(registry, &name));
            let model = find(registry, &name).filter(|model| {
                // The names may include the model that has just failed.
                let is_same = model.provider == failed.provider && model.id == failed.id;
                !is_same && registry.has_auth(&model.provider)
            });
            match model.map(|model| check_price(budget, model).map(|()| model)) {
                Some(Ok(model)) => return Some(model.clone()),
                Some(Err(reason)) => skipped.push(reason),
                None => {}
            }
        }
    }

    fn current(&self) -> &[String] {
        self.prompt.as_deref().unwrap_or(&self.session)
    }
}

fn find<'a>(registry: &'a Registry, name: &str) -> Option<&'a Model> {
    // Only the first `/` separates: ids of gateways contain further ones.
    let (provider, id) = name.split_once('/')?;
    registry.find(provider, id)
}

/// Why a name stands for no model, with the nearest models. None if it stands for one.
fn unknown(registry: &Registry, name: &str) -> Option<String> {
    let is_unknown = find(registry, name).is_none();
    is_unknown.then(|| models::model_not_found(registry, name).to_string())
}

/// Checks names that a client sets.
///
/// # Errors
/// A sentence for the client that names the first unknown model.
pub(super) fn check_names(registry: &Registry, names: &[String]) -> Result<(), String> {
    match names.iter().find(|name| find(registry, name).is_none()) {
        Some(unknown) => Err(format!(
            "Model not found: {unknown}. Fallback models are named provider/id"
        )),
        None => Ok(()),
    }
}
