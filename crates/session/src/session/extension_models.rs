//! The models of extensions in a session: they are part of its registry as long as the extensions are there.

use std::sync::Arc;

use models::Registry;
use serde_json::Value;
use wire::command::LoginParams;
use wire::reply::{LoggedIn, LoginProviders};
use wire::table::Respond;

use crate::extensions::ExtensionProvider;
use crate::factory::Agent;
use crate::outbox::Responder;

use super::Session;
use super::extensions::{Answered, ProviderQuestion, changed_models, failure, login_providers};
use super::run_limits::check_limits;

impl Session {
    /// Takes the providers that extensions register now. Returns false if they are as before.
    pub(super) fn take_providers(&mut self) -> bool {
        let extensions = &mut self.extensions;
        let delegate = self.agent.lender.as_ref();
        let Some(change) = extensions.providers.update(&extensions.links, delegate) else {
            return false;
        };
        for failure in change.failures {
            extensions.failures.push(failure);
        }
        let registry = self.agent.registry.with_registered(change.providers);
        self.use_registry(registry, change.delegate);
        true
    }

    /// Extensions were loaded at these places, or cannot be: their models are known from now on.
    pub(super) async fn bring_models(&mut self, places: &[usize]) {
        if self.take_providers() || self.extensions.links.brings_models(places) {
            self.publish_models().await;
        }
        self.choose_again().await;
    }

    /// The providers have changed: extensions change their models, read the new list, and list models that they find.
    pub(super) async fn publish_models(&mut self) {
        self.change_models().await;
        self.write_models().await;
        if let Some(delegate) = &self.agent.lender {
            self.extensions.providers.refresh(&self.agent.registry, delegate);
        }
    }

    pub(super) async fn on_provider_answer(&mut self, answered: Answered<Result<Value, String>>) {
        self.hear_out().await;
        match self.extensions.providers.take_question(answered.number) {
            Some(ProviderQuestion::Refresh(id)) => self.on_refreshed(&id, answered.answer).await,
            Some(ProviderQuestion::LogIn(responder, id)) => {
                self.on_logged_in(responder, id, answered.answer).await;
            }
            None => {}
        }
    }

    /// An extension has listed the models of a provider.
    async fn on_refreshed(&mut self, id: &str, models: Result<Value, String>) {
        match models {
            Ok(models) if models.is_array() => self.extensions.links.set_models(id, models),
            Ok(_) => return,
            Err(error) => {
                let failed = failure("<runtime>", "provider.refreshModels", error);
                return self.extension_failed(failed).await;
            }
        }
        if self.take_providers() {
            self.change_models().await;
            self.write_models().await;
            self.choose_again().await;
        }
    }

    /// Has extensions change their models by the credentials of their logins.
    async fn change_models(&mut self) {
        let Some(delegate) = self.agent.lender.clone() else {
            return;
        };
        let registry = Arc::clone(&self.agent.registry);
        let (changed, failures) = changed_models(&registry, &delegate).await;
        for failure in failures {
            self.extensions.failures.push(failure);
        }
        if let Some(changed) = changed {
            self.use_registry(registry.with_registered(changed), Some(delegate));
        }
    }

    /// Uses another list of models. `delegate` answers requests to models of extensions.
    fn use_registry(&mut self, registry: Registry, delegate: Option<ExtensionProvider>) {
        let mut providers = registry.registered_providers().iter();
        let is_registered =
            providers.any(|provider| provider.id() == self.conversation.choice.model.provider);
        // The extension of the chosen model may describe it anew.
        let current = registry.find(
            &self.conversation.choice.model.provider,
            &self.conversation.choice.model.id,
        );
        if let Some(current) = current.filter(|_| is_registered) {
            self.conversation.choice.model = current.clone();
        }
        self.agent = Arc::new(Agent {
            registry: Arc::new(registry),
            lender: delegate,
            ..(*self.agent).clone()
        });
        self.extensions.providers.models_changed();
        self.extensions.state.mark_stale();
    }

