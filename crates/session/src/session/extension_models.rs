//! The models of extensions in a session: they are part of its registry as long as the extensions are there.

use std::sync::Arc;

use models::Registry;
use serde_json::Value;
use wire::command::LoginParams;
use wire::reply::LoggedIn;
use wire::table::Respond;

use crate::extensions::ExtensionProvider;
use crate::factory::Agent;
use crate::outbox::{Outgoing, Responder};

use super::driver::Driver;
use super::extensions::{Answered, ProviderQuestion, changed_models, failure};
use super::run_limits::check_limits;

/// Takes the providers that extensions register now. Returns false if they are as before.
pub(super) fn take_providers(driver: &mut Driver) -> bool {
    let extensions = &mut driver.extensions;
    let delegate = driver.core.agent.lender.as_ref();
    let Some(change) = extensions.providers.update(&extensions.links, delegate) else {
        return false;
    };
    for failure in change.failures {
        extensions.failures.push(failure);
    }
    let registry = driver.core.agent.registry.with_registered(change.providers);
    use_registry(driver, registry, change.delegate);
    true
}

/// Extensions were loaded at these places, or cannot be: their models are known from now on.
pub(super) async fn bring_models(driver: &mut Driver, places: &[usize]) {
    if take_providers(driver) || driver.extensions.links.brings_models(places) {
        publish_models(driver).await;
    }
    // Also without new models: whether an unresolved model exists must be settled once the extensions are there.
    choose_again(driver).await;
}

/// The providers have changed: extensions change their models, read the new list, and list models that they find.
pub(super) async fn publish_models(driver: &mut Driver) {
    // In this order: the written list has the changed models. Lists that providers find come later, as answers.
    change_models(driver).await;
    write_models(driver).await;
    if let Some(delegate) = &driver.core.agent.lender {
        driver
            .extensions
            .providers
            .refresh(&driver.core.agent.registry, delegate);
    }
}

pub(super) async fn on_provider_answer(driver: &mut Driver, answered: Answered<Result<Value, String>>) {
    match driver.extensions.providers.take_question(answered.number) {
        Some(ProviderQuestion::Refresh(id)) => on_refreshed(driver, &id, answered.answer).await,
        Some(ProviderQuestion::LogIn(responder, id)) => {
            on_logged_in(driver, responder, id, answered.answer).await;
        }
        // The question was given up meanwhile.
        None => {}
    }
}

/// An extension has listed the models of a provider.
async fn on_refreshed(driver: &mut Driver, id: &str, models: Result<Value, String>) {
    match models {
        Ok(models) if models.is_array() => driver.extensions.links.set_models(id, models),
        // An answer that is no list leaves the models as they are.
        Ok(_) => return,
        Err(error) => {
            let failed = failure("<runtime>", "provider.refreshModels", error);
            return driver.extension_failed(failed).await;
        }
    }
    // Not `publish_models`, which would ask the providers for their lists again.
    if take_providers(driver) {
        change_models(driver).await;
        write_models(driver).await;
        choose_again(driver).await;
    }
}

/// Has extensions change their models by the credentials of their logins.
async fn change_models(driver: &mut Driver) {
    let Some(delegate) = driver.core.agent.lender.clone() else {
        return;
    };
    let registry = Arc::clone(&driver.core.agent.registry);
    let (changed, failures) = changed_models(&registry, &delegate).await;
    for failure in failures {
        driver.extensions.failures.push(failure);
    }
    if let Some(changed) = changed {
        use_registry(driver, registry.with_registered(changed), Some(delegate));
    }
}

/// Uses another list of models. `delegate` answers requests to models of extensions.
fn use_registry(driver: &mut Driver, registry: Registry, delegate: Option<ExtensionProvider>) {
    let mut providers = registry.registered_providers().iter();
    let is_registered =
        providers.any(|provider| provider.id() == driver.core.conversation.choice.model.provider);
    // The extension of the chosen model may describe it anew.
    let current = registry.find(
        &driver.core.conversation.choice.model.provider,
        &driver.core.conversation.choice.model.id,
    );
    if let Some(current) = current.filter(|_| is_registered) {
        driver.core.conversation.choice.model = current.clone();
    }
    // A new agent, since requests and tasks that run keep the list they began with.
    driver.core.agent = Arc::new(Agent {
        registry: Arc::new(registry),
        lender: delegate,
        ..(*driver.core.agent).clone()
    });
    // Counted, since each list has a file name of its own: processes may still read the file before it (`write_models`).
    driver.extensions.providers.models_changed();
    driver.extensions.state.mark_stale();
}

/// Writes the list of models to the file in which extensions read it.
async fn write_models(driver: &mut Driver) {
    let extensions = &mut driver.extensions;
    let handle = extensions.links.handle();
    extensions
        .providers
        .write_models(&driver.core.agent, handle)
        .await;
    // The state has the path of the file.
    extensions.state.mark_stale();
}

