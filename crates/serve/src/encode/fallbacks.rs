//! A fallback model for clients of today's oh-my-pi and xcsh (dialects.md 3): `retry_fallback_applied` when it takes over, and
//! `retry_fallback_succeeded` with its first answer. They ignore `model_fallback`.

use serde_json::json;
use wire::{Dialect, Event, StopReason};

use super::json as text;

/// The role of the model in oh-my-pi. Pinion has fallback models for the model of the conversation only.
const ROLE: &str = "default";

/// Follows the fallback model of a session.
#[derive(Debug, Default)]
pub(super) struct Fallbacks {
    /// The model that took over and has not answered yet, as `provider/id`.
    untried: Option<String>,
}

impl Fallbacks {
    /// Follows an event that the client gets, and appends the line that comes after it.
    pub(super) fn event(&mut self, event: &Event, dialect: Dialect, out: &mut Vec<u8>) {
        if let Event::ModelFallback { from, to, reason } = event
            && dialect.tells_fallbacks()
        {
            self.untried = Some(to.clone());
            let line = json!({
                "type": "retry_fallback_applied",
                "from": from,
                "to": to,
                "role": ROLE,
                "reason": reason,
            });
            text::line(out, &line);
        }
        self.follow(event, out);
    }

    /// Follows an event that the client need not get. A client that filters messages may still want to hear of the success.
    pub(super) fn follow(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::MessageEnd { message } => {
                let has_answered = message.as_assistant().is_some_and(|answer| {
                    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
                });
                if has_answered && let Some(model) = self.untried.take() {
                    let line = json!({"type": "retry_fallback_succeeded", "model": model, "role": ROLE});
                    text::line(out, &line);
                }
            }
            // The next run begins with the first model again.
            Event::AgentSettled { .. } | Event::SessionChanged { .. } => self.untried = None,
            _ => {}
        }
    }
}
