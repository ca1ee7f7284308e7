//! Requests to token endpoints: small, bounded in size and time, never repeated by themselves, since a refresh token may
//! work only once.

use std::sync::Arc;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Url};
use serde_json::Value;
use tokio::time::timeout;

use super::LoginError;
use super::limits::{HTTP, MAX_ANSWER, MAX_REASON};
use crate::Secret;
use crate::http::{HttpClients, connection_failure};
use crate::limits::SHORTEST_SECRET;
use crate::text::{cut, without_markup};

/// Asks token endpoints.
#[derive(Debug, Clone)]
pub(super) struct Http(Arc<dyn HttpClients>);

/// A response of any status.
pub(super) struct Answer {
    host: String,
    pub(super) status: u16,
    pub(super) json: Value,
    text: String,
    /// Secrets of the request; they are removed from error texts.
    sent: Vec<Secret>,
}

impl Http {
    pub(super) fn new(clients: Arc<dyn HttpClients>) -> Self {
        Self(clients)
    }

    /// POSTs a form.
    pub(super) async fn form(&self, url: &str, form: &[(&str, &str)]) -> Result<Answer, LoginError> {
        // The kind of grant is no secret, and servers name it in their errors.
        let values = form.iter().filter(|(name, _)| *name != "grant_type");
        let sent = values.map(|(_, value)| Secret::new(value)).collect();
        let body = query(form);
        let kind = "application/x-www-form-urlencoded";
        let headers = [("content-type", kind)];
        self.send(Method::POST, url, &headers, body, sent).await
    }

    /// POSTs JSON with a token.
    pub(super) async fn json(
        &self,
        url: &str,
        token: &Secret,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<Answer, LoginError> {
        self.with_token(Method::POST, url, token, headers, body.to_string())
            .await
    }

    /// POSTs JSON without a token. `sent` are the secrets in it.
    pub(super) async fn post(
        &self,
        url: &str,
        body: &Value,
        sent: Vec<Secret>,
    ) -> Result<Answer, LoginError> {
        let headers = [(CONTENT_TYPE.as_str(), "application/json")];
        self.send(Method::POST, url, &headers, body.to_string(), sent)
            .await
    }

    /// GETs with a token.
    pub(super) async fn get(
        &self,
        url: &str,
        token: &Secret,
        headers: &[(&str, &str)],
    ) -> Result<Answer, LoginError> {
        self.with_token(Method::GET, url, token, headers, String::new())
            .await
    }

    async fn with_token(
        &self,
        method: Method,
        url: &str,
        token: &Secret,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Answer, LoginError> {
        let bearer = format!("Bearer {}", token.expose());
        let mut all = vec![
            ("authorization", bearer.as_str()),
            (CONTENT_TYPE.as_str(), "application/json"),
        ];
        all.extend_from_slice(headers);
        self.send(method, url, &all, body, vec![token.clone()]).await
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: String,
        sent: Vec<Secret>,
    ) -> Result<Answer, LoginError> {
        let url =
            Url::parse(url).map_err(|_| LoginError::System("A login has an invalid address".to_owned()))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let proxy = self.0.proxy(&url);
        let client = self.0.client(&url).await;
        let client = client.map_err(LoginError::System)?;
        let mut request = client.request(method, url).header(ACCEPT, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let exchange = async {
            let mut response = request.body(body).send().await?;
            let status = response.status().as_u16();
            let mut bytes = Vec::new();
            while let Some(piece) = response.chunk().await? {
                let room = MAX_ANSWER.saturating_sub(bytes.len());
                bytes.extend(piece.iter().take(room));
                if piece.len() >= room {
                    break;
                }
            }
            Ok::<_, reqwest::Error>((status, bytes))
        };
        let unreachable = |reason: String| LoginError::Unreachable {
            host: host.clone(),
            reason,
        };
        let (status, bytes) = match timeout(HTTP, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(unreachable(connection_failure(&error, proxy.as_ref()))),
            Err(_) => return Err(unreachable(format!("timed out after {} s", HTTP.as_secs()))),
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Answer {
            host,
            status,
            json: serde_json::from_str(&text).unwrap_or_default(),
            text,
            sent,
        })
    }
}

impl Answer {
    /// The answer, if it is a success.
    pub(super) fn success(self) -> Result<Self, LoginError> {
        if (200..300).contains(&self.status) {
            Ok(self)
        } else {
            Err(self.refusal())
        }
    }

    /// A text of the answer.
    pub(super) fn word(&self, name: &str) -> Option<&str> {
        let word = self.json.get(name)?.as_str()?;
        (!word.is_empty()).then_some(word)
    }

    /// A text that must be there.
    pub(super) fn need(&self, what: &'static str) -> Result<&str, LoginError> {
        self.word(what).ok_or_else(|| LoginError::Answer {
            host: self.host.clone(),
            what,
        })
    }

    /// A number of the answer.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        let number = self.json.get(name)?.as_f64()?;
        number.is_finite().then_some(number)
    }

    /// The answer as an error, in the server's words.
    pub(super) fn refusal(&self) -> LoginError {
        let inner = self.json.get("error").and_then(|error| error.get("message"));
        let words = self
            .word("error_description")
            .or_else(|| inner.and_then(Value::as_str))
            .or_else(|| self.word("message"))
            .or_else(|| self.word("error"));
        let mut reason = match words {
            Some(words) => words.to_owned(),
            None if self.json.is_null() => without_markup(&self.text),
            None => String::new(),
        };
        for secret in &self.sent {
            reason = hide(reason, secret);
        }
        let reason: String = reason
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        LoginError::Refused {
            host: self.host.clone(),
            status: self.status,
            reason: match reason.trim() {
                "" => "no reason given".to_owned(),
                reason => cut(reason, MAX_REASON),
            },
        }
    }
}

/// Pairs as a form or query writes them.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let url = Url::parse_with_params("http://localhost/", pairs);
    url.ok()
        .and_then(|url| url.query().map(str::to_owned))
        .unwrap_or_default()
}

/// The text without a secret. Short ones stay: they would hit ordinary words.
pub(super) fn hide(text: String, secret: &Secret) -> String {
    let secret = secret.expose();
    if secret.len() >= SHORTEST_SECRET && text.contains(secret) {
        text.replace(secret, "[key]")
    } else {
        text
    }
}