/// Chooses the model once more, now that the models of extensions are known: the command line, the settings or the session
/// may name one of them. A choice of the client stays.
async fn choose_again(driver: &mut Driver) {
    // A run must not change its model under way. An unresolved model stays unresolved until the next prompt.
    if !driver.core.machine.is_idle() {
        return;
    }
    let unresolved = driver.extensions.providers.take_unresolved();
    let has_registered = !driver.core.agent.registry.registered_providers().is_empty();
    if driver.core.conversation.choice.chosen.0.is_some() || (unresolved.is_none() && !has_registered) {
        return;
    }
    let mut context = driver
        .core
        .conversation
        .log
        .context(driver.core.conversation.log.leaf_id());
    let has_messages = !context.messages.is_empty();
    let keeps_model = has_messages && !context.is_model_chosen;
    if !has_messages {
        // It only says which of the models was chosen that were known before.
        (context.model, context.thinking_level) = (None, None);
    }
    let obeys_flags = driver.extensions.providers.obeys_flags();
    let mut start = match driver.core.agent.choose_off_thread(&context, obeys_flags).await {
        Ok(start) => start,
        Err(error) => {
            // Extensions that load later may still bring the model.
            let reason = unresolved.map(|_| error.to_string());
            return driver.extensions.providers.set_unresolved(reason);
        }
    };
    if driver.extensions.providers.keeps_model() {
        let choice = &driver.core.conversation.choice;
        (start.model, start.thinking) = (choice.model.clone(), choice.thinking);
        // They are about a model that is not used.
        start.warnings.clear();
    }
    let is_same = start.model.provider == driver.core.conversation.choice.model.provider
        && start.model.id == driver.core.conversation.choice.model.id;
    // Also if the model stays: patterns of `--models` may fit models of extensions.
    driver.core.conversation.choice.scope = start.scope;
    // The session has no entry about its model yet (see `Session::start`), so that both are stored now.
    if unresolved.is_some() {
        (
            driver.core.conversation.choice.model,
            driver.core.conversation.choice.thinking,
        ) = (start.model, start.thinking);
        driver
            .core
            .conversation
            .store_start(keeps_model, &driver.core.outbox)
            .await;
        driver.core.outbox.inform(Outgoing::OptionsChanged).await;
    } else if !is_same {
        (
            driver.core.conversation.choice.model,
            driver.core.conversation.choice.thinking,
        ) = (start.model, start.thinking);
        let entry = driver.core.conversation.choice.model_entry();
        driver
            .core
            .conversation
            .log
            .record(entry, &driver.core.outbox)
            .await;
        driver.core.outbox.inform(Outgoing::OptionsChanged).await;
    }
    for warning in start.warnings {
        driver.core.outbox.notice("warning", warning).await;
    }
}

/// Chooses a model that was unresolved when a run ended: an extension may have brought it during the run.
pub(super) async fn resolve(driver: &mut Driver) {
    if driver.extensions.providers.is_unresolved() {
        choose_again(driver).await;
    }
}

/// Checks that the session's model can be asked.
///
/// # Errors
/// A sentence for the client that says why it cannot.
pub(super) fn check_model(driver: &Driver) -> Result<(), String> {
    let choice = &driver.core.conversation.choice;
    choice.check_named(driver.extensions.providers.unresolved())?;
    driver.core.agent.check_credentials(&choice.model)?;
    check_limits(driver.core.machine.budget(), &choice.model)
}

/// Begins a login. The response follows when it has ended.
pub(super) async fn log_in(driver: &mut Driver, responder: Responder<LoggedIn>, params: LoginParams) {
    let ui = driver.dialogs.ui();
    let providers = &mut driver.extensions.providers;
    let begun = providers
        .log_in(&driver.core.agent, ui, responder, params.provider_id)
        .await;
    if let Err((responder, error)) = begun {
        responder.refuse(error).await;
    }
}

/// A login has ended. The models that it gives access to are known from now on.
async fn on_logged_in(
    driver: &mut Driver,
    responder: Responder<LoggedIn>,
    provider_id: String,
    outcome: Result<Value, String>,
) {
    let outcome = match outcome {
        Ok(_) => {
            // Extensions change their models by this login, not by the one before.
            driver.extensions.providers.forget();
            if !take_providers(driver) {
                // No extension has providers, so the registry was not built anew with the credentials.
                let (registry, delegate) = (
                    driver.core.agent.registry.reload(),
                    driver.core.agent.lender.clone(),
                );
                use_registry(driver, registry, delegate);
            }
            // Before the response: the client may select one of the new models with its next command.
            publish_models(driver).await;
            Ok(LoggedIn { provider_id })
        }
        Err(error) => Err(error),
    };
    responder.respond(outcome).await;
}
