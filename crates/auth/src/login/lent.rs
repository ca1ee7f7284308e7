//! Logins that an extension gets and refreshes. Their credentials are in `auth.json` like all others and are refreshed
//! under the same lock. The caller knows how to reach the extension.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::timeout;

use super::LoginError;
use super::auth_file::AuthEntry;
use super::clock::now_ms;
use super::fields::{Fields, Member};
use super::file::AuthStore;
use super::limits::RENEWAL;
use super::tokens::kept;
use crate::Secrets;

/// Members of an entry, as extensions see them.
pub type Credentials = Map<String, Value>;

impl AuthStore {
    /// Returns the credentials of a provider. `renew` refreshes expired ones, once for all concurrent callers. The work
    /// goes on after an abort, since the provider accepts a refresh token only once. The end of the process ends it, as it ends
    /// the extension that does the work. Needs a tokio runtime.
    ///
    /// # Errors
    /// When there are none, they cannot be refreshed, or the file cannot be changed.
    pub async fn lent<F>(
        &self,
        provider: &str,
        secrets: &Secrets,
        renew: impl FnOnce(Credentials) -> F + Send + 'static,
    ) -> Result<Credentials, LoginError>
    where
        F: Future<Output = Result<Credentials, String>> + Send,
    {
        if let Some(stored) = self.stored_lent(provider, secrets)
            && !has_ended(&stored)
        {
            return Ok(stored);
        }
        let (store, owned, secrets) = (self.clone(), Arc::<str>::from(provider), secrets.clone());
        let work = tokio::spawn(async move { store.renew_lent(&owned, &secrets, renew).await });
        work.await
            .unwrap_or_else(|error| Err(LoginError::System(error.to_string())))
    }

    async fn renew_lent<F>(
        &self,
        provider: &str,
        secrets: &Secrets,
        renew: impl FnOnce(Credentials) -> F,
    ) -> Result<Credentials, LoginError>
    where
        F: Future<Output = Result<Credentials, String>>,
    {
        let guard = self.lock().await?;
        let Some(stored) = self.stored_lent(provider, secrets) else {
            return Err(match self.read().fatal_error() {
                Some(error) => LoginError::System(error.to_owned()).into_request(provider),
                None => LoginError::of_lent(provider, "the login is gone from auth.json"),
            });
        };
        // Another process may have refreshed them while this one waited for the lock.
        if !has_ended(&stored) {
            return Ok(stored);
        }
        self.check().await?;
        let refresh = stored.get("refresh").cloned();
        let mut renewed = match timeout(RENEWAL, renew(stored)).await {
            Ok(Ok(renewed)) => renewed,
            Ok(Err(error)) => return Err(LoginError::of_lent(provider, &secrets.redact(error))),
            Err(_) => {
                let error = format!("it was not renewed within {} s", RENEWAL.as_secs());
                return Err(LoginError::of_lent(provider, &error));
            }
        };
        // A refresh token that was not replaced stays valid (RFC 6749, 6).
        if let (Some(refresh), false) = (refresh, is_text(&renewed, "refresh")) {
            renewed.insert("refresh".to_owned(), refresh);
        }
        self.put_lent(guard, provider, secrets, renewed).await
    }

    /// Stores the credentials of a new login.
    ///
    /// # Errors
    /// When they are none, or the file cannot be changed.
    pub async fn keep_lent(
        &self,
        provider: &str,
        secrets: &Secrets,
        credentials: Credentials,
    ) -> Result<(), LoginError> {
        let guard = self.lock().await?;
        self.put_lent(guard, provider, secrets, credentials)
            .await
            .map(drop)
    }

    async fn put_lent(
        &self,
        guard: super::lock::Guard,
        provider: &str,
        secrets: &Secrets,
        mut credentials: Credentials,
    ) -> Result<Credentials, LoginError> {
        credentials.insert("type".to_owned(), "oauth".into());
        if !is_text(&credentials, "access") || !credentials.get("expires").is_some_and(Value::is_number) {
            return Err(LoginError::of_lent(provider, "the extension gave no credentials"));
        }
        if !is_text(&credentials, "refresh") {
            credentials.insert("refresh".to_owned(), Value::String(String::new()));
        }
        learn(&credentials, secrets);
        let told = credentials.clone();
        self.put(guard, provider, move |old| Some(entry(old, told)))
            .await?;
        Ok(credentials)
    }

    fn stored_lent(&self, provider: &str, secrets: &Secrets) -> Option<Credentials> {
        let file = self.read();
        let entry = file.entry(provider)?;
        if !matches!(entry, AuthEntry::Oauth { .. }) {
            return None;
        }
        let fields = entry.fields();
        learn(&fields, secrets);
        Some(fields)
    }
}

/// Merges new members into the stored entry.
fn entry(old: Option<&Member>, credentials: Credentials) -> Fields {
    let mut entry = kept(old, "oauth");
    for (name, value) in credentials {
        entry.set(&name, Member::New(value));
    }
    entry
}

fn is_text(credentials: &Credentials, name: &str) -> bool {
    credentials.get(name).is_some_and(Value::is_string)
}

fn has_ended(credentials: &Credentials) -> bool {
    let expires = credentials.get("expires").and_then(Value::as_f64).unwrap_or(0.0);
    #[expect(clippy::cast_precision_loss, reason = "times stay far below 2^53")]
    let now = now_ms() as f64;
    now >= expires
}

fn learn(credentials: &Credentials, secrets: &Secrets) {
    for name in ["access", "refresh"] {
        if let Some(secret) = credentials.get(name).and_then(Value::as_str) {
            secrets.learn(secret);
        }
    }
}
