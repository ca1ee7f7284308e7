//! HTTP: requests out, response heads and error texts in. `stream` reads bodies of answers; the families make the
//! requests.

mod connect;
mod fault;
mod get;
mod line;
mod send;

pub use connect::{ClientConfig, Connector, ProxyConfig};
pub use get::fetch;

pub(crate) use fault::broken_body;
pub(crate) use line::Line;
pub(crate) use send::{Failure, Patience, send};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::LlmError;

/// A POST of JSON, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    /// Where to.
    pub(crate) url: String,
    /// All headers but those of the transport. Values are marked sensitive, so `Debug` hides them.
    pub(crate) headers: HeaderMap,
    /// The JSON.
    pub(crate) body: Vec<u8>,
}

/// Collects headers; a later one replaces an earlier one of the same name.
#[derive(Debug, Default)]
pub(crate) struct Headers(HeaderMap);

impl Headers {
    /// The headers that every JSON request has.
    pub(crate) fn json() -> Self {
        let mut map = HeaderMap::new();
        map.insert(
            reqwest::header::ACCEPT,
            HeaderValue::from_static("application/json"),
        );
        map.insert(
            reqwest::header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        Self(map)
    }

    /// Sets a header.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), LlmError> {
        let bad = || LlmError::Header(name.to_owned());
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| bad())?;
        value.set_sensitive(true);
        self.0.insert(key, value);
        Ok(())
    }

    /// Sets the headers of a model and a call, which win over all others, and gives the whole.
    pub(crate) fn finish(mut self, overrides: &[(String, String)]) -> Result<HeaderMap, LlmError> {
        for (name, value) in overrides {
            self.set(name, value)?;
        }
        Ok(self.0)
    }
}

/// `base` without trailing slashes, and `path`; parameters of the base stay parameters, in front of those of the path.
pub(crate) fn join_url(base: &str, path: &str) -> String {
    let (base, parameters) = base.split_once('?').unwrap_or((base, ""));
    let url = format!("{}/{path}", base.trim_end_matches('/'));
    if parameters.is_empty() {
        return url;
    }
    match url.split_once('?') {
        Some((url, own)) => format!("{url}?{parameters}&{own}"),
        None => format!("{url}?{parameters}"),
    }
}

#[cfg(test)]
mod tests {
    use super::join_url;

    #[test]
    fn url_query_stays_behind_joined_path() {
        assert_eq!(join_url("http://h/v1/", "messages"), "http://h/v1/messages");
        assert_eq!(
            join_url("http://h/v1?key=k", "messages"),
            "http://h/v1/messages?key=k"
        );
        assert_eq!(
            join_url("http://h/?key=k", "m:go?alt=sse"),
            "http://h/m:go?key=k&alt=sse"
        );
    }
}
