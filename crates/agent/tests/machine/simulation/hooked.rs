//! What must hold for hooks and for calls that tools make: every question is asked once and answered or withdrawn once, every
//! request for a call gets one answer, and nothing of them is left when a turn or a session is over.

use std::collections::{BTreeMap, BTreeSet};

use pinion_agent::{Effect, HookPoint, is_nested};
use wire::Event;

use super::check::{Checked, must};

#[derive(Debug, Default)]
pub(crate) struct Hooked {
    /// Questions that are out.
    open: BTreeMap<u64, HookPoint>,
    /// Requests for calls that have no answer.
    requests: BTreeSet<u64>,
    /// Calls of tools that have begun and not ended, by id.
    begun: BTreeSet<String>,
}

impl Hooked {
    /// A question was asked.
    pub(crate) fn ask(&mut self, ticket: u64, point: &HookPoint) -> Checked {
        let is_new = self.open.insert(ticket, point.clone()).is_none();
        must(is_new, "a ticket was used twice")
    }

    /// A question was answered or withdrawn.
    pub(crate) fn end(&mut self, ticket: u64) -> Option<HookPoint> {
        self.open.remove(&ticket)
    }

    pub(crate) fn request(&mut self, request: u64) {
        self.requests.insert(request);
    }

    pub(crate) fn withdraw(&mut self, request: u64) {
        self.requests.remove(&request);
    }

    /// An effect about a call of a tool.
    pub(crate) fn effect(&mut self, effect: &Effect) -> Checked {
        match effect {
            Effect::AnswerNested { request, .. } => must(
                self.requests.remove(request),
                "a request was answered twice, or after it was withdrawn",
            ),
            Effect::UpdateNested(request, _) => {
                must(self.requests.contains(request), "an update of no request")
            }
            Effect::PrepareTool(slot, call) if is_nested(*slot) => {
                must(self.begun.contains(&call.id), "prepared a call that never began")
            }
            _ => Ok(()),
        }
    }

    /// An event about a call that has a parent.
    pub(crate) fn event(&mut self, event: &Event) -> Checked {
        match event {
            Event::ToolExecutionStart { tool_call_id, .. } => {
                let is_new = self.begun.insert(tool_call_id.clone());
                must(is_new, "a call of a tool began twice")
            }
            Event::ToolExecutionUpdate { tool_call_id, .. } => must(
                self.begun.contains(tool_call_id),
                "an update of a call that has not begun",
            ),
            Event::ToolExecutionEnd { tool_call_id, .. } => must(
                self.begun.remove(tool_call_id),
                "a call of a tool ended that never began",
            ),
            _ => Ok(()),
        }
    }

    /// The turn is over.
    pub(crate) fn turn_over(&self) -> Checked {
        must(self.open.is_empty(), "hooks of a turn that is over")?;
        must(
            self.requests.is_empty(),
            "a request for a call was never answered",
        )?;
        must(self.begun.is_empty(), "a call of a tool never ended")
    }
}
