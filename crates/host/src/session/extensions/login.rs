//! Logins that a client asks for (dialects.md 2, `login`): to providers of extensions, by the extension, and to those that
//! the agent knows itself. Pages and questions go to the client as extension UI; tokens never do.

use auth::login::{AuthStore, Login, Step, Way, way};
use models::KeySource;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wire::command::LoginParams;
use wire::reply::{LoggedIn, LoginProvider, LoginProviders};
use wire::table::Respond;

use door::{Answer, DoorError};

use crate::extensions::Lender;
use crate::outbox::Responder;
use crate::strings;

use super::super::Session;
use super::super::access::credentials;
use super::super::dialogs::{Dialog, Show, Ui};
use super::{Outcome, Then};

impl Session {
    /// The providers that people can log in to.
    pub(in crate::session) fn login_providers(&self) -> LoginProviders {
        let registry = &self.agent.registry;
        let catalogue = registry.catalogue().providers().iter();
        let own = catalogue
            .map(|provider| provider.id())
            .filter(|id| way(id).is_some());
        let theirs = registry.registered_providers().iter();
        let theirs = theirs.filter(|provider| provider.has_login() && way(provider.id()).is_none());
        let named = own
            .map(|id| (id, id))
            .chain(theirs.map(|provider| (provider.id(), provider.name())));
        let providers = named.map(|(id, name)| LoginProvider {
            id: id.to_owned(),
            name: name.to_owned(),
            available: true,
            authenticated: registry.key_source(id) == Some(KeySource::Oauth),
        });
        LoginProviders {
            providers: providers.collect(),
        }
    }

    /// Begins a login; the answer comes when it has ended.
    pub(in crate::session) async fn log_in(&mut self, responder: Responder<LoggedIn>, params: LoginParams) {
        let id = params.provider_id;
        let is_logging_in = |wait: &super::Wait| matches!(wait.then, Then::Login(..));
        if self.extensions.waits.values().any(is_logging_in) {
            return responder.refuse(strings::LOGGING_IN).await;
        }
        let registry = &self.agent.registry;
        let mut registered = registry.registered_providers().iter();
        let is_theirs = registered.any(|provider| provider.id() == id && provider.has_login());
        let (client, secrets) = (self.agent.client.clone(), registry.secrets().clone());
        let store = AuthStore::new(self.agent.agent_dir.join("auth.json"));
        let provider = id.clone();
        match (self.agent.lender.clone().filter(|_| is_theirs), way(&id)) {
            (Some(lender), _) => self.wait_for_login(responder, id, async move {
                let tokens = by_extension(&lender, &provider).await?;
                let kept = store.keep_lent(&provider, &secrets, tokens).await;
                kept.map_err(|error| secrets.redact(error.to_string()))
            }),
            (None, Some(way)) => {
                let models = registry.models_of(&id).into_iter();
                let models: Vec<String> = models.map(|model| model.id.clone()).collect();
                let ui = self.ui();
                self.wait_for_login(responder, id, async move {
                    let login = client
                        .login()
                        .ok_or("There is no auth.json to store a login in")?;
                    by_ourselves(&login, way, &provider, &models, &ui).await
                });
            }
            (None, None) => {
                let error = strings::unknown_login(&id);
                responder.refuse(error).await;
            }
        }
    }

    fn wait_for_login(
        &mut self,
        responder: Responder<LoggedIn>,
        provider: String,
        login: impl Future<Output = Result<(), String>> + Send + 'static,
    ) {
        self.extensions
            .wait(Then::Login(responder, provider), async move {
                Outcome::Answer(match login.await {
                    Ok(()) => Ok(Answer::default()),
                    Err(error) => Err(DoorError::Failed(error)),
                })
            });
    }

    /// A login has ended. What it opens is known from now on.
    pub(super) async fn on_login(
        &mut self,
        responder: Responder<LoggedIn>,
        provider_id: String,
        outcome: Result<Value, DoorError>,
    ) {
        let outcome = match outcome {
            Ok(_) => {
                // Extensions change their models by this login, not by the one before.
                self.extensions.providers.clear();
                if !self.take_providers() {
                    let (registry, lender) = (self.agent.registry.reload(), self.agent.lender.clone());
                    self.use_registry(registry, lender);
                }
                self.change_models().await;
                self.write_models().await;
                self.refresh_models();
                Ok(LoggedIn { provider_id })
            }
            Err(error) => Err(error.to_string()),
        };
        responder.respond(outcome).await;
    }
}

async fn by_extension(lender: &Lender, provider: &str) -> Result<auth::login::Credentials, String> {
    let params = json!({"provider": provider});
    let login = credentials(lender, "provider.oauth.login", &params);
    let longest = auth::login::limits::LOGIN;
    let late = || format!("The login took longer than {} s", longest.as_secs());
    tokio::time::timeout(longest, login)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// A login of the agent's own, with the client as its terminal.
async fn by_ourselves(
    login: &Login,
    way: Way,
    provider: &str,
    models: &[String],
    ui: &Ui,
) -> Result<(), String> {
    // A login has a few steps at most.
    let (tell, mut told) = mpsc::unbounded_channel::<Show>();
    let (lines, pasted) = mpsc::channel(1);
    let tell = move |step: Step<'_>| {
        let _gone = tell.send(show(step));
    };
    let cancel = CancellationToken::new();
    let talking = async {
        while let Some(show) = told.recv().await {
            let is_page = matches!(show, Show::OpenUrl { .. });
            ui.show(show).await;
            if is_page && way == Way::Browser {
                let title = "Paste the address that the browser ended at, if it does not find its way back"
                    .to_owned();
                let question = Dialog::Input {
                    title,
                    placeholder: None,
                    timeout: Some(0),
                };
                if let Some(line) = ui.ask(question, &cancel).await.value() {
                    let _ended = lines.send(line).await;
                }
            }
        }
        std::future::pending::<()>().await;
    };
    let run = login.run(provider, None, models, &tell, Some(pasted), &cancel);
    tokio::select! {
        done = run => done.map_err(|error| error.to_string()),
        () = talking => Ok(()),
    }
}

fn show(step: Step<'_>) -> Show {
    match step {
        Step::Visit(url) => Show::OpenUrl {
            url: url.to_owned(),
            launch_url: None,
            instructions: None,
        },
        Step::Enter { address, code } => Show::OpenUrl {
            url: address.to_owned(),
            launch_url: None,
            instructions: Some(format!("Enter the code {code}")),
        },
        Step::Note(note) => Show::Notify {
            message: note.to_owned(),
            kind: None,
        },
    }
}
