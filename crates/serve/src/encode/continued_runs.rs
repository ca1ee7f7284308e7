//! Ends of runs that the agent continues by itself: a retry, a reminder. Clients of today's oh-my-pi take the first `agent_end` of a
//! prompt for its only one (dialects.md 5, row 40), so it is kept until it is clear that no further run follows.

use wire::{Dialect, Event};

/// The end of a run that the agent wants to continue.
#[derive(Debug, Default)]
pub(super) struct ContinuedRun(Option<Event>);

impl ContinuedRun {
    /// Keeps an event if it is such an end. Returns true if it must not be written now.
    pub(super) fn keep(&mut self, event: &Event, dialect: Dialect) -> bool {
        let keeps = matches!(event, Event::AgentEnd { will_retry: true, .. }) && dialect.has_one_end();
        if keeps {
            self.0 = Some(event.clone());
        }
        keeps
    }

    /// The kept end, which comes before this event: the agent has settled without another run.
    pub(super) fn end_before(&mut self, event: &Event) -> Option<Event> {
        match event {
            // Another run follows, whose end is the end of the prompt.
            Event::AgentStart => {
                self.0 = None;
                None
            }
            Event::AgentSettled { .. } => self.0.take(),
            _ => None,
        }
    }
}
