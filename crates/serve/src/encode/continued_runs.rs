//! Ends of runs for clients of today's oh-my-pi, which take the first `agent_end` of a prompt for its only one and then send the next
//! prompt (dialects.md 5, row 40). So an end is kept until it is clear that the agent does nothing more by itself: no retry, no
//! reminder, no compaction.

use wire::{Dialect, Event};

/// The end of a run that may go on.
#[derive(Debug, Default)]
pub(super) struct ContinuedRun(Option<Event>);

impl ContinuedRun {
    /// Keeps an event if it is such an end. Returns true if it must not be written now.
    pub(super) fn keep(&mut self, event: &Event, dialect: Dialect) -> bool {
        let keeps = matches!(event, Event::AgentEnd { .. }) && dialect.has_one_end();
        if keeps {
            self.0 = Some(event.clone());
        }
        keeps
    }

    /// The kept end, which comes before this event: the agent has settled, or messages that were queued meanwhile begin another run.
    pub(super) fn end_before(&mut self, event: &Event) -> Option<Event> {
        match event {
            // The end of the next run is the end of the prompt, if the agent continues by itself.
            Event::AgentStart => self.0.take().filter(|end| !continues(end)),
            Event::AgentSettled { .. } => self.0.take(),
            _ => None,
        }
    }
}

fn continues(end: &Event) -> bool {
    matches!(end, Event::AgentEnd { will_retry: true, .. })
}
