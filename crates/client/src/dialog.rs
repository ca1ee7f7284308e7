//! Questions that an extension asks the user (dialects.md 10.4). Nothing waits for ever: without a callback they are
//! cancelled at once.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

/// A question.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Dialog {
    /// Its id.
    pub id: String,
    /// `select`, `confirm`, `input` or `editor`.
    pub method: String,
    /// Heading.
    #[serde(default)]
    pub title: String,
    /// Text of `confirm`.
    #[serde(default)]
    pub message: String,
    /// What `select` offers.
    #[serde(default)]
    pub options: Vec<Value>,
    /// Hint of `input`.
    pub placeholder: Option<String>,
    /// What `editor` begins with.
    pub prefill: Option<String>,
    /// Milliseconds after which the agent no longer waits.
    pub timeout: Option<u64>,
    /// Handle of the session that asks; none for the first.
    pub session: Option<String>,
}

/// What the user said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The chosen option, or the text.
    Value(String),
    /// Of `confirm`.
    Confirmed(bool),
    /// Denies the call of a permission dialog. The model receives the reason.
    Denied(String),
    /// Nothing.
    Cancelled,
}

impl Answer {
    /// Members of the response line.
    pub(crate) fn members(self) -> Value {
        match self {
            Self::Value(text) => json!({ "value": text }),
            Self::Confirmed(yes) => json!({ "confirmed": yes }),
            // `cancelled` denies in every language of the options.
            Self::Denied(reason) => json!({ "cancelled": true, "reason": reason }),
            Self::Cancelled => json!({ "cancelled": true }),
        }
    }
}

/// Gives answers.
#[derive(Clone)]
pub(crate) struct Handler(pub(crate) Arc<dyn Fn(Dialog) -> BoxFuture<'static, Answer> + Send + Sync>);

impl fmt::Debug for Handler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Handler")
    }
}

/// Returns true if this method needs an answer. The others only show information.
pub(crate) fn asks(method: &str) -> bool {
    matches!(method, "select" | "confirm" | "input" | "editor")
}
