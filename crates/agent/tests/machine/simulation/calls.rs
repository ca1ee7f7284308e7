//! What must hold for the tool calls of one answer.

use pinion_agent::limits::MAX_PARALLEL_TOOLS;
use pinion_agent::{HooksOutcome, Prepared, ResultOrder, ToolInput};
use wire::{AssistantMessage, StopReason, ToolCall, ToolResult};

use super::check::{Checked, must};

const SKIPPED: &str = "Skipped due to queued user message.";
const ABORTED: &str = "Operation aborted";

#[derive(Debug)]
struct Call {
    call: ToolCall,
    started: bool,
    asked: bool,
    /// Hooks look at it.
    checking: bool,
    /// Permissions are asked about it.
    deciding: bool,
    prepared: bool,
    /// Set while it runs and after.
    ran: bool,
    /// What the world said it gave back.
    reported: Option<(ToolResult, bool)>,
    /// It was reported after steering had cancelled the call.
    cancelled: bool,
    ended: Option<(ToolResult, bool)>,
}

/// The calls of the answer of the turn that is open.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    order: ResultOrder,
    /// The calls in the order of their ends.
    ended: Vec<usize>,
    cut_off: bool,
    /// Steering came in mode `immediate`; the call whose end noticed it keeps its result.
    interrupted: Option<usize>,
}

