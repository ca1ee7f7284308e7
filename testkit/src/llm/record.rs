//! What the server remembers of each request. Serving them is `conn`'s work.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::api::Api;

/// A request as it arrived.
#[derive(Debug)]
pub struct Request {
    /// Position among all requests of this server, counted from 0.
    pub n: u64,
    /// The protocol, if the path belongs to one.
    pub api: Option<Api>,
    /// HTTP method.
    pub method: String,
    /// Path with query string.
    pub path: String,
    /// Header names (lower case) and values, in order.
    pub headers: Vec<(String, String)>,
    /// The body; `{"$unparsed": text}` if it is not JSON, null if it is empty.
    pub body: Value,
    /// Size of the body in bytes.
    pub body_bytes: usize,
    /// The model asked for, from the body or the path; `mock` if there is none.
    pub model: String,
    /// How often the client library says it has tried before (`x-stainless-retry-count`).
    pub sdk_retry: u64,
    /// When the request was complete, counted from the start of the server.
    pub at: Duration,
    /// Number of the connection it came on, counted from 0.
    pub connection: u64,
}

impl Request {
    /// The value of a header; `name` in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// How the answer to a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Still being answered.
    Pending,
    /// Sent to the end.
    Completed,
    /// The client closed the connection first.
    ClientClosed,
    /// The connection failed as the script says.
    Dropped,
    /// The server was dropped first.
    Stopped,
    /// Answered with this status instead of a stream.
    Http(u16),
    /// The script had no reply left.
    Unscripted,
    /// No protocol is spoken at this path.
    UnknownPath,
}

impl fmt::Display for Outcome {
    /// The words of the conformance kit's request log, for example `client_closed` or `http_429`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("pending"),
            Self::Completed => f.write_str("completed"),
            Self::ClientClosed => f.write_str("client_closed"),
            Self::Dropped => f.write_str("dropped"),
            Self::Stopped => f.write_str("stopped"),
            Self::Http(n) => write!(f, "http_{n}"),
            Self::Unscripted => f.write_str("unscripted"),
            Self::UnknownPath => f.write_str("unknown_path"),
        }
    }
}

/// A request and how it went. Gives direct access to the [`Request`]'s fields.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The request.
    pub request: Arc<Request>,
    /// How it ended.
    pub outcome: Outcome,
    /// Body bytes sent, before transfer encoding.
    pub sent: u64,
    /// When the answer ended, counted from the start of the server.
    pub ended: Option<Duration>,
}

impl Deref for Recorded {
    type Target = Request;

    fn deref(&self) -> &Request {
        &self.request
    }
}
