//! Switching the model and the thinking level, for a client or an extension: the choice is stored, clients and extensions hear of it.

use serde_json::{Value, json};
use wire::command::{SetModelParams, ThinkingParams};
use wire::reply::{CycledModel, CycledThinking};
use wire::table::Respond;
use wire::{Model, SessionRule, ThinkingLevel};

use crate::outbox::Responder;
use crate::strings;

use super::asker::Asker;
use super::driver::Driver;
use super::extension_notices;
use super::extensions::{ClientRequest, Completion};
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
    let model = match probed.model {
        Ok(model) => model,
        Err(error) => return driver.extensions.links.reply(probed.asker, Err(error)).await,
    };
    match (probed.asker, model) {
        (Asker::Client(responder), Some(model)) => {
            let previous = select_model(driver, model.clone(), None).await;
            let request = ClientRequest::SetModel(responder, Box::new(model));
            tell_before(driver, request, previous, "set").await;
        }
        (Asker::Client(responder), None) => {
            let error = strings::model_not_found(provider.as_deref(), model_id.as_deref());
            responder.refuse(error).await;
        }
        (Asker::Extension(id), model) => {
            let is_found = model.is_some();
            if let Some(model) = model
                && let Some(previous) = select_model(driver, model, None).await
            {
                extension_notices::note_model(driver, &previous, "set");
            }
            // As with other requests, the events come before the answer (`extension_events::on_request`).
            driver.extensions.pass_on_events(&mut driver.core);
            driver.extensions.links.answer(id, Ok(json!(is_found)));
        }
    }
}

/// Goes on to the next model of the scope, for a client.
pub(super) async fn cycle_model(driver: &mut Driver, responder: Responder<Option<CycledModel>>) {
    let choice = &driver.core.conversation.choice;
    let takes_single = driver.core.follows(SessionRule::CyclesSingleModel);
    let Some(next) = choice.next_model(&driver.core.agent.registry, takes_single) else {
        // The data is null if there is no choice (behaviour.md 1.8).
        return responder.respond(Ok(None)).await;
    };
    let previous = select_model(driver, next.model.clone(), next.level).await;
    let request = ClientRequest::CycleModel(responder, Box::new(next.model), next.is_scoped);
    tell_before(driver, request, previous, "cycle").await;
}

/// Tells extensions of the new model and responds once they have dealt with it, as in pi: what a handler changes counts for the next
/// prompt of a client that waits for the response.
async fn tell_before(driver: &mut Driver, request: ClientRequest, previous: Option<Model>, source: &str) {
    let answer = previous.and_then(|previous| extension_notices::ask_model(driver, &previous, source));
    if let Some(answer) = answer {
        return driver.extensions.client_requests.wait(request, answer);
    }
    let nothing_said = request.complete(Ok(Value::Null), None, &driver.core.outbox);
    if let Completion::Cycled(responder, model, is_scoped) = nothing_said.await {
        cycled(driver, responder, model, is_scoped).await;
    }
}

/// Responds to `cycle_model`, with the level that the session has now: a handler may have changed it.
pub(super) async fn cycled(
    driver: &Driver,
    responder: Responder<Option<CycledModel>>,
    model: Box<Model>,
    is_scoped: bool,
) {
    let thinking_level = driver.core.conversation.choice.thinking;
    let cycled = CycledModel {
        model: *model,
        thinking_level,
        is_scoped,
    };
    responder.respond(Ok(Some(cycled))).await;
}

/// Switches to a model. Returns the previous one if it was another.
async fn select_model(driver: &mut Driver, model: Model, level: Option<ThinkingLevel>) -> Option<Model> {
    let agent = &driver.core.agent;
    let takes_level = driver.core.follows(SessionRule::SelectedModelsTakeLevel);
    let restores = !driver.core.follows(SessionRule::LostLevelsStayOff);
    // Today's pi gives each selected model the level of the settings again (pi-1.5-delta.md 6).
    let of_all = agent.options.start.default_thinking.filter(|_| takes_level);
    let of_model = agent.settings.model_thinking_level(&model.provider, &model.id);
    let settings = LevelSettings {
        own: of_model.or(of_all),
        restored: restores.then(|| agent.default_thinking(&model)),
    };
    let switch = driver.core.conversation.choice.select(model, level, settings);
    switched(driver, &switch).await;
    let choice = &driver.core.conversation.choice.model;
    let is_other = |previous: &Model| (&previous.provider, &previous.id) != (&choice.provider, &choice.id);
    switch.previous_model.filter(is_other)
}

/// Stores a switch of the model or the level, tells clients of it, and extensions of the level.
async fn switched(driver: &mut Driver, switch: &Switch) {
    store(driver, switch).await;
    if let Some(previous) = switch.previous_level {
        extension_notices::note_thinking(driver, previous);
    }
}

/// Stores a switch and tells clients of it.
async fn store(driver: &mut Driver, switch: &Switch) {
    if driver.core.follows(SessionRule::SwitchesModelInRun) {
        // In older versions the active run keeps its model (behaviour.md 4.1).
        driver.core.conversation.choice.follow_in_run();
    }
    driver
        .core
        .conversation
        .store_switch(switch, &driver.core.outbox)
        .await;
}

/// Sets the thinking level, for an extension.
pub(super) async fn select_level(driver: &mut Driver, params: &ThinkingParams) -> Result<(), String> {
    let level = level_of(params)?;
    let switch = driver.core.conversation.choice.select_level(level);
    switched(driver, &switch).await;
    Ok(())
}

fn level_of(params: &ThinkingParams) -> Result<ThinkingLevel, String> {
    // Unlike here, pi takes its first level for a name that it does not know (behaviour.md 4.4).
    ThinkingLevel::parse(&params.level).ok_or_else(|| format!("Invalid thinking level: {}", params.level))
}

/// Sets the thinking level, for a client.
pub(super) async fn set_level(driver: &mut Driver, responder: Responder<()>, params: &ThinkingParams) {
    match level_of(params) {
        Ok(level) => choose_level(driver, level, ClientRequest::SetLevel(responder)).await,
        Err(error) => responder.refuse(error).await,
    }
}

/// Goes on to the next thinking level, for a client.
pub(super) async fn cycle_level(driver: &mut Driver, responder: Responder<Option<CycledThinking>>) {
    match driver.core.conversation.choice.next_level() {
        Some(level) => choose_level(driver, level, ClientRequest::CycleLevel(responder, level)).await,
        // As without a choice of models: the data is null (behaviour.md 1.8).
        None => responder.respond(Ok(None)).await,
    }
}

/// Switches the level and responds once extensions have heard of it, as in pi: what they say comes first.
async fn choose_level(driver: &mut Driver, level: ThinkingLevel, request: ClientRequest) {
    let switch = driver.core.conversation.choice.select_level(level);
    store(driver, &switch).await;
    let answer = switch.previous_level;
    let answer = answer.and_then(|previous| extension_notices::ask_thinking(driver, previous));
    match answer {
        Some(answer) => driver.extensions.client_requests.wait(request, answer),
        // Without an answer there is nothing to do but to respond.
        None => {
            request.complete(Ok(Value::Null), None, &driver.core.outbox).await;
        }
    }
}
