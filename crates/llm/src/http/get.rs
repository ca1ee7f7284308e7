//! Fetching a document that is no answer of a model: with a limit on its size and on the time it takes.

use std::time::Duration;

use auth::HttpClients as _;
use reqwest::Url;
use reqwest::header::ACCEPT;
use tokio::time::timeout;

use super::fault::{broken_body, no_response};
use super::{ClientConfig, Connector};
use crate::limits::{DOCUMENT_TIMEOUT, MAX_DOCUMENT_BYTES};

/// Fetches a JSON document. Over plain `http:` only from this machine: who could change it on the way could say anything.
///
/// # Errors
/// A sentence without the address, which the caller knows.
pub async fn fetch(config: ClientConfig, url: &str) -> Result<Vec<u8>, String> {
    let url = Url::parse(url).map_err(|_| "this is no address".to_owned())?;
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if url.scheme() != "https" && !(url.scheme() == "http" && is_here) {
        return Err("only https: is good enough for this".to_owned());
    }
    let fetched = timeout(DOCUMENT_TIMEOUT, read(config, url)).await;
    fetched.unwrap_or_else(|_| Err(format!("it takes longer than {} s", DOCUMENT_TIMEOUT.as_secs())))
}

async fn read(config: ClientConfig, url: Url) -> Result<Vec<u8>, String> {
    let connector = Connector::new(ClientConfig {
        connect_timeout: config.connect_timeout.min(Duration::from_secs(10)),
        ..config
    });
    let client = connector.client(&url).await.map_err(|error| error.to_string())?;
    let proxy = connector.proxy(&url);
    let sent = client.get(url).header(ACCEPT, "application/json").send().await;
    let mut response = sent.map_err(|error| no_response(&error, proxy.as_ref()).text)?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("the server answers {status}"));
    }
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(piece)) if bytes.len() + piece.len() <= MAX_DOCUMENT_BYTES => {
                bytes.extend_from_slice(&piece)
            }
            Ok(Some(_)) => return Err(format!("it is larger than {} MiB", MAX_DOCUMENT_BYTES >> 20)),
            Ok(None) => return Ok(bytes),
            Err(_) => return Err(format!("it broke off ({})", broken_body().text)),
        }
    }
}
