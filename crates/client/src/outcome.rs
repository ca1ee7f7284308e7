//! How a run ended.

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

    /// Takes an event of the run into account.
    pub(crate) fn see(&mut self, event: &Event) {
        match event {
            Event::AgentSettled { aborted } => self.aborted = *aborted,
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
