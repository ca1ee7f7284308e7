//! Model providers that extensions register (pi's `registerProvider`), the file in which extensions find the list of models, and
//! logins that clients ask for. How registered models are laid over the others is the registry's business.

use std::path::PathBuf;
use std::sync::Arc;

use auth::login::{AuthStore, login_provider, way};
use extensions::line::{Failure, Provider};
use models::{KeySource, Registered, Registrations, Registry, RegistryError};
use serde_json::{Value, json};
use wire::reply::{LoggedIn, LoginProvider, LoginProviders};

use crate::SessionError;
use crate::extensions::{ExtensionProcesses, ExtensionProvider};
use crate::factory::Agent;
use crate::limits;
use crate::outbox::Responder;
use crate::strings;

use super::super::dialogs::Ui;
use super::failures::failure;
use super::links::ExtensionLinks;
use super::login::{log_in_by_agent, log_in_by_extension};
use super::pending::{Answered, Pending};

/// The providers of a session's extensions.
pub(crate) struct ExtensionProviders {
    /// The registered providers, with the paths of their extensions.
    configs: Vec<(String, Provider)>,
    /// Those of them that cannot be used, which was reported.
    refused: Vec<(String, Provider)>,
    /// Number of changes of the list of models.
    version: u64,
    /// The file with the list of models.
    file: PathBuf,
    /// Why the model that the command line names is not known. Extensions that are still loading may bring it.
    unresolved: Option<String>,
    /// The command line still chooses the model.
    obeys_flags: bool,
    /// The session was evicted and goes on with the model that it had.
    keeps_model: bool,
    open: Pending<ProviderQuestion, Result<Value, String>>,
}

/// What an answer of a provider belongs to.
pub(crate) enum ProviderQuestion {
    /// The models that this provider has.
    Refresh(String),
    /// A login to this provider, which a client asked for.
    LogIn(Responder<LoggedIn>, String),
}

/// The providers that take the place of the former ones.
pub(crate) struct ProviderChange {
    pub(crate) providers: Vec<Registered>,
    /// Answers requests to these models. `None` without providers.
    pub(crate) delegate: Option<ExtensionProvider>,
    /// Providers that cannot be used.
    pub(crate) failures: Vec<Failure>,
}

impl Default for ExtensionProviders {
    fn default() -> Self {
        Self {
            configs: Vec::new(),
            refused: Vec::new(),
            version: 0,
            file: PathBuf::new(),
            unresolved: None,
            obeys_flags: true,
            keeps_model: false,
            open: Pending::default(),
        }
    }
}

impl ExtensionProviders {
    /// Waits for the next answer. Cancel-safe.
    pub(super) async fn next(&mut self) -> Answered<Result<Value, String>> {
        self.open.next().await
    }

    /// Removes a question that was answered. `None` if it was given up.
    pub(crate) fn take_question(&mut self, number: u64) -> Option<ProviderQuestion> {
        self.open.take(number)
    }

    /// Returns true if no question is open.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns true while a client waits for a login.
    pub(super) fn is_logging_in(&self) -> bool {
        self.open
            .any(|question| matches!(question, ProviderQuestion::LogIn(..)))
    }

    /// Returns true while the model that the command line names may be in a list that a provider is asked for.
    pub(super) fn is_resolving(&self) -> bool {
        // Bounded, since each list of models is asked for with a timeout (`REFRESH_MODELS`).
        let refreshes = |question: &ProviderQuestion| matches!(question, ProviderQuestion::Refresh(_));
        self.is_unresolved() && self.open.any(refreshes)
    }

    /// Returns true if the model that the command line names is not known.
    pub(crate) fn is_unresolved(&self) -> bool {
        self.unresolved.is_some()
    }

    /// Why the model that the command line names is not known.
    pub(crate) fn unresolved(&self) -> Option<&str> {
        self.unresolved.as_deref()
    }

    /// Keeps the reason why a model is not known. Returns false for other errors.
    pub(super) fn resolve_later(&mut self, error: &SessionError) -> bool {
        let is_unknown = matches!(
            error,
            SessionError::Registry(RegistryError::UnknownProvider(_) | RegistryError::ModelNotFound { .. })
        );
        if is_unknown {
            self.set_unresolved(Some(error.to_string()));
        }
        is_unknown
    }

    pub(crate) fn set_unresolved(&mut self, error: Option<String>) {
        self.unresolved = error;
    }

    /// Takes the reason why the model is not known: it is about to be chosen again.
    pub(crate) fn take_unresolved(&mut self) -> Option<String> {
        self.unresolved.take()
    }

    /// Returns true if the command line still chooses the model.
    pub(crate) fn obeys_flags(&self) -> bool {
        self.obeys_flags
    }

    /// The session goes on with the model that it had: neither the command line nor models that extensions bring choose another.
    pub(crate) fn keep_model(&mut self) {
        self.unresolved = None;
        self.obeys_flags = false;
        self.keeps_model = true;
    }