impl Calls {
    pub(crate) fn of(answer: &AssistantMessage, order: ResultOrder) -> Self {
        let calls = answer.tool_calls().map(|call| Call {
            call: call.clone(),
            started: false,
            asked: false,
            checking: false,
            deciding: false,
            prepared: false,
            ran: false,
            reported: None,
            cancelled: false,
            ended: None,
        });
        Self {
            calls: calls.collect(),
            order,
            ended: Vec::new(),
            cut_off: answer.stop_reason == StopReason::Length,
            interrupted: None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn running(&self) -> usize {
        let running = self.calls.iter().filter(|call| call.ran && call.ended.is_none());
        running.count()
    }

    pub(crate) fn all_ended(&self) -> bool {
        self.calls.iter().all(|call| call.ended.is_some())
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Does the model have to be asked about these results?
    pub(crate) fn want_an_answer(&self) -> bool {
        let asks = |call: &Call| {
            let result = call.ended.as_ref().map(|(result, _)| result);
            result.is_none_or(|result| result.terminate != Some(true))
        };
        self.calls.iter().any(asks)
    }

    /// The world is about to report; `steered`: steering waits and may interrupt, unless hooks see the result first.
    pub(crate) fn given(&mut self, slot: usize, input: &ToolInput, steered: bool) {
        let Some(call) = self.calls.get_mut(slot) else {
            return;
        };
        match input {
            ToolInput::Repaired(_) | ToolInput::Prepared(Prepared::Run) | ToolInput::Progress(_) => {}
            ToolInput::Decided(Prepared::Run) => call.prepared = call.deciding,
            ToolInput::Prepared(Prepared::Refused(result))
            | ToolInput::Decided(Prepared::Refused(result)) => {
                call.reported = Some((result.clone(), true));
            }
            ToolInput::Done { result, is_error, .. } => {
                call.reported = Some((result.clone(), *is_error));
                call.cancelled = self.interrupted.is_some();
                if steered && self.interrupted.is_none() {
                    self.interrupted = Some(slot);
                }
            }
        }
    }

    /// Hooks have answered about a call.
    pub(crate) fn hooked(&mut self, slot: usize, outcome: &HooksOutcome, steered: bool) {
        let Some(call) = self.calls.get_mut(slot) else {
            return;
        };
        call.checking = false;
        match outcome {
            HooksOutcome::Refused(result) => call.reported = Some((result.clone(), true)),
            HooksOutcome::Result { result, is_error } => call.reported = Some((result.clone(), *is_error)),
            _ => {}
        }
        if call.ran && steered && self.interrupted.is_none() {
            self.interrupted = Some(slot);
        }
    }

    /// Hooks are run before a call.
    pub(crate) fn on_check(&mut self, slot: usize) -> Checked {
        let call = self
            .calls
            .get_mut(slot)
            .ok_or("checking a call that is not there")?;
        must(
            call.asked && !call.checking && !call.deciding && !call.prepared && call.ended.is_none(),
            "checking out of order",
        )?;
        call.checking = true;
        Ok(())
    }

    /// Hooks are run for a result.
    pub(crate) fn on_review(&self, slot: usize) -> Checked {
        let call = self
            .calls
            .get(slot)
            .ok_or("a result of a call that is not there")?;
        must(
            call.ran && call.reported.is_some() && call.ended.is_none(),
            "reviewing out of order",
        )
    }

    /// Permissions are asked about a call.
    pub(crate) fn on_decide(&mut self, slot: usize) -> Checked {
        let call = self
            .calls
            .get_mut(slot)
            .ok_or("deciding about a call that is not there")?;
        must(
            call.asked && !call.checking && !call.deciding && !call.prepared && call.ended.is_none(),
            "deciding out of order",
        )?;
        call.deciding = true;
        Ok(())
    }

    pub(crate) fn on_start(&mut self, id: &str) -> Checked {
        let next = self.calls.iter_mut().find(|call| !call.started);
        let call = next.ok_or("a call started that the answer does not have")?;
        call.started = true;
        must(call.call.id == id, "calls started out of order")
    }

    pub(crate) fn on_prepare(&mut self, slot: usize, asked: &ToolCall) -> Checked {
        let busy = self
            .calls
            .iter()
            .any(|call| call.asked && !call.prepared && call.ended.is_none());
        must(!busy, "two calls prepared at once")?;
        must(!self.cut_off, "a call of a cut off answer is prepared")?;
        let call = self
            .calls
            .get_mut(slot)
            .ok_or("preparing a call that is not there")?;
        must(
            call.started && !call.asked && call.ended.is_none() && call.call == *asked,
            "preparing out of order",
        )?;
        call.asked = true;
        Ok(())
    }

    pub(crate) fn on_run(&mut self, slot: usize) -> Checked {
        must(
            self.running() < MAX_PARALLEL_TOOLS,
            "more tools at once than allowed",
        )?;
        must(!self.is_interrupted(), "a tool started after steering")?;
        let ready = self
            .calls
            .iter()
            .all(|call| call.prepared || call.ended.is_some());
        must(ready, "a tool ran before all were prepared")?;
        let call = self
            .calls
            .get_mut(slot)
            .ok_or("running a call that is not there")?;
        must(
            call.prepared && !call.ran && call.ended.is_none(),
            "running a call twice or unprepared",
        )?;
        call.ran = true;
        Ok(())
    }

    pub(crate) fn on_update(&self, id: &str) -> Checked {
        let runs = |call: &Call| call.call.id == id && call.ran && call.ended.is_none();
        must(
            self.calls.iter().any(runs),
            "an update of a call that does not run",
        )
    }

    pub(crate) fn on_end(
        &mut self,
        id: &str,
        result: &ToolResult,
        is_error: bool,
        timed: bool,
        aborted: bool,
    ) -> Checked {
        let interrupted = self.interrupted;
        let cut_off = self.cut_off;
        let open =
            |(_, call): &(usize, &mut Call)| call.call.id == id && call.started && call.ended.is_none();
        let (slot, call) = self
            .calls
            .iter_mut()
            .enumerate()
            .find(open)
            .ok_or("an end without a start")?;
        must(timed == call.ran, "duration_ms tells the wrong thing")?;
        let skipped = interrupted.is_some_and(|by| by != slot);
        let text = result.joined_text();
        let right = match &call.reported {
            Some(_) if call.ran && skipped && call.cancelled => text == SKIPPED && is_error,
            Some(own) => (result, is_error) == (&own.0, own.1),
            None if call.ran => false,
            None => {
                let allowed = (aborted && text == ABORTED)
                    || (skipped && text == SKIPPED)
                    || (cut_off && text.contains("output token limit"));
                allowed && is_error
            }
        };
        call.ended = Some((result.clone(), is_error));
        self.ended.push(slot);
        must(right, "a call ended with a result that is not its own")
    }

    /// Is this the result message that is due after `at` others?
    pub(crate) fn on_result(&self, at: usize, told: &wire::ToolResultMessage) -> Checked {
        let slot = match self.order {
            ResultOrder::Calls => {
                must(self.all_ended(), "a result was told before all calls ended")?;
                Some(at)
            }
            ResultOrder::Ends => {
                must(
                    self.ended.len() == at + 1,
                    "a result was not told when its call ended",
                )?;
                self.ended.last().copied()
            }
        };
        let call = slot
            .and_then(|slot| self.calls.get(slot))
            .ok_or("a result that belongs to no call of this turn")?;
        let (result, is_error) = call.ended.as_ref().ok_or("a result without an end")?;
        must(told.tool_call_id == call.call.id, "results are out of order")?;
        must(
            told.content == result.content && told.details == result.details && told.is_error == *is_error,
            "a result message says something else than the end of the call",
        )
    }
}
