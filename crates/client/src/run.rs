//! What a prompt led to: its run, event by event.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use wire::reply::{Accepted, Disposition};
use wire::{ImageContent, RunLimits};

use crate::error::Result;
use crate::event::Event;
use crate::events::Events;
use crate::outcome::Outcome;
use crate::session::Session;

/// What to say.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageContent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming_behavior: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<RunLimits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback_models: Option<Vec<String>>,
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

    /// With a JSON Schema of the result that the run must give; see [`Outcome::result`].
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// With limits of its run, in addition to those of the session.
    #[must_use]
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// With the models (`provider/id`) that take over when the model of its run fails for good.
    #[must_use]
    pub fn fallback_models(mut self, models: impl IntoIterator<Item = String>) -> Self {
        self.fallback_models = Some(models.into_iter().collect());
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
