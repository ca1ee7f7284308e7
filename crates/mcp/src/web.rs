//! The HTTP client of a server. It bounds the bytes and the JSON values of answers, and the pace of new streams of events: parsed values take many times the memory of their
//! text, and the client of `rmcp` counts bytes only. The statuses mean what they mean there.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::SseStream;

use crate::limits;
use crate::paced::Pace;
use crate::pipe::parse;
use crate::post_limits::PostLimits;
use crate::text::line;

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client whose answers and streams are bounded. Clones share the pace and the connection.
#[derive(Debug, Clone)]
pub(crate) struct Bounded {
    client: Client,
    pace: Pace,
    posts: PostLimits,
}

impl Bounded {
    pub(crate) fn new(client: Client, posts: PostLimits) -> Self {
        Self {
            client,
            pace: Pace::default(),
            posts,
        }
    }
}

impl StreamableHttpClient for Bounded {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, limits::LINE)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let accepted = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        let mut request = self.client.post(uri.as_ref()).header(ACCEPT, accepted);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            if name == ACCEPT || is(&name, HEADER_SESSION_ID) || is(&name, HEADER_LAST_EVENT_ID) {
                return Err(Failure::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(session) = &session {
            request = request.header(HEADER_SESSION_ID, session.as_ref());
        }
        let sent = Sent {
            message: &message,
            in_session: session.is_some(),
            most,
        };
        let exchange = async { sent.read(request.json(&message).send().await?).await };
        self.posts.post(&message, exchange).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failure> {
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, limits::LINE)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxedSseResponse, Failure> {
        self.pace.wait().await;
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last, token, headers, most)
            .await?;
        Ok(few_values(events))
    }
}

/// Headers of `rmcp` are not written in lower case.
fn is(name: &HeaderName, reserved: &str) -> bool {
    name.as_str().eq_ignore_ascii_case(reserved)
}

/// A message that was posted.
struct Sent<'a> {
    message: &'a ClientJsonRpcMessage,
    in_session: bool,
    /// Longest event of a stream, in bytes.
    most: usize,
}

impl Sent<'_> {
    async fn read(&self, response: Response) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        if let Some(challenge) = challenge(&response)? {
            return Err(challenge);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && self.in_session {
            return Err(Failure::SessionExpired);
        }
        if !status.is_success() {
            return self.refused(response).await;
        }
        let needs_reply = matches!(self.message, JsonRpcMessage::Request(_));
        if response.content_length() == Some(0) && !needs_reply {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = response.headers().get(HEADER_SESSION_ID);
        let session = session.and_then(|id| id.to_str().ok()).map(str::to_owned);
        match content_type(&response) {
            Some(kind) if kind.starts_with(EVENT_STREAM_MIME_TYPE) => {
                let events = few_values(events(response, self.most));
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            Some(kind) if kind.starts_with(JSON_MIME_TYPE) => {
                let bytes = body(response, limits::LINE).await?;
                if wire::values::has_too_many(&bytes) {
                    return Err(unexpected("the answer has too many JSON values".to_owned()));
                }
                match parse(bytes).await {
                    Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                    // Nothing waits for it.
                    Err(_) if !needs_reply => Ok(StreamableHttpPostResponse::Accepted),
                    Err(start) => Err(unexpected(format!("the answer is no message: {start}"))),
                }
            }
            kind => Err(Failure::UnexpectedContentType(kind)),
        }
    }

    /// Reads an answer whose status is none of success. It may have a JSON-RPC error.
    async fn refused(&self, response: Response) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let is_json = content_type(&response).is_some_and(|kind| kind.starts_with(JSON_MIME_TYPE));
        let is_about_login = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let by_status = failed(&response);
        if (status == StatusCode::TOO_MANY_REQUESTS || !is_json)
            && let Some(error) = by_status
        {
            return Err(error.into());
        }
        let text = match body(response, limits::REFUSAL).await {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error @ Failure::ResponseBodyTooLarge { .. }) => {
                return Err(by_status.map_or(error, Failure::from));
            }
            Err(_) => "the rest of the answer could not be read".to_owned(),
        };
        let told = match serde_json::from_str::<ServerJsonRpcMessage>(&text) {
            Ok(JsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        // What stands before an older server may refuse the question for its revision without an id, or without JSON.
        if let JsonRpcMessage::Request(request) = self.message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
            && !self.in_session
            && status.is_client_error()
            && !is_about_login
        {
            let error = told.map_or_else(
                || ErrorData::invalid_request(format!("HTTP {status}: {}", shown(&text)), None),
                |told| told.error,
            );
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        match (told, by_status) {
            (Some(error), _) if is_json && !is_about_login => Ok(StreamableHttpPostResponse::Json(
                JsonRpcMessage::Error(error),
                None,
            )),
            (_, Some(error)) => Err(error.into()),
            (_, None) => Err(unexpected(format!("HTTP {status}: {}", shown(&text)))),
        }
    }
}

fn shown(text: &str) -> String {
    line(text, limits::ERROR)
}

fn unexpected(text: String) -> Failure {
    Failure::UnexpectedServerResponse(Cow::Owned(text))
}

fn content_type(response: &Response) -> Option<String> {
    let kind = response.headers().get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(kind.as_bytes()).into_owned())
}

/// The demand for a login, or for a wider one.
///
/// # Errors
/// A header that is no text.
fn challenge(response: &Response) -> Result<Option<Failure>, Failure> {
    let status = response.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(None);
    }
    let Some(header) = response.headers().get(WWW_AUTHENTICATE) else {
        return Ok(None);
    };
    let header = header
        .to_str()
        .map_err(|_| unexpected("the header www-authenticate is no text".to_owned()))?;
    Ok(Some(if status == StatusCode::UNAUTHORIZED {
        Failure::AuthRequired(AuthRequiredError::new(header.to_owned()))
    } else {
        Failure::InsufficientScope(InsufficientScopeError::new(header.to_owned(), scope(header)))
    }))
}

