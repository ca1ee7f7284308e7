//! Requests to one local server: bounded in time and size. Which paths are asked is decided by the modules of the servers.

use std::time::Duration;

use llm::{ClientConfig, Connector};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::Place;
use crate::limits::LOCAL_BODY;

/// Why there is no answer to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Miss {
    /// No server answered, or it speaks another protocol.
    Absent,
    /// The server requires a key.
    Key,
    /// The server does not have this path.
    Other,
}

/// Asks one server at a time.
pub(super) struct Asker {
    connector: Connector,
    answer: Duration,
}

impl Asker {
    /// One with these proxies and this name. `answer` is the timeout for the status of a response.
    pub(super) fn new(config: ClientConfig, answer: Duration) -> Self {
        Self {
            connector: Connector::new(config),
            answer,
        }
    }

    /// Gets the document at a path of a place.
    pub(super) async fn get<T: DeserializeOwned>(&self, place: &Place, path: &str) -> Result<T, Miss> {
        self.ask(Method::GET, place, path, None).await
    }

    /// What a path answers to a question.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        place: &Place,
        path: &str,
        body: &Value,
    ) -> Result<T, Miss> {
        self.ask(Method::POST, place, path, Some(body)).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        place: &Place,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Miss> {
        let url = Url::parse(&format!("{}{path}", place.url)).map_err(|_| Miss::Absent)?;
        let client = self.connector.client(&url).await.map_err(|_| Miss::Absent)?;
        let mut request = client.request(method, url);
        if let Some(key) = &place.key {
            request = request.bearer_auth(key.expose());
        }
        if let Some(body) = body {
            let text = serde_json::to_vec(body).map_err(|_| Miss::Other)?;
            request = request.header("content-type", "application/json").body(text);
        }
        let answered = timeout(self.answer, request.send()).await;
        let response = answered.map_err(|_| Miss::Absent)?.map_err(|_| Miss::Absent)?;
        match response.status() {
            status if status.is_success() => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Miss::Key),
            _ => return Err(Miss::Other),
        }
        let bytes = body_of(response).await.ok_or(Miss::Other)?;
        serde_json::from_slice(&bytes).map_err(|_| Miss::Other)
    }
}

/// The body, unless it is longer than anything a server has to say here.
async fn body_of(mut response: Response) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.ok()? {
        if bytes.len() + piece.len() > LOCAL_BODY {
            return None;
        }
        bytes.extend_from_slice(&piece);
    }
    Some(bytes)
}

/// An entry of `/v1/models`.
#[derive(Deserialize)]
pub(super) struct Listed {
    pub(super) id: String,
    #[serde(default)]
    pub(super) owned_by: String,
    /// llama.cpp's.
    #[serde(default)]
    pub(super) meta: Meta,
    /// vLLM's and SGLang's.
    pub(super) max_model_len: Option<u64>,
    /// Some gateways'.
    pub(super) context_length: Option<u64>,
}

/// What llama.cpp says about a loaded model.
#[derive(Deserialize, Default)]
pub(super) struct Meta {
    pub(super) n_ctx: Option<u64>,
    pub(super) n_ctx_train: Option<u64>,
}
