//! How a run ended.

use serde::de::DeserializeOwned;
use serde_json::Value;
use wire::{AssistantBlock, Message, StopReason};

use crate::error::{Error, Result};
use crate::event::Event;

/// How a run ended.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Text of the last answer.
    pub text: String,
    /// Messages that came into being, in order.
    pub messages: Vec<Message>,
    /// Why the last answer ended; none when there was none.
    pub stop_reason: Option<StopReason>,
    /// The provider's words for a failure.
    pub error: Option<String>,
    /// True if the run was aborted.
    pub aborted: bool,
    /// The value that fits the schema of the prompt, if it had one.
    pub result: Option<Value>,
    /// Why there is no result although the prompt had a schema.
    pub result_error: Option<String>,
}

impl Outcome {
    /// Itself, when the last answer is complete.
    ///
    /// # Errors
    /// [`Error::Failed`] when it failed or was aborted.
    pub fn checked(self) -> Result<Self> {
        if self.error.is_some() || self.aborted {
            Err(Error::Failed(Box::new(self)))
        } else {
            Ok(self)
        }
    }

    /// The result that the prompt's schema describes.
    ///
    /// # Errors
    /// [`Error::Failed`] if the run gave none, [`Error::Protocol`] if the schema allows what `T` does not.
    pub fn into_result<T: DeserializeOwned>(mut self) -> Result<T> {
        match self.result.take() {
            Some(result) => serde_json::from_value(result)
                .map_err(|error| Error::Protocol(format!("the result: {error}"))),
            None => Err(Error::Failed(Box::new(self))),
        }
    }

    /// Why it failed.
    pub(crate) fn why(&self) -> &str {
        let reason = self.error.as_deref().or(self.result_error.as_deref());
        let aborted = if self.aborted {
            "the run was aborted"
        } else {
            "the run gave no result"
        };
        reason.unwrap_or(aborted)
    }

    /// Takes an event of the run into account.
    pub(crate) fn see(&mut self, event: &Event) {
        match event {
            Event::AgentSettled { aborted } => self.aborted = *aborted,
            Event::AgentEnd {
                will_retry: false,
                result,
                result_error,
                ..
            } => {
                if result.is_some() {
                    self.result.clone_from(result);
                }
                self.result_error.clone_from(result_error);
            }
            Event::MessageEnd { message } => {
                if let Message::Assistant(answer) = message {
                    let text = |block: &AssistantBlock| match block {
                        AssistantBlock::Text(text) => text.text.clone(),
                        _ => String::new(),
                    };
                    self.text = answer.content.iter().map(text).collect();
                    self.stop_reason = Some(answer.stop_reason);
                    self.aborted = answer.stop_reason == StopReason::Aborted;
                    let failed = answer.stop_reason == StopReason::Error;
                    let words = || {
                        answer
                            .error_message
                            .clone()
                            .unwrap_or_else(|| "the answer failed".to_owned())
                    };
                    self.error = failed.then(words);
                }
                self.messages.push(message.clone());
            }
            _ => {}
        }
    }
}
