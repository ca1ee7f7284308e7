//! One attempt to get a response: from the network, from the network into a tape, or from a tape. Retries are in `send`.

use std::sync::Arc;
use std::time::Duration;

use auth::{HttpClients as _, Secrets};
use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Response, Url};

use super::fault::no_response;
use super::{Connector, Failure, HttpRequest};
use crate::access::{Access, Granted};
use crate::answer::Fault;
use crate::hooks::OnResponse;
use crate::request::ModelRequest;
use crate::tape::{Asked, Tape};

/// Where the requests of one answer go.
#[derive(Debug)]
pub(crate) struct Line {
    connector: Arc<Connector>,
    tape: Tape,
    secrets: Secrets,
    api: String,
    provider: String,
    model: String,
    /// Texts of errors have whole error objects.
    error_objects: bool,
    on_response: Option<OnResponse>,
}

impl Line {
    /// Creates the sender of one request.
    pub(crate) fn new(
        connector: Arc<Connector>,
        tape: Tape,
        secrets: Secrets,
        request: &ModelRequest,
    ) -> Self {
        let model = &request.model;
        Self {
            connector,
            tape,
            secrets,
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            error_objects: request.conventions.error_objects,
            on_response: request.hooks.on_response.clone(),
        }
    }

    /// Completes a request with credentials that are found just before it is sent. They are kept out of texts from now on.
    pub(super) async fn grant(
        &self,
        access: &Access,
        request: &HttpRequest,
        body: &[u8],
    ) -> Result<Granted, Fault> {
        let granted = access.grant(&self.connector, request, body).await?;
        for (name, value) in &granted.headers {
            if let Ok(value) = value.to_str() {
                self.secrets.learn_header(name.as_str(), value);
            }
        }
        Ok(granted)
    }

    /// API and provider of the model, if texts of errors have whole error objects.
    pub(super) fn shows_error_objects(&self) -> Option<(&str, &str)> {
        self.error_objects
            .then_some((self.api.as_str(), self.provider.as_str()))
    }

    /// A text without the credentials that are known.
    pub(super) fn hide(&self, text: String) -> String {
        self.secrets.redact(text)
    }

    /// Notes for the log that another attempt will follow.
    pub(super) fn log_retry(&self, fault: &Fault, attempt: u32, wait: Duration) {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        // A closure, so that the text is only redacted if the log level is enabled.
        let error = || self.secrets.redact(fault.text.clone());
        tracing::warn!(attempt, wait_ms, error = error(), "the request is sent again");
    }

    /// Sends a request and returns the response of any status. Calls the response hook.
    pub(super) async fn exchange(
        &self,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
        wants_http1: bool,
    ) -> Result<Response, Failure> {
        let response = self.by_tape(url, headers, body, wants_http1).await?;
        if let Some(on_response) = &self.on_response {
            on_response
                .tell(response.status().as_u16(), response.headers())
                .await;
        }
        Ok(response)
    }

    async fn by_tape(
        &self,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
        wants_http1: bool,
    ) -> Result<Response, Failure> {
        let ask = || self.ask(url, headers, body, wants_http1);
        let asked = Asked {
            api: &self.api,
            provider: &self.provider,
            model: &self.model,
            url: url.as_str(),
            headers,
            body,
        };
        match &self.tape {
            Tape::None => ask().await,
            Tape::Record(recorder) => {
                let exchange = recorder.begin(asked);
                match ask().await {
                    Ok(response) => Ok(exchange.keep(response)),
                    Err(failure) => {
                        exchange.failed(&failure.fault.text);
                        Err(failure)
                    }
                }
            }
            Tape::Replay(player) => player.answer(asked).await,
        }
    }

    async fn ask(
        &self,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
        wants_http1: bool,
    ) -> Result<Response, Failure> {
        let client = self
            .connector
            .client_for(url, wants_http1)
            .await
            .map_err(|error| Failure {
                fault: Fault::new(error.to_string()),
                again: false,
            })?;
        let request = client
            .post(url.clone())
            .headers(headers.clone())
            .body(body.clone());
        request.send().await.map_err(|error| Failure {
            fault: no_response(&error, self.connector.proxy(url).as_ref()),
            again: true,
        })
    }
}
