//! Keeps the tokens of logins fresh: renews one when it ends or is refused, once for all sessions and processes, under the
//! lock on `auth.json` (pi-core.md 8.4). How a request uses this is in `llm`.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::clock::now_ms;
use super::copilot::copilot_address;
use super::endpoints::Endpoints;
use super::file::AuthStore;
use super::limits::HTTP;
use super::token_server::Http;
use super::tokens::Tokens;
use super::way::{login_provider, renews};
use super::{LoginError, copilot, methods};
use crate::http::HttpClients;
use crate::{Secret, Secrets};

/// Refreshes the tokens of logins, at most once at a time for each provider.
#[derive(Debug)]
pub struct TokenRefresher {
    pub(super) store: AuthStore,
    pub(super) http: Http,
    pub(super) endpoints: Endpoints,
    /// Learns the tokens that are used, to be taken out of texts.
    secrets: Secrets,
    /// Counts the refreshes whose refresh token may be spent and whose new tokens are not stored yet.
    spending: TaskTracker,
}

/// What a request needs of a login.
#[derive(Debug, Clone)]
pub struct Token {
    /// The key.
    pub access: Secret,
    /// Where Copilot is with this token.
    pub address: Option<String>,
}

impl TokenRefresher {
    /// One for this `auth.json` and these addresses. Does no IO.
    #[must_use]
    pub fn new(auth_file: PathBuf, endpoints: Endpoints, clients: Arc<dyn HttpClients>) -> Arc<Self> {
        Arc::new(Self {
            store: AuthStore::new(auth_file),
            endpoints,
            secrets: clients.secrets().clone(),
            http: Http::new(clients),
            spending: TaskTracker::new(),
        })
    }

    /// Waits until the refreshes under way are stored, and lets no other begin. To be called before the process ends, which
    /// would lose their tokens. Returns at once if there are none, else after [`HTTP`] at most.
    pub async fn finish(&self) {
        self.spending.close();
        let _late = timeout(HTTP, self.spending.wait()).await;
    }

    /// Returns the token for a request: the stored one, refreshed if it has expired. `known` is the caller's token, in
    /// case the file is unreadable.
    pub async fn token(self: &Arc<Self>, provider: &str, known: &Secret) -> Result<Token, LoginError> {
        self.remember(known);
        let file = self.store.read();
        let stored = match (file.entry(provider).and_then(Tokens::of), file.error()) {
            (Some(stored), _) => stored,
            (None, Some(_)) => return Ok(given(provider, known)),
            (None, None) => {
                return Err(LoginError::of_request(
                    provider,
                    "the login is gone from auth.json",
                ));
            }
        };
        if now_ms() < stored.expires {
            return Ok(self.hand_out(provider, &stored));
        }
        if !renews(provider) {
            return Err(LoginError::of_request(provider, "the stored token has expired"));
        }
        self.renew(provider, &stored.access, false).await
    }

    /// Returns a token other than the refused one.
    pub async fn instead_of(self: &Arc<Self>, provider: &str, refused: &Secret) -> Result<Token, LoginError> {
        if !renews(provider) {
            let file = self.store.read();
            let stored = file.entry(provider).and_then(Tokens::of);
            return stored
                .filter(|stored| stored.access != *refused && now_ms() < stored.expires)
                .map(|stored| self.hand_out(provider, &stored))
                .ok_or_else(|| LoginError::of_request(provider, "the stored token was refused"));
        }
        self.renew(provider, refused, true).await
    }

    /// Refreshes in a task of its own. The task goes on after an abort, since the provider accepts a refresh token only
    /// once: the new one must reach the file.
    async fn renew(
        self: &Arc<Self>,
        provider: &str,
        stale: &Secret,
        refused: bool,
    ) -> Result<Token, LoginError> {
        let (refresher, stale) = (Arc::clone(self), stale.clone());
        let owned = provider.to_owned();
        let work = tokio::spawn(async move { refresher.renew_now(&owned, &stale, refused).await });
        let renewed = work
            .await
            .unwrap_or_else(|error| Err(LoginError::System(error.to_string())));
        match renewed {
            Ok(tokens) => Ok(self.hand_out(provider, &tokens)),
            Err(error) => Err(error.into_request(provider)),
        }
    }

    async fn renew_now(&self, provider: &str, stale: &Secret, refused: bool) -> Result<Tokens, LoginError> {
        let login = login_provider(provider).ok_or_else(|| LoginError::NotOffered(provider.to_owned()))?;
        let guard = self.store.lock().await?;
        let file = self.store.read();
        let Some(stored) = file.entry(provider).and_then(Tokens::of) else {
            return Err(match file.fatal_error() {
                Some(error) => LoginError::System(error.to_owned()),
                None => LoginError::of_request(provider, "the login is gone from auth.json"),
            });
        };
        drop(file);
        // Another process may have refreshed it while this one waited for the lock.
        if stored.access != *stale && now_ms() < stored.expires {
            return Ok(stored);
        }
        self.store.check().await?;
        let _spending = self.spending.token();
        if self.spending.is_closed() {
            return Err(LoginError::System("Pinion is ending".to_owned()));
        }
        self.remember(&stored.refresh);
        let renewed = methods::renew(login, &self.http, &self.endpoints, &stored).await;
        match renewed {
            Ok(tokens) => {
                self.remember(&tokens.access);
                self.remember(&tokens.refresh);
                self.store.put_tokens(guard, provider, &tokens).await?;
                Ok(tokens)
            }
            Err(error) => {
                // A program that does not know our lock may have been first.
                let again = self.stored(provider);
                if let Some(other) =
                    again.filter(|other| other.access != stored.access && now_ms() < other.expires)
                {
                    return Ok(other);
                }
                // The margin is there for this: the token still counts.
                if !refused && now_ms() < stored.expires.saturating_add(login.margin_ms) {
                    return Ok(stored);
                }
                Err(error)
            }
        }
    }

    fn stored(&self, provider: &str) -> Option<Tokens> {
        self.store.read().entry(provider).and_then(Tokens::of)
    }

    fn hand_out(&self, provider: &str, tokens: &Tokens) -> Token {
        self.remember(&tokens.access);
        Token {
            access: tokens.access.clone(),
            address: address(provider, &tokens.access, tokens.extra("enterpriseUrl")),
        }
    }

    fn remember(&self, secret: &Secret) {
        self.secrets.learn(secret.expose());
    }

    /// A text without the tokens that were used.
    #[must_use]
    pub fn hide(&self, text: String) -> String {
        self.secrets.redact(text)
    }
}

/// A token that nothing more is known of.
fn given(provider: &str, access: &Secret) -> Token {
    Token {
        access: access.clone(),
        address: address(provider, access, None),
    }
}

fn address(provider: &str, access: &Secret, enterprise: Option<&str>) -> Option<String> {
    (provider == copilot::PROVIDER)
        .then(|| copilot_address(access.expose(), enterprise))
        .flatten()
}
