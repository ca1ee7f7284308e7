//! Ends of runs for clients of today's oh-my-pi, which take the first `agent_end` of a prompt for its only one and then send the next
//! prompt (dialects.md 5, row 40). So an end is kept until it is clear that no further run follows by itself: no retry, no reminder,
//! none for a message that was queued during a compaction.

use serde_json::Value;
use wire::{Dialect, Event};

/// The end of a run that may go on.
#[derive(Debug, Default)]
pub(super) struct ContinuedRun {
    kept: Option<Event>,
    /// `result` and `resultError` of an end that was dropped. The next end has them, unless it has its own.
    dropped: (Option<Value>, Option<String>),
}

impl ContinuedRun {
    /// Keeps an event if it is such an end. Returns true if it must not be written now.
    pub(super) fn keep(&mut self, event: &Event, dialect: Dialect) -> bool {
        let keeps = matches!(event, Event::AgentEnd { .. }) && dialect.has_one_end();
        if keeps {
            let mut end = event.clone();
            if let Event::AgentEnd {
                result, result_error, ..
            } = &mut end
                && result.is_none()
                && result_error.is_none()
            {
                (*result, *result_error) = std::mem::take(&mut self.dropped);
            }
            self.kept = Some(end);
        }
        keeps
    }

    /// Returns the kept end if it comes before this event. Drops it if another run begins.
    pub(super) fn end_before(&mut self, event: &Event) -> Option<Event> {
        match event {
            // The end of the next run is the end of the prompt.
            Event::AgentStart => {
                if let Some(Event::AgentEnd {
                    result, result_error, ..
                }) = self.kept.take()
                {
                    self.dropped = (result, result_error);
                }
                None
            }
            Event::AgentSettled { .. } => self.take(),
            _ => None,
        }
    }

    /// Takes the kept end: no further run follows.
    pub(super) fn take(&mut self) -> Option<Event> {
        self.dropped = (None, None);
        self.kept.take()
    }
}
