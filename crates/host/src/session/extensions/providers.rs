//! Model providers of extensions (pi's `registerProvider`): part of the session's list of models as long as the extension is
//! there, and who is asked when it answers itself. How they are laid over the other models is `llm`'s business.

use std::sync::Arc;

use door::{Answer, DoorError, Doors};
use models::{Registered, Registry};
use serde_json::{Value, json};
use wire::EntryBody;
use wire::entry::ModelChange;

use crate::agent::Agent;
use crate::extensions::Lender;
use crate::limits;

use super::super::Session;
use super::{Outcome, Then, failure};

impl Session {
    /// Takes over which providers extensions bring now. False when that is as it was.
    pub(super) fn take_providers(&mut self) -> bool {
        let extended = &self.extensions;
        let configs: Vec<_> = extended
            .registered
            .iter()
            .flat_map(|extension| {
                let providers = extension.providers.iter().take(limits::REGISTRATIONS);
                providers.map(|provider| (extension.path.clone(), provider.clone()))
            })
            .collect();
        let same_session = match &self.agent.lender {
            Some(lender) => lender.is(&extended.handle),
            None => configs.is_empty(),
        };
        if same_session && extended.providers == configs {
            return false;
        }
        let known = std::mem::take(&mut self.extensions.providers);
        let mut providers: Vec<Registered> = Vec::new();
        for entry @ (path, provider) in &configs {
            match Registered::parse(&provider.name, &provider.config) {
                Ok(parsed) => {
                    providers.retain(|known| known.id() != parsed.id());
                    providers.push(parsed);
                }
                // It has been said once.
                Err(_) if known.contains(entry) => {}
                Err(error) => {
                    let told = failure(path, "register_provider", error);
                    let _more_than_room = self.extensions.failures.0.try_send(told);
                }
            }
        }
        self.extensions.providers = configs;
        let lender = match (&self.extensions.door, self.extensions.providers.is_empty()) {
            (Some(door), false) => Some(Lender::new(door.clone(), self.extensions.handle.clone())),
            _ => None,
        };
        self.use_registry(self.agent.registry.with_registered(providers), lender);
        true
    }

    /// Has extensions find out which models there are, those that can. What they say comes later.
    pub(super) fn refresh_models(&mut self) {
        let registry = Arc::clone(&self.agent.registry);
        let Some(lender) = self.agent.lender.clone() else {
            return;
        };
        for theirs in registry
            .registered_providers()
            .iter()
            .filter(|theirs| theirs.refreshes())
        {
            let id = theirs.id().to_owned();
            let is_known = |wait: &super::Wait| matches!(&wait.then, Then::Refreshed(known) if *known == id);
            if self.extensions.waits.values().any(is_known) {
                continue;
            }
            let credential = registry.lent_login(&id);
            let params = json!({"provider": id, "allowNetwork": true, "credential": credential});
            let lender = lender.clone();
            self.extensions.wait(Then::Refreshed(id), async move {
                let asking = lender.call("provider.refreshModels", &params);
                let told = tokio::time::timeout(limits::REFRESH_MODELS, asking).await;
                let told = told.unwrap_or_else(|_| Err("the extension did not answer in time".to_owned()));
                Outcome::Answer(match told {
                    Ok(value) => Ok(Answer {
                        value,
                        errors: Vec::new(),
                    }),
                    Err(error) => Err(DoorError::Failed(error)),
                })
            });
        }
    }

    /// An extension has found out which models there are.
    pub(super) async fn on_refreshed(&mut self, id: &str, answer: Result<Value, DoorError>) {
        let models = match answer {
            Ok(models) if models.is_array() => models,
            Ok(_) => return,
            Err(error) => {
                let told = failure("<runtime>", "provider.refreshModels", error);
                return self.extension_failed(told).await;
            }
        };
        if let Some(doors) = &self.extensions.door {
            doors.models_found(id, models);
            self.extensions.registered = doors.registered();
        }
        if self.take_providers() {
            self.change_models().await;
            self.write_models().await;
            self.choose_again().await;
        }
    }

    /// Extensions were loaded, or cannot be had: their models are there from now on, those of others are not.
    pub(super) async fn bring_models(&mut self, places: &[usize]) {
        let brings = |doors: &Doors| {
            let mut registered = places.iter().flat_map(|place| doors.registered_at(*place));
            registered.any(|extension| !extension.providers.is_empty())
        };
        let brings = self.extensions.door.as_ref().is_some_and(brings);
        if self.take_providers() || brings {
            self.change_models().await;
            self.write_models().await;
            self.refresh_models();
        }
        self.choose_again().await;
    }