    /// Returns true if no models of extensions change the model.
    pub(crate) fn keeps_model(&self) -> bool {
        self.keeps_model
    }

    /// Another session takes the place of this one. `reason` is that of `session_start`: the command line chooses the model of a new
    /// session, too, and a stored one has its own.
    pub(super) fn leave(&mut self, reason: &str) {
        self.obeys_flags &= matches!(reason, "new" | "reload");
        self.keeps_model &= reason == "reload";
    }

    /// Stops asking providers for their models.
    pub(super) fn give_up_refresh(&mut self) {
        self.open
            .give_up(|question| matches!(question, ProviderQuestion::Refresh(_)));
    }

    /// Forgets the providers, so that the next [`update`](Self::update) takes them as new.
    pub(crate) fn forget(&mut self) {
        self.configs.clear();
    }

    /// Takes the providers that extensions register now. `None` if they are as before. `delegate` is the present one.
    pub(crate) fn update(
        &mut self,
        links: &ExtensionLinks,
        delegate: Option<&ExtensionProvider>,
    ) -> Option<ProviderChange> {
        let extensions = links.registered().iter();
        let configs: Vec<(String, Provider)> = extensions
            .flat_map(|extension| {
                let providers = extension.providers.iter().take(limits::REGISTRATIONS);
                providers.map(|provider| (extension.path.clone(), provider.clone()))
            })
            .collect();
        // The delegate names the session towards the processes. After a session change the same providers need a new one.
        let is_same_session = match delegate {
            Some(delegate) => delegate.is(links.handle()),
            None => configs.is_empty(),
        };
        if is_same_session && self.configs == configs {
            return None;
        }
        self.configs = configs;
        let (mut registrations, mut failures) = (Registrations::default(), Vec::new());
        let reported = std::mem::take(&mut self.refused);
        for config in &self.configs {
            let (path, provider) = config;
            // A known one can fail, too: another extension took back what it needs.
            if let Err(error) = registrations.add(&provider.name, &provider.config) {
                if !reported.contains(config) {
                    failures.push(failure(path, "register_provider", error));
                }
                self.refused.push(config.clone());
            }
        }
        let pool = links.pool().filter(|_| !self.configs.is_empty());
        let delegate = pool.map(|pool| ExtensionProvider::new(pool.clone(), links.handle().to_owned()));
        Some(ProviderChange {
            providers: registrations.into_providers(),
            delegate,
            failures,
        })
    }

    /// Asks the extensions of providers that can list their models for these lists.
    pub(crate) fn refresh(&mut self, registry: &Registry, delegate: &ExtensionProvider) {
        let providers = registry.registered_providers().iter();
        for provider in providers.filter(|provider| provider.refreshes()) {
            let id = provider.id().to_owned();
            let is_same = |question: &ProviderQuestion| matches!(question, ProviderQuestion::Refresh(open) if *open == id);
            // The list that is under way is as new as another one would be.
            if self.open.any(is_same) {
                continue;
            }
            let credential = registry.lent_login(&id);
            let params = json!({"provider": id, "allowNetwork": true, "credential": credential});
            let delegate = delegate.clone();
            self.open.ask(ProviderQuestion::Refresh(id), async move {
                let models = delegate.call("provider.refreshModels", &params);
                in_time(limits::REFRESH_MODELS, models).await
            });
        }
    }

    /// Begins a login that a client asked for. A login that is open ends, since clients that stop to wait for it or whose user
    /// chooses another provider need not abort it.
    ///
    /// # Errors
    /// Returns the responder and a message if there is no way to log in to the provider.
    pub(crate) async fn log_in(
        &mut self,
        agent: &Arc<Agent>,
        ui: Ui,
        responder: Responder<LoggedIn>,
        id: String,
    ) -> Result<(), (Responder<LoggedIn>, String)> {
        let registry = &agent.registry;
        let mut registered = registry.registered_providers().iter();
        let is_registered = registered.any(|provider| provider.id() == id && provider.has_login());
        let (client, secrets, provider) = (agent.client.clone(), registry.secrets().clone(), id.clone());
        match (agent.lender.clone().filter(|_| is_registered), way(&id)) {
            (Some(delegate), _) => {
                let store = AuthStore::new(agent.agent_dir.join("auth.json"));
                self.wait_for_login(responder, id, async move {
                    let tokens = log_in_by_extension(&delegate, &provider).await?;
                    let kept = store.keep_lent(&provider, &secrets, tokens).await;
                    // The text goes to a client and must not repeat a token (GUARANTEES.md, 20).
                    kept.map_err(|error| secrets.redact(error.to_string()))
                })
                .await;
            }
            (None, Some(way)) => {
                let models = registry.models_of(&id).into_iter();
                let models: Vec<String> = models.map(|model| model.id.clone()).collect();
                self.wait_for_login(responder, id, async move {
                    let login = client
                        .login()
                        .ok_or("There is no auth.json to store a login in")?;
                    log_in_by_agent(&login, way, &provider, &models, &ui).await
                })
                .await;
            }
            (None, None) => return Err((responder, strings::unknown_login(&id))),
        }
        Ok(())
    }

