//! Transport faults a reply can carry: where the connection is cut or stalled, how fast bytes leave, how the
//! stream ends. What the stream says is in `item`; carrying these out is `body`'s work.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::secs;

/// Cut or stall the connection once `at` bytes of the response body have been sent.
///
/// Bytes are counted as the client sees them after removing the transfer encoding (chunk framing) and before
/// removing a content encoding (gzip). With `at: 0` the head is sent and nothing of the body. A reply whose body
/// is shorter than `at` is served whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Body bytes to send first.
    pub at: u64,
    /// What happens then.
    pub how: CutHow,
}

/// The ways a connection can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutHow {
    /// An orderly end of the connection (FIN).
    Close,
    /// An abortive end (RST, "connection reset by peer").
    Reset,
    /// Nothing more is sent and the connection stays open until the client or the server goes away.
    Stall,
}

/// Sends the body slowly: `bytes` at a time, with a pause of `every` after each piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Size of a piece, bytes; at least 1.
    pub bytes: usize,
    /// The pause after a piece, seconds in JSON.
    #[serde(with = "secs")]
    pub every: Duration,
}

/// What happens before the response head is sent. Several can be given; they happen in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Before {
    /// Wait until this gate is released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Wait this long, seconds in JSON.
    #[serde(with = "secs::opt", skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Fail without any response byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<CutHow>,
}

/// How the stream's own end marks are sent (`message_stop`, `[DONE]`, `response.completed`, `finishReason`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// As the provider does it.
    #[default]
    Normal,
    /// Everything but the last mark; the HTTP body itself ends properly.
    Missing,
    /// The last mark twice.
    Double,
}

/// How the response states the length of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// `Transfer-Encoding: chunked`, one chunk for each write: a cut is visible as an incomplete body.
    #[default]
    Chunked,
    /// The body ends with the connection: an orderly cut looks like a normal end of the body.
    Eof,
}