    /// Has extensions change their models by what the logins to them say (pi's `modifyModels`). What takes too long changes
    /// nothing.
    pub(super) async fn change_models(&mut self) {
        let registry = Arc::clone(&self.agent.registry);
        let mut changed = registry.registered_providers().to_vec();
        let Some(lender) = self.agent.lender.clone() else {
            return;
        };
        let mut differs = false;
        for theirs in &mut changed {
            let login = registry
                .lent_login(theirs.id())
                .filter(|_| theirs.changes_models());
            let Some(credentials) = login else { continue };
            let models = registry.models_of(theirs.id());
            let params = json!({"provider": theirs.id(), "models": models, "credentials": credentials});
            let asking = lender.call("provider.oauth.models", &params);
            let told = match tokio::time::timeout(limits::CHANGE_MODELS, asking).await {
                Ok(told) => told.and_then(|models| theirs.with_models(&models)),
                Err(_) => Err("the extension did not answer in time".to_owned()),
            };
            match told {
                Ok(with_models) => {
                    *theirs = with_models;
                    differs = true;
                }
                Err(error) => {
                    let told = failure("<runtime>", "provider.oauth.models", error);
                    let _more_than_room = self.extensions.failures.0.try_send(told);
                }
            }
        }
        if differs {
            self.use_registry(registry.with_registered(changed), Some(lender));
        }
    }

    /// From now on the session knows these models.
    pub(super) fn use_registry(&mut self, registry: Registry, lender: Option<Lender>) {
        // What the extension says of the chosen model may have changed.
        let current = registry.find(&self.model.provider, &self.model.id);
        if let Some(current) = current.filter(|_| {
            registry
                .registered_providers()
                .iter()
                .any(|theirs| theirs.id() == self.model.provider)
        }) {
            self.model = current.clone();
        }
        self.agent = Arc::new(Agent {
            registry: Arc::new(registry),
            lender,
            ..(*self.agent).clone()
        });
        self.extensions.models += 1;
        self.extensions.state.mark_stale();
    }

    /// Writes the list of models down for extensions to read.
    pub(super) async fn write_models(&mut self) {
        let shared = Arc::clone(&self.agent.extensions);
        let registry = Arc::clone(&self.agent.registry);
        let name = (!registry.registered_providers().is_empty())
            .then(|| format!("{}-{}", self.extensions.handle, self.extensions.models));
        let old = std::mem::replace(
            &mut self.extensions.models_file,
            shared.models_file(name.as_deref()),
        );
        if old != self.extensions.models_file {
            shared
                .write_models(registry, self.extensions.models_file.clone())
                .await;
            shared.forget_models(&old);
        }
        self.extensions.state.mark_stale();
    }

    /// Chooses the model once more, now that the models of extensions are known: the command line, the settings or the session
    /// may mean one of them. What the client chose meanwhile stays.
    pub(super) async fn choose_again(&mut self) {
        let unresolved = self.extensions.unresolved.take();
        let brings = !self.agent.registry.registered_providers().is_empty();
        if self.chosen.0.is_some() || (unresolved.is_none() && !brings) || !self.machine.is_idle() {
            return;
        }
        let mut context = self.log.context(self.log.leaf_id());
        let has_messages = !context.messages.is_empty();
        if !has_messages {
            // It only says what there was to choose from before.
            (context.model, context.thinking_level) = (None, None);
        }
        let start = match self
            .agent
            .choose_off_thread(&context, self.extensions.flags_count)
            .await
        {
            Ok(start) => start,
            Err(error) => {
                self.extensions.unresolved = unresolved.map(|_| error.to_string());
                return;
            }
        };
        let is_same = start.model.provider == self.model.provider && start.model.id == self.model.id;
        self.scope = start.scope;
        if unresolved.is_some() {
            (self.model, self.thinking) = (start.model, start.thinking);
            self.note_start(has_messages).await;
        } else if !is_same {
            (self.model, self.thinking) = (start.model, start.thinking);
            self.record(EntryBody::ModelChange(ModelChange {
                provider: self.model.provider.clone(),
                model_id: self.model.id.clone(),
                model: None,
                extra: wire::Extra::default(),
            }))
            .await;
        }
        for warning in start.warnings {
            self.notice("warning", warning).await;
        }
    }

    /// Can the session's model be asked?
    ///
    /// # Errors
    /// A sentence for the client that says why not.
    pub(in crate::session) fn check_model(&self) -> Result<(), String> {
        match &self.extensions.unresolved {
            Some(error) if self.chosen.0.is_none() => Err(error.clone()),
            _ => self.agent.check_credentials(&self.model),
        }
    }
}