    /// Writes the list of models to the file in which extensions read it.
    async fn write_models(&mut self) {
        let extensions = &mut self.extensions;
        let handle = extensions.links.handle();
        extensions.providers.write_models(&self.agent, handle).await;
        extensions.state.mark_stale();
    }

    /// Chooses the model once more, now that the models of extensions are known: the command line, the settings or the session
    /// may name one of them. A choice of the client stays.
    async fn choose_again(&mut self) {
        let unresolved = self.extensions.providers.take_unresolved();
        let has_registered = !self.agent.registry.registered_providers().is_empty();
        if self.conversation.choice.chosen.0.is_some()
            || (unresolved.is_none() && !has_registered)
            || !self.machine.is_idle()
        {
            return;
        }
        let mut context = self.conversation.log.context(self.conversation.log.leaf_id());
        let has_messages = !context.messages.is_empty();
        if !has_messages {
            // It only says which of the models was chosen that were known before.
            (context.model, context.thinking_level) = (None, None);
        }
        let obeys_flags = self.extensions.providers.obeys_flags();
        let start = match self.agent.choose_off_thread(&context, obeys_flags).await {
            Ok(start) => start,
            Err(error) => {
                let reason = unresolved.map(|_| error.to_string());
                return self.extensions.providers.set_unresolved(reason);
            }
        };
        let is_same = start.model.provider == self.conversation.choice.model.provider
            && start.model.id == self.conversation.choice.model.id;
        self.conversation.choice.scope = start.scope;
        if unresolved.is_some() {
            (self.conversation.choice.model, self.conversation.choice.thinking) =
                (start.model, start.thinking);
            self.conversation.store_start(has_messages, &self.outbox).await;
            self.outbox.options_changed().await;
        } else if !is_same {
            (self.conversation.choice.model, self.conversation.choice.thinking) =
                (start.model, start.thinking);
            let entry = self.conversation.choice.model_entry();
            self.conversation.log.record(entry, &self.outbox).await;
            self.outbox.options_changed().await;
        }
        for warning in start.warnings {
            self.outbox.notice("warning", warning).await;
        }
    }

    /// Checks that the session's model can be asked.
    ///
    /// # Errors
    /// A sentence for the client that says why it cannot.
    pub(super) fn check_model(&self) -> Result<(), String> {
        match self.extensions.providers.unresolved() {
            Some(error) if self.conversation.choice.chosen.0.is_none() => Err(error.to_owned()),
            _ => self.agent.check_credentials(&self.conversation.choice.model),
        }?;
        check_limits(self.machine.budget(), &self.conversation.choice.model)
    }

    /// The providers that a person can log in to.
    pub(super) fn login_providers(&self) -> LoginProviders {
        login_providers(&self.agent.registry)
    }

    /// Begins a login. The response follows when it has ended.
    pub(super) async fn log_in(&mut self, responder: Responder<LoggedIn>, params: LoginParams) {
        let ui = self.ui();
        let providers = &mut self.extensions.providers;
        let begun = providers.log_in(&self.agent, ui, responder, params.provider_id);
        if let Err((responder, error)) = begun {
            responder.refuse(error).await;
        }
    }

    /// A login has ended. The models that it gives access to are known from now on.
    async fn on_logged_in(
        &mut self,
        responder: Responder<LoggedIn>,
        provider_id: String,
        outcome: Result<Value, String>,
    ) {
        let outcome = match outcome {
            Ok(_) => {
                // Extensions change their models by this login, not by the one before.
                self.extensions.providers.forget();
                if !self.take_providers() {
                    let (registry, delegate) = (self.agent.registry.reload(), self.agent.lender.clone());
                    self.use_registry(registry, delegate);
                }
                self.publish_models().await;
                Ok(LoggedIn { provider_id })
            }
            Err(error) => Err(error),
        };
        responder.respond(outcome).await;
    }
}
