//! A login from beginning to end: which flow, within which time, and storing what it gives.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::endpoints::Endpoints;
use super::limits::LOGIN;
use super::methods::LoginStart;
use super::refresher::TokenRefresher;
use super::step::Step;
use super::tokens::Tokens;
use super::way::login_provider;
use super::{LoginError, copilot, methods};
use crate::http::HttpClients;

/// Logs people in.
#[derive(Debug, Clone)]
pub struct Login(Arc<TokenRefresher>);

impl Login {
    /// A login that stores its tokens in this `auth.json`.
    #[must_use]
    pub fn new(auth_file: PathBuf, endpoints: Endpoints, clients: Arc<dyn HttpClients>) -> Self {
        Self(TokenRefresher::new(auth_file, endpoints, clients))
    }

    /// Creates logins on the store of a client.
    #[must_use]
    pub fn with(refresher: Arc<TokenRefresher>) -> Self {
        Self(refresher)
    }

    /// Logs in to a provider and stores the tokens. `domain` is a company's own (Copilot only), `models` are those to switch
    /// on afterwards (Copilot only), `lines` what the person pastes.
    ///
    /// # Errors
    /// Why there are no new tokens; the stored ones are unchanged.
    pub async fn run(
        &self,
        provider: &str,
        domain: Option<&str>,
        models: &[String],
        tell: &(dyn Fn(Step<'_>) + Send + Sync),
        lines: Option<Receiver<String>>,
        cancel: &CancellationToken,
    ) -> Result<(), LoginError> {
        let login = login_provider(provider).ok_or_else(|| LoginError::NotOffered(provider.to_owned()))?;
        let work = async {
            let start = LoginStart {
                old: self.0.store.read().entry(provider).and_then(Tokens::of),
                domain,
                lines,
            };
            let tokens = methods::log_in(login, &self.0.http, &self.0.endpoints, start, tell).await?;
            self.store(provider, &tokens).await?;
            Ok(tokens)
        };
        let tokens = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(LoginError::Cancelled),
            done = timeout(LOGIN, work) => done.unwrap_or(Err(LoginError::TooLate(LOGIN)))?,
        };
        if provider == copilot::PROVIDER && !models.is_empty() {
            let enable = copilot::enable(&self.0.http, &self.0.endpoints, &tokens, models);
            let missing = tokio::select! {
                () = cancel.cancelled() => models.len(),
                missing = enable => missing,
            };
            if missing > 0 {
                let all = models.len();
                tell(Step::Note(&format!(
                    "{missing} of {all} models could not be switched on; your plan may not have them."
                )));
            }
        }
        Ok(())
    }

    async fn store(&self, provider: &str, tokens: &Tokens) -> Result<(), LoginError> {
        let store = &self.0.store;
        let guard = store.lock().await?;
        store.put_tokens(guard, provider, tokens).await
    }
}