/// The parameter `scope` of a challenge, with or without quotes.
fn scope(header: &str) -> Option<String> {
    let at = header.to_ascii_lowercase().find("scope=")? + "scope=".len();
    let value = header.get(at..)?;
    let found = match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => value.split([',', ';', ' ']).next()?,
    };
    (!found.is_empty()).then(|| found.to_owned())
}

/// A failure of which only the status and the delay count.
fn failed(response: &Response) -> Option<HttpStatusError> {
    let status = response.status();
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let delay = response.headers().get(RETRY_AFTER);
    let delay = delay.and_then(|delay| delay.to_str().ok()).map(str::to_owned);
    Some(HttpStatusError::new(status.as_u16(), delay))
}

/// Reads a body of at most so many bytes.
async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, Failure> {
    let too_large = Failure::ResponseBodyTooLarge { max_size: most };
    if response
        .content_length()
        .is_some_and(|length| length > most as u64)
    {
        return Err(too_large);
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if piece.len() > most - body.len() {
            return Err(too_large);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The events of a response, each of at most so many bytes.
fn events(response: Response, most: usize) -> BoxedSseResponse {
    let mut size = EventSize::default();
    let pieces = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        if size.with(&piece) > most {
            return Err(io::Error::other("an event is too long"));
        }
        Ok(piece)
    });
    SseStream::from_bytes_stream(until_failure(pieces)).boxed()
}

/// The same events up to the first with too many values.
fn few_values(events: BoxedSseResponse) -> BoxedSseResponse {
    let checked = events.map(|event| match event {
        Ok(event) if event.data.as_deref().is_some_and(has_too_many) => {
            Err(SseError::Body("an event has too many JSON values".into()))
        }
        event => event,
    });
    until_failure(checked).boxed()
}

fn has_too_many(data: &str) -> bool {
    wire::values::has_too_many(data.as_bytes())
}

/// A stream that ends with its first error: what follows is not read.
fn until_failure<T, E>(stream: impl Stream<Item = Result<T, E>>) -> impl Stream<Item = Result<T, E>> {
    stream.scan(false, |has_failed, item| {
        let next = (!*has_failed).then_some(item);
        *has_failed |= matches!(next, Some(Err(_)));
        std::future::ready(next)
    })
}

/// Counts the bytes that a reader of events has to keep.
#[derive(Debug, Default)]
struct EventSize {
    /// Complete lines of the event, without comments.
    lines: usize,
    line: usize,
    is_comment: bool,
    after_cr: bool,
}

impl EventSize {
    /// The largest size that the event had while these bytes came.
    fn with(&mut self, bytes: &[u8]) -> usize {
        let mut largest = 0;
        for &byte in bytes {
            match byte {
                // The second half of a line end.
                b'\n' if self.after_cr => {}
                b'\r' | b'\n' => self.end_line(),
                _ => {
                    self.is_comment = byte == b':' && self.line == 0 || self.is_comment && self.line > 0;
                    self.line += 1;
                    largest = largest.max(self.lines + self.line);
                }
            }
            self.after_cr = byte == b'\r';
        }
        largest
    }

    fn end_line(&mut self) {
        match self.line {
            // An empty line ends the event.
            0 => self.lines = 0,
            _ if self.is_comment => {}
            length => self.lines += length + 1,
        }
        self.line = 0;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::probe::Probe;

    /// Posts `tools/list` to a server that answers with this.
    async fn posted(head: &str, body: &str) -> Result<StreamableHttpPostResponse, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/mcp", listener.local_addr().unwrap());
        let answer = format!(
            "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let serving = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 4096];
            let _request = socket.read(&mut asked).await.unwrap();
            // A client that refuses the answer does not read all of it.
            let _written = socket.write_all(answer.as_bytes()).await;
        });
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .build();
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let message = serde_json::from_value(message).unwrap();
        let client = Bounded::new(client.unwrap(), PostLimits::new(&Probe::default()));
        let answered = client.post_message(uri.into(), message, None, None, Headers::new());
        let answered = answered.await;
        serving.await.unwrap();
        answered
    }

    #[tokio::test]
    async fn answers_are_read_within_bounds() {
        let json = "200 OK\r\ncontent-type: application/json";
        let body = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
        let answer = posted(json, body).await;
        assert!(
            matches!(answer, Ok(StreamableHttpPostResponse::Json(..))),
            "{answer:?}"
        );
        let many = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"x":[{}1]}}}}"#,
            "1,".repeat(600_000)
        );
        let error = posted(json, &many).await.unwrap_err().to_string();
        assert!(error.contains("too many JSON values"), "{error}");
        let long = "x".repeat(limits::LINE + 1);
        let answer = posted(json, &long).await;
        assert!(
            matches!(answer, Err(Failure::ResponseBodyTooLarge { .. })),
            "{answer:?}"
        );
        let error = posted(json, "no JSON").await.unwrap_err().to_string();
        assert!(error.contains("is no message"), "{error}");
    }

    #[tokio::test]
    async fn statuses_mean_what_they_mean_in_rmcp() {
        let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not so"}}"#;
        let answer = posted("400 Bad Request\r\ncontent-type: application/json", refused).await;
        assert!(
            matches!(
                answer,
                Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(_), None))
            ),
            "{answer:?}"
        );
        let answer = posted("401 Unauthorized\r\nwww-authenticate: Bearer", "").await;
        assert!(matches!(answer, Err(Failure::AuthRequired(_))), "{answer:?}");
        let answer = posted("403 Forbidden\r\nwww-authenticate: Bearer scope=\"a b\"", "").await;
        assert!(
            matches!(&answer, Err(Failure::InsufficientScope(error)) if error.get_required_scope() == Some("a b")),
            "{answer:?}"
        );
        let answer = posted("503 Service Unavailable\r\nretry-after: 7", "later").await;
        assert!(
            matches!(&answer, Err(Failure::HttpStatus(error)) if error.retry_after.as_deref() == Some("7")),
            "{answer:?}"
        );
        let error = posted("404 Not Found", "nothing here")
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("404") && error.contains("nothing here"), "{error}");
        let answer = posted("202 Accepted", "").await;
        assert!(
            matches!(answer, Ok(StreamableHttpPostResponse::Accepted)),
            "{answer:?}"
        );
    }

    #[test]
    fn size_of_event_grows_to_its_empty_line() {
        let largest = |pieces: &[&str]| {
            let mut size = EventSize::default();
            pieces.iter().map(|piece| size.with(piece.as_bytes())).max()
        };
        assert_eq!(largest(&["data: ab\n\ndata: c\n\n"]), Some(8));
        assert_eq!(largest(&["data: ab\n", "data: c\n\n"]), Some(16));
        assert_eq!(largest(&["data: ab\r", "\ndata: c\r\n\r\n"]), Some(16));
        assert_eq!(largest(&["data: ab\r\rdata: c\r\r"]), Some(8));
        assert_eq!(largest(&[": ping\n", ": ping\n", ": ping\n"]), Some(6));
        assert_eq!(largest(&["data", ": ab\n", ":\n", "data: c"]), Some(16));
    }

    #[test]
    fn scope_is_read_with_and_without_quotes() {
        for (header, expected) in [
            (r#"Bearer error="insufficient_scope", scope="a b""#, Some("a b")),
            ("Bearer Scope=a:b, error=x", Some("a:b")),
            ("Bearer scope=", None),
            (r#"Bearer scope="a"#, None),
            ("Bearer", None),
        ] {
            assert_eq!(scope(header).as_deref(), expected, "{header}");
        }
    }

    #[tokio::test]
    async fn stream_ends_with_event_of_too_many_values() {
        let event = |data: String| {
            Ok(sse_stream::Sse {
                event: None,
                data: Some(data),
                id: None,
                retry: None,
            })
        };
        let many = format!("[{}1]", "1,".repeat(600_000));
        let given = [event("[1]".to_owned()), event(many), event("[2]".to_owned())];
        let events: Vec<_> = few_values(futures_util::stream::iter(given).boxed())
            .collect()
            .await;
        let [Ok(first), Err(error)] = &events[..] else {
            panic!("{} events", events.len());
        };
        assert_eq!(first.data.as_deref(), Some("[1]"));
        assert!(error.to_string().contains("too many JSON values"), "{error}");
    }
}
