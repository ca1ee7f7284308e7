//! Events as they come, and what a prompt led to.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::timeout;
use wire::reply::{Accepted, Disposition};
use wire::{AssistantBlock, ImageContent, Message, StopReason};

use crate::error::{Error, Result};
use crate::event::Event;
use crate::session::Session;

/// What to say.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageContent>,
    streaming_behavior: Option<&'static str>,
}

impl Prompt {
    /// A text.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// With an image.
    #[must_use]
    pub fn image(mut self, image: ImageContent) -> Self {
        self.images.push(image);
        self
    }

    /// When a run is under way: the model gets it after the current turn.
    #[must_use]
    pub fn steer(mut self) -> Self {
        self.streaming_behavior = Some("steer");
        self
    }

    /// When a run is under way: the model gets it when it would stop.
    #[must_use]
    pub fn follow_up(mut self) -> Self {
        self.streaming_behavior = Some("followUp");
        self
    }
}

impl From<&str> for Prompt {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for Prompt {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// Events of a session.
#[derive(Debug)]
pub struct Events {
    receiver: mpsc::Receiver<Event>,
    end: Arc<Mutex<Option<Error>>>,
    idle: Duration,
}

impl Events {
    pub(crate) fn new(
        receiver: mpsc::Receiver<Event>,
        end: Arc<Mutex<Option<Error>>>,
        idle: Duration,
    ) -> Self {
        Self { receiver, end, idle }
    }

    /// The longest silence.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// The next event; none when the session was closed. What came before an error is given out first.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Lagged`], and [`Error::Exited`] or [`Error::Protocol`] when the agent is gone.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        let event = timeout(self.idle, self.receiver.recv())
            .await
            .map_err(|_| Error::timed_out("no event", self.idle))?;
        if event.is_some() {
            return Ok(event);
        }
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).clone();
        end.map_or(Ok(None), Err)
    }
}

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

    fn see(&mut self, event: &Event) {
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

/// What follows a prompt, until nothing more happens by itself. Dropping it stops listening; the run goes on.
#[derive(Debug)]
pub struct Run {
    session: Session,
    events: Events,
    disposition: Disposition,
    outcome: Outcome,
    done: bool,
}

impl Run {
    pub(crate) fn new(session: Session, events: Events, accepted: Accepted) -> Self {
        Self {
            session,
            events,
            disposition: accepted.disposition,
            outcome: Outcome::default(),
            done: accepted.disposition == Disposition::Handled,
        }
    }

    /// How the agent took the prompt: as a new run, as part of the current run, or without a model.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        self.disposition
    }

    /// With another limit for the longest silence.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.events = self.events.idle(limit);
        self
    }

    /// The next event; none at the end.
    ///
    /// # Errors
    /// Those of [`Events::next`].
    pub async fn next(&mut self) -> Result<Option<Event>> {
        if self.done {
            return Ok(None);
        }
        let event = self.events.next().await?;
        match &event {
            Some(event) => {
                self.outcome.see(event);
                self.done = matches!(event, Event::AgentSettled { .. });
            }
            None => self.done = true,
        }
        Ok(event)
    }

    /// The next piece of the answer's text; none at the end.
    ///
    /// # Errors
    /// Those of [`Events::next`].
    pub async fn next_text(&mut self) -> Result<Option<String>> {
        while let Some(event) = self.next().await? {
            if let Some(text) = event.text_delta() {
                return Ok(Some(text.to_owned()));
            }
        }
        Ok(None)
    }

    /// Waits for the end. That the model failed is no error here; see [`Outcome::checked`].
    ///
    /// # Errors
    /// Those of [`Events::next`].
    pub async fn finish(&mut self) -> Result<Outcome> {
        while self.next().await?.is_some() {}
        Ok(self.outcome.clone())
    }

    /// Ends the run.
    ///
    /// # Errors
    /// Those of [`Session::call`].
    pub async fn abort(&self) -> Result<()> {
        self.session.abort().await
    }
}