    async fn wait_for_login(
        &mut self,
        responder: Responder<LoggedIn>,
        provider: String,
        login: impl Future<Output = Result<(), String>> + Send + 'static,
    ) {
        self.end_logins(strings::LOGIN_REPLACED).await;
        let question = ProviderQuestion::LogIn(responder, provider);
        self.open
            .ask(question, async move { login.await.map(|()| Value::Null) });
    }

    /// Ends a login that is open. Its client gets an error with this text.
    pub(crate) async fn end_logins(&mut self, reason: &str) {
        let is_login = |question: &ProviderQuestion| matches!(question, ProviderQuestion::LogIn(..));
        for question in self.open.give_up(is_login) {
            if let ProviderQuestion::LogIn(responder, _) = question {
                // Its task was aborted with the question, so nothing else answers this client.
                responder.refuse(reason).await;
            }
        }
    }

    /// Refuses all open logins, and stops asking providers for their models.
    pub(crate) async fn refuse_all(&mut self) {
        for question in self.open.give_up(|_| true) {
            if let ProviderQuestion::LogIn(responder, _) = question {
                responder.refuse(strings::ABORTED).await;
            }
        }
    }

    /// The file with the list of models.
    pub(crate) fn file(&self) -> &PathBuf {
        &self.file
    }

    /// Uses the file that all sessions share, as long as no extension brings models.
    pub(crate) fn use_shared_file(&mut self, registry: &Registry, processes: &ExtensionProcesses) {
        if registry.registered_providers().is_empty() {
            self.file = processes.models_file(None);
        }
    }

    /// The list of models has changed.
    pub(crate) fn models_changed(&mut self) {
        self.version += 1;
    }

    /// Writes the list of models to a file for extensions, and removes the file of the list before it.
    pub(crate) async fn write_models(&mut self, agent: &Agent, session: &str) {
        let (processes, registry) = (&agent.extensions, &agent.registry);
        let is_own = !registry.registered_providers().is_empty();
        // A new name for each change: processes may still read the list before it.
        let name = is_own.then(|| format!("{session}-{}", self.version));
        let old = std::mem::replace(&mut self.file, processes.models_file(name.as_deref()));
        // The shared file keeps its name. It is written when a process is started.
        if old != self.file {
            processes
                .write_models(Arc::clone(registry), self.file.clone())
                .await;
            processes.forget_models(&old);
        }
    }
}

/// Has extensions change their models by the credentials of their logins (pi's `modifyModels`). Returns the providers if one
/// has changed, and the failures on the way. An extension that takes too long changes nothing.
pub(crate) async fn changed_models(
    registry: &Registry,
    delegate: &ExtensionProvider,
) -> (Option<Vec<Registered>>, Vec<Failure>) {
    let mut providers = registry.registered_providers().to_vec();
    let (mut is_changed, mut failures) = (false, Vec::new());
    for provider in providers.iter_mut().filter(|provider| provider.changes_models()) {
        let Some(credentials) = registry.lent_login(provider.id()) else {
            continue;
        };
        let models = registry.models_of(provider.id());
        let params = json!({"provider": provider.id(), "models": models, "credentials": credentials});
        let models = delegate.call("provider.oauth.models", &params);
        // A short time, since the loop of the session waits here.
        let models = in_time(limits::CHANGE_MODELS, models).await;
        match models.and_then(|models| provider.with_models(&models)) {
            Ok(changed) => {
                *provider = changed;
                is_changed = true;
            }
            Err(error) => failures.push(failure("<runtime>", "provider.oauth.models", error)),
        }
    }
    (is_changed.then_some(providers), failures)
}

async fn in_time(
    limit: std::time::Duration,
    answer: impl Future<Output = Result<Value, String>>,
) -> Result<Value, String> {
    let late = || Err("the extension did not answer in time".to_owned());
    tokio::time::timeout(limit, answer)
        .await
        .unwrap_or_else(|_| late())
}

/// The providers that a person can log in to: those of the agent, then those of extensions.
pub(crate) fn login_providers(registry: &Registry) -> LoginProviders {
    let catalogue = registry.catalogue().providers().iter();
    let own = catalogue.filter_map(|provider| login_provider(provider.id()));
    let registered = registry.registered_providers().iter();
    // Providers that the agent itself can log in to are listed already.
    let registered = registered.filter(|provider| provider.has_login() && way(provider.id()).is_none());
    let named = own
        .map(|provider| (provider.id, provider.name))
        .chain(registered.map(|provider| (provider.id(), provider.name())));
    let providers = named.map(|(id, name)| LoginProvider {
        id: id.to_owned(),
        name: name.to_owned(),
        // Providers that cannot be logged in to are not listed; clients of oh-my-pi read this member (dialects.md 2).
        available: true,
        // A key in its place is no login.
        authenticated: registry.key_source(id) == Some(KeySource::Oauth),
    });
    LoginProviders {
        providers: providers.collect(),
    }
}
