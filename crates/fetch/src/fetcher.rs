//! The request: bounded in time and size, with redirects that stay on their host.

use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::Resolve;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use tokio::sync::OnceCell;

use crate::address::Allowed;
use crate::{limits, page};

/// What servers are asked for: text for models first.
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.1";

/// A client, or why there is none.
pub type ClientFuture<'a> = Pin<Box<dyn Future<Output = Result<Client, String>> + Send + 'a>>;

/// Makes the HTTP client.
pub trait WebClients: Send + Sync {
    /// A client that connects only to what `resolver` gives, follows no redirect and uses no proxy.
    fn direct_client(&self, resolver: Arc<dyn Resolve>) -> ClientFuture<'_>;
}

/// How pages are fetched.
pub struct FetchConfig {
    /// Makes the HTTP client when the first page is fetched.
    pub clients: Arc<dyn WebClients>,
    /// Hosts whose private addresses are allowed.
    pub allowed: Allowed,
    /// Why nothing is fetched, if nothing is.
    pub refusal: Option<String>,
}

/// What a URL gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The text for the model: one part of the page, and where the next one begins.
    pub text: String,
    /// The URL after redirects.
    pub url: String,
    /// The media type, without parameters.
    pub media_type: String,
    /// Bytes that were read.
    pub bytes: usize,
    /// The title of an HTML page.
    pub title: Option<String>,
}

/// Fetches pages. Copies share the client.
#[derive(Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
}

struct Shared {
    config: FetchConfig,
    client: OnceCell<Client>,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher").finish_non_exhaustive()
    }
}

impl Fetcher {
    /// Notes the configuration; connects to nothing.
    #[must_use]
    pub fn new(config: FetchConfig) -> Self {
        let client = OnceCell::new();
        Self {
            shared: Arc::new(Shared { config, client }),
        }
    }

    /// Fetches a URL and returns its text from byte `start` of the converted page on. Dropping the future ends the request.
    ///
    /// # Errors
    /// The text for the model.
    pub async fn fetch(&self, url: Url, start: usize) -> Result<Fetched, String> {
        if let Some(refusal) = &self.shared.config.refusal {
            return Err(refusal.clone());
        }
        let work = async {
            let answer = self.get(url).await?;
            read(answer, start).await
        };
        let seconds = limits::FETCH_TIME.as_secs();
        tokio::time::timeout(limits::FETCH_TIME, work)
            .await
            .unwrap_or_else(|_| Err(format!("No complete page within {seconds} seconds")))
    }

    async fn client(&self) -> Result<&Client, String> {
        let config = &self.shared.config;
        let resolver = Arc::new(config.allowed.clone());
        let make = || config.clients.direct_client(resolver);
        self.shared.client.get_or_try_init(make).await
    }

    async fn get(&self, mut url: Url) -> Result<Response, String> {
        let client = self.client().await?;
        for _ in 0..=limits::FETCH_REDIRECTS {
            self.shared.config.allowed.check(&url)?;
            let request = client.get(url.clone()).header(ACCEPT, ACCEPTED);
            let answer = request.send().await.map_err(|error| failure(&url, &error))?;
            let location = answer
                .headers()
                .get(LOCATION)
                .filter(|_| answer.status().is_redirection());
            let Some(location) = location else {
                return Ok(answer);
            };
            let target = location.to_str().ok().and_then(|target| url.join(target).ok());
            let target = target.ok_or_else(|| format!("{url} redirects to something that is no URL"))?;
            // Results and errors name the URL, and a header may have 400 KB.
            if target.as_str().len() > limits::FETCH_URL {
                let most = limits::FETCH_URL;
                return Err(format!(
                    "{url} redirects to a URL that is longer than {most} bytes"
                ));
            }
            let is_upgrade = target.scheme() == "https" || target.scheme() == url.scheme();
            if target.host_str() != url.host_str() || !is_upgrade {
                return Err(format!(
                    "{url} redirects to {target}. Fetch that URL if it is the right one"
                ));
            }
            url = target;
        }
        Err(format!(
            "{url} redirects more than {} times",
            limits::FETCH_REDIRECTS
        ))
    }
}

