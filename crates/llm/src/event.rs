//! What a model tells while it answers. How providers say it lives in the families.

use std::time::Duration;

use wire::{AssistantMessage, StreamEvent, Usage};

/// One step of an answer. A stream ends with exactly one `Done` or `Error`.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The provider accepted the request; the message is still empty. Missing when the request failed.
    Start(Box<AssistantMessage>),
    /// The answer grew.
    Stream(StreamEvent),
    /// Token counts so far.
    Usage(Usage),
    /// Something about how the answer came about that a person should know.
    Remark(String),
    /// The whole answer.
    Done(Box<AssistantMessage>),
    /// The answer failed or was aborted.
    Error {
        /// What arrived; `stop_reason` is error or aborted, `error_message` says why.
        message: Box<AssistantMessage>,
        /// How long the provider asks to wait before the next try.
        retry_after: Option<Duration>,
    },
}

impl ModelEvent {
    /// Returns true for the last event of a stream.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Error { .. })
    }
}
