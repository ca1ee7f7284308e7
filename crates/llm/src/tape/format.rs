//! The lines of a tape. Each is one JSON object; the lines of several exchanges may stand between each other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// One line. Times are milliseconds after the exchange's request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line {
    /// A program began to record; numbers of exchanges begin anew.
    Tape {
        /// See [`VERSION`].
        version: u32,
        /// Who wrote it.
        program: String,
    },
    /// A request was sent.
    Request(Request),
    /// The head of the response came.
    Response {
        exchange: u64,
        at: u64,
        status: u16,
        headers: Vec<(String, String)>,
    },
    /// Bytes of the body came, after decompression.
    Chunk {
        exchange: u64,
        at: u64,
        #[serde(flatten)]
        data: Data,
    },
    /// Nothing more follows of this exchange.
    End {
        exchange: u64,
        at: u64,
        how: How,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// See [`Line::Request`]. The body comes last.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) exchange: u64,
    /// Milliseconds since the recording began.
    pub(super) at: u64,
    pub(super) api: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    /// The JSON as it was sent, but for secrets.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(super) body: Value,
}

/// Bytes: as text where they are UTF-8, else as base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Data {
    Text(String),
    Base64(String),
}

impl Data {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(
            |error| Self::Base64(STANDARD.encode(error.as_bytes())),
            Self::Text,
        )
    }

    /// Decodes the bytes. None if the text is no base64.
    pub(super) fn bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.into_bytes()),
            Self::Base64(text) => STANDARD.decode(text).ok(),
        }
    }
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    /// The body came to its end.
    Complete,
    /// The connection failed, before or in the response.
    Failed,
    /// The reader stopped: the answer was complete, the user aborted, or a limit was reached.
    Left,
}

/// Returns the last part of an address's path: the operation, without the provider's address.
pub(super) fn what(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}
