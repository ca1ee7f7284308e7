//! Switching the model and the thinking level, for a client or an extension: the choice is stored, clients and extensions hear of it.

use serde_json::json;
use wire::command::{SetModelParams, ThinkingParams};
use wire::table::Respond;
use wire::{Model, ThinkingLevel};

use crate::strings;

use super::asker::Asker;
use super::driver::Driver;
use super::extension_notices;
use super::model_choice::{LevelSettings, Switch};
use super::model_probes::Probed;

/// Sets the model, for a client or an extension. The answer follows later if a local server has to be asked first.
pub(super) async fn set_model(driver: &mut Driver, asker: Asker<Model>, params: SetModelParams) {
    if let Some(probed) = driver.probes.look_for(&driver.core.agent, asker, params) {
        on_probed(driver, probed).await;
    }
}

/// Takes a model that was found, and answers.
pub(super) async fn on_probed(driver: &mut Driver, probed: Probed) {
    let SetModelParams { provider, model_id } = probed.params;
    let outcome = match probed.model {
        Some(model) => {
            select_model(driver, model.clone(), None, "set").await;
            Ok(model)
        }
        None => Err(strings::model_not_found(provider.as_deref(), model_id.as_deref())),
    };
    match probed.asker {
        Asker::Client(responder) => responder.respond(outcome).await,
        Asker::Extension(id) => driver.extensions.links.answer(id, Ok(json!(outcome.is_ok()))),
    }
}

/// Switches to a model. `source`: `set` or `cycle`.
pub(super) async fn select_model(
    driver: &mut Driver,
    model: Model,
    level: Option<ThinkingLevel>,
    source: &str,
) {
    let agent = &driver.core.agent;
    let is_newest = agent.options.dialect.is_newest_pi();
    // Today's pi gives each selected model the level of the settings again (pi-1.5-delta.md 6).
    let of_all = agent.options.start.default_thinking.filter(|_| is_newest);
    let of_model = agent.settings.model_thinking_level(&model.provider, &model.id);
    let settings = LevelSettings {
        own: of_model.or(of_all),
        restored: (!is_newest).then(|| agent.default_thinking(&model)),
    };
    let switch = driver.core.conversation.choice.select(model, level, settings);
    switched(driver, switch, source).await;
}

/// Stores a switch of the model, and tells clients and extensions.
pub(super) async fn switched(driver: &mut Driver, switch: Switch, source: &str) {
    if driver.core.is_newest_pi() {
        driver.core.conversation.choice.follow_in_run();
    }
    driver
        .core
        .conversation
        .store_switch(&switch, &driver.core.outbox)
        .await;
    if let Some(previous) = &switch.previous_model {
        extension_notices::note_model(driver, previous, source);
    }
    if let Some(previous) = switch.previous_level {
        extension_notices::note_thinking(driver, previous);
    }
}

/// Sets the thinking level, for a client or an extension.
pub(super) async fn select_level(driver: &mut Driver, params: &ThinkingParams) -> Result<(), String> {
    let level = ThinkingLevel::parse(&params.level)
        .ok_or_else(|| format!("Invalid thinking level: {}", params.level))?;
    let switch = driver.core.conversation.choice.select_level(level);
    switched(driver, switch, "set").await;
    Ok(())
}