/// The innermost cause: it names the problem of the address or the connection.
fn failure(url: &Url, error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("{url} cannot be fetched: {cause}")
}

async fn read(mut answer: Response, start: usize) -> Result<Fetched, String> {
    let (status, url) = (answer.status(), answer.url().clone());
    let media_type = answer
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media_type = media_type
        .unwrap_or("text/plain")
        .split(';')
        .next()
        .unwrap_or_default();
    let mut media_type = media_type.trim().to_ascii_lowercase();
    media_type.truncate(media_type.floor_char_boundary(limits::FETCH_TITLE));
    let (mut body, mut is_cut) = (Vec::new(), false);
    while let Some(chunk) = answer.chunk().await.map_err(|error| failure(&url, &error))? {
        let room = limits::FETCH_BODY - body.len();
        body.extend(chunk.iter().take(room));
        if chunk.len() > room {
            is_cut = true;
            break;
        }
    }
    let bytes = body.len();
    if !is_text(&media_type) {
        return Err(format!(
            "{url} is {media_type} ({bytes} bytes), which has no text to read"
        ));
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    let is_html = media_type.contains("html");
    let page = if is_html {
        let converted = tokio::task::spawn_blocking(move || page::from_html(text)).await;
        converted.map_err(|error| format!("{url} cannot be converted: {error}"))?
    } else {
        page::Page { title: None, text }
    };
    if !status.is_success() {
        let shown = part(&page.text, 0, limits::FETCH_ERROR_TEXT);
        return Err(format!("{url} answered with status {status}\n\n{shown}")
            .trim_end()
            .to_owned());
    }
    Ok(Fetched {
        text: window(&page, &url, start, is_cut)?,
        url: url.to_string(),
        media_type,
        bytes,
        title: page.title,
    })
}

fn is_text(media_type: &str) -> bool {
    let names = [
        "json",
        "xml",
        "html",
        "javascript",
        "yaml",
        "toml",
        "markdown",
        "csv",
        "x-sh",
        "sql",
    ];
    media_type.starts_with("text/") || names.iter().any(|name| media_type.contains(name))
}

/// The part of a page that begins at `wanted`, with notes about the parts that are left out.
fn window(page: &page::Page, url: &Url, wanted: usize, is_cut: bool) -> Result<String, String> {
    let total = page.text.len();
    // A model may name a place of its own, within a character.
    let start = page.text.ceil_char_boundary(wanted.min(total));
    if wanted > 0 && start == total {
        return Err(format!(
            "{url} has {total} bytes of text; start {wanted} is behind its end"
        ));
    }
    let shown = part(&page.text, start, limits::FETCH_TEXT);
    let mut text = match &page.title {
        Some(title) if start == 0 => format!("Title: {title}\n\n{shown}"),
        _ => shown.to_owned(),
    };
    let end = start + shown.len();
    if end < total {
        text.push_str(&format!(
            "\n\n[Bytes {start} to {end} of {total}. Use start={end} to continue]"
        ));
    } else if is_cut {
        text.push_str(&format!(
            "\n\n[The page is longer than {} bytes; the rest was not read]",
            limits::FETCH_BODY
        ));
    }
    if text.trim().is_empty() {
        text = "(no text)".to_owned();
    }
    Ok(text)
}

/// At most `size` bytes from `start` on, whole characters and if possible whole lines.
fn part(text: &str, start: usize, size: usize) -> &str {
    let rest = text.get(text.ceil_char_boundary(start)..).unwrap_or_default();
    if rest.len() <= size {
        return rest;
    }
    let head = rest.get(..rest.floor_char_boundary(size)).unwrap_or_default();
    match head.rfind('\n') {
        Some(end) if end > size / 2 => head.get(..=end).unwrap_or(head),
        _ => head,
    }
}

#[cfg(test)]
mod tests;
