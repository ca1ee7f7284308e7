//! One attempt to get a response: from the network, from the network into a tape, or from a tape. Retries are in `send`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Response, Url};
use wire::Model;

use super::fault::no_response;
use super::{Connector, Failure};
use crate::answer::Fault;
use crate::secrets::Secrets;
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
}

impl Line {
    /// For requests to this model.
    pub(crate) fn new(connector: Arc<Connector>, tape: Tape, secrets: Secrets, model: &Model) -> Self {
        Self {
            connector,
            tape,
            secrets,
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
        }
    }

    /// Notes for the log that another attempt will follow.
    pub(super) fn log_retry(&self, fault: &Fault, attempt: u32, wait: Duration) {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        // The text is not made unless somebody reads it.
        let error = || self.secrets.redact(fault.text.clone());
        tracing::warn!(attempt, wait_ms, error = error(), "the request is sent again");
    }

    /// Sends a request and gives the response, whatever its status.
    pub(super) async fn exchange(
        &self,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response, Failure> {
        let asked = Asked {
            api: &self.api,
            provider: &self.provider,
            model: &self.model,
            url: url.as_str(),
            headers,
            body,
        };
        match &self.tape {
            Tape::None => self.ask(url, headers, body).await,
            Tape::Record(recorder) => {
                let exchange = recorder.begin(asked);
                match self.ask(url, headers, body).await {
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

    async fn ask(&self, url: &Url, headers: &HeaderMap, body: &Bytes) -> Result<Response, Failure> {
        let client = self.connector.client(url).await.map_err(|error| Failure {
            fault: Fault::new(error.to_string()),
            again: false,
        })?;
        let request = client
            .post(url.clone())
            .headers(headers.clone())
            .body(body.clone());
        request.send().await.map_err(|error| Failure {
            fault: no_response(&error),
            again: true,
        })
    }
}
