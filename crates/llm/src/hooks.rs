//! What a caller changes and sees of the HTTP below a request: its headers, the head of the response. The body is changed by
//! a [`crate::Rewrite`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Names and values of headers.
pub type HeaderList = Vec<(String, String)>;

/// What [`ChangeHeaders`] gives back.
pub type ChangedHeaders = Pin<Box<dyn Future<Output = HeaderList> + Send>>;

/// Changes the headers of a request before it is sent: once for each request, its retries go with the same ones.
#[derive(Clone)]
pub struct ChangeHeaders(Arc<dyn Fn(HeaderList) -> ChangedHeaders + Send + Sync>);

impl ChangeHeaders {
    /// Changes headers with a function.
    pub fn new(change: impl Fn(HeaderList) -> ChangedHeaders + Send + Sync + 'static) -> Self {
        Self(Arc::new(change))
    }

    /// The headers as they are to be sent. A header that cannot be sent is left out.
    pub(crate) async fn apply(&self, headers: &HeaderMap) -> HeaderMap {
        let mut changed = HeaderMap::new();
        for (name, value) in (self.0)(list(headers)).await {
            let name = HeaderName::from_bytes(name.as_bytes());
            let value = HeaderValue::from_bytes(value.as_bytes());
            if let (Ok(name), Ok(mut value)) = (name, value) {
                value.set_sensitive(true);
                changed.insert(name, value);
            }
        }
        changed
    }
}

impl fmt::Debug for ChangeHeaders {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ChangeHeaders")
    }
}

/// What [`OnResponse`] gives back: the body is read once it is done.
pub type HeardResponse = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Gets the head of each response before its body is read, also of failed attempts.
#[derive(Clone)]
pub struct OnResponse(Arc<dyn Fn(u16, HeaderList) -> HeardResponse + Send + Sync>);

impl OnResponse {
    /// Tells a function of status and headers.
    pub fn new(tell: impl Fn(u16, HeaderList) -> HeardResponse + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) async fn tell(&self, status: u16, headers: &HeaderMap) {
        (self.0)(status, list(headers)).await;
    }
}

impl fmt::Debug for OnResponse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OnResponse")
    }
}

/// Headers as text; several of one name become one.
fn list(headers: &HeaderMap) -> HeaderList {
    let mut list: HeaderList = Vec::new();
    for (name, value) in headers {
        let text = String::from_utf8_lossy(value.as_bytes());
        match list.iter_mut().find(|(known, _)| known == name.as_str()) {
            Some((_, known)) => {
                known.push_str(", ");
                known.push_str(&text);
            }
            None => list.push((name.as_str().to_owned(), text.into_owned())),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn header_hook_adds_removes_and_validates() {
        let change = ChangeHeaders::new(|mut list| {
            list.retain(|(name, _)| name != "x-gone");
            list.push(("X-New".to_owned(), "1".to_owned()));
            list.push(("bad name".to_owned(), "1".to_owned()));
            list.push(("x-bad".to_owned(), "a\nb".to_owned()));
            Box::pin(async move { list })
        });
        let mut headers = HeaderMap::new();
        headers.insert("x-gone", HeaderValue::from_static("a"));
        headers.insert("x-kept", HeaderValue::from_static("b"));
        let changed = change.apply(&headers).await;
        let names: Vec<_> = changed.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-kept", "x-new"]);
    }

    #[test]
    fn repeated_headers_are_joined() {
        let mut headers = HeaderMap::new();
        headers.append("warning", HeaderValue::from_static("a"));
        headers.append("warning", HeaderValue::from_static("b"));
        assert_eq!(list(&headers), [("warning".to_owned(), "a, b".to_owned())]);
    }
}
