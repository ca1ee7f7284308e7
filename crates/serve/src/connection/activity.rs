//! Activity of a session as its events show it, for the heartbeat. This module does not know the session.

use std::time::Duration;

use wire::Event;

/// Work in progress, tracked from events.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// A run began. It ends with `agent_settled`.
    busy: bool,
    streaming: bool,
    compacting: bool,
    retrying: bool,
    /// Ids of the tool calls that run.
    tools: Vec<String>,
}

impl Activity {
    /// Follows an event.
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::AgentStart => {
                self.busy = true;
                self.streaming = true;
                self.retrying = false;
            }
            // Busy until `agent_settled`: a retry or a compaction may follow.
            Event::AgentEnd { .. } => {
                self.streaming = false;
                // Calls that are left ended with the run.
                self.tools.clear();
            }
            // A compaction that a client asks for has no `agent_settled`.
            Event::CompactionStart { .. } => self.compacting = true,
            Event::CompactionEnd { .. } => self.compacting = false,
            Event::AutoRetryStart { .. } => self.retrying = true,
            Event::AutoRetryEnd { .. } => self.retrying = false,
            Event::ToolExecutionStart { tool_call_id, .. } => self.tools.push(tool_call_id.clone()),
            Event::ToolExecutionEnd { tool_call_id, .. } => self.tools.retain(|id| id != tool_call_id),
            Event::AgentSettled { .. } => *self = Self::default(),
            _ => {}
        }
    }

    /// Returns true while a run or a compaction is in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy || self.compacting
    }

    /// The sign of life after a silence.
    pub(crate) fn heartbeat(&self, silence: Duration) -> Event {
        Event::Heartbeat {
            is_streaming: self.streaming,
            is_compacting: self.compacting,
            is_retrying: self.retrying,
            running_tools: self.tools.clone(),
            silent_ms: u64::try_from(silence.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::event::CompactionReason;

    use super::*;

    #[test]
    fn runs_and_compactions_are_busy_until_their_end() {
        let mut activity = Activity::default();
        let reason = CompactionReason::Manual;
        activity.note(&Event::CompactionStart { reason });
        assert!(activity.is_busy());
        let end = Event::CompactionEnd {
            reason,
            result: None,
            aborted: true,
            will_retry: false,
            error_message: None,
        };
        activity.note(&end);
        assert!(!activity.is_busy(), "nothing follows a compaction at rest");
        activity.note(&Event::AgentStart);
        activity.note(&Event::CompactionStart { reason });
        activity.note(&end);
        assert!(activity.is_busy(), "the run goes on");
        activity.note(&Event::AgentSettled { aborted: false });
        assert!(!activity.is_busy());
    }
}
