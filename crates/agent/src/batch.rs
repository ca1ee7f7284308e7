//! The tool calls of one answer: prepared one after another, run side by side (pi-core.md 1.5). Their results as messages are in
//! `results`.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use wire::content::AssistantBlock;
use wire::{AssistantMessage, Event, Message, ToolCall, ToolResult};

use crate::effect::Effect;
use crate::hooks::{HookPoint, Hooks, HooksOutcome, TOOL_CALL, TOOL_RESULT};
use crate::input::{NestedCall, Prepared};
use crate::limits::MAX_PARALLEL_TOOLS;
use crate::nested::{self, Nested};
use crate::results::{EarlyResults, result_message};
use crate::settings::ResultOrder;

/// What a call gives when steering came while it ran or before (dialects.md 9, interrupt mode `immediate`).
const SKIPPED: &str = "Skipped due to queued user message.";
/// What a call gives when the run was aborted before it started.
pub(crate) const ABORTED: &str = "Operation aborted";
/// What a call gives when the limit of tool calls was reached before it.
pub(crate) const LIMIT: &str = "The limit of tool calls is reached; this call was not executed";

#[derive(Debug, Clone)]
enum Progress {
    Waiting,
    /// The caller looks up the tool and checks the arguments.
    Preparing,
    /// Hooks may block the call, under this ticket.
    Checking(u64),
    /// Permissions are asked.
    Deciding,
    Ready,
    Running,
    /// The call has ended and hooks may change its result.
    Reviewing(Review),
    Done(ToolResult, bool, Option<u64>),
}

/// A result that hooks may change.
#[derive(Debug, Clone)]
pub(crate) struct Review {
    /// The ticket of the question.
    pub(crate) ticket: u64,
    pub(crate) result: ToolResult,
    pub(crate) is_error: bool,
    pub(crate) duration_ms: u64,
}

#[derive(Debug, Clone)]
struct Call {
    call: ToolCall,
    /// The arguments that the conversation shows after the turn, if they are others.
    repaired: Option<Map<String, Value>>,
    progress: Progress,
}

/// The calls of one answer.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    /// The answer that asked.
    pub(crate) message: Arc<Message>,
    calls: Vec<Call>,
    /// Calls before this one have been prepared.
    prepared: usize,
    /// Calls before this one have been started or will not be.
    started: usize,
    running: usize,
    interrupted: bool,
    /// Calls that may start, if their number is limited.
    allowed: Option<usize>,
    /// Calls that tools of the batch make.
    pub(crate) nested: Nested,
    /// Results that do not wait for the end of the turn.
    pub(crate) early: EarlyResults,
}

impl Batch {
    pub(crate) fn new(
        message: Arc<Message>,
        answer: &AssistantMessage,
        order: ResultOrder,
        now: i64,
    ) -> Self {
        let calls = answer.tool_calls().map(|call| Call {
            call: call.clone(),
            repaired: None,
            progress: Progress::Waiting,
        });
        let calls = calls.collect();
        Self {
            message,
            calls,
            prepared: 0,
            started: 0,
            running: 0,
            interrupted: false,
            allowed: None,
            nested: Nested::default(),
            early: EarlyResults::new(order, answer, now),
        }
    }

    /// Only so many calls may start, if a number is given. Returns how many there will be.
    pub(crate) fn limit(&mut self, left: Option<u64>) -> u64 {
        let calls = self.calls.len();
        // A number that does not fit is more than any answer has calls.
        let allowed = left.map_or(calls, |left| usize::try_from(left).unwrap_or(calls).min(calls));
        self.allowed = Some(allowed);
        allowed as u64
    }

    /// Returns true if no further call may start and some are left.
    pub(crate) fn is_at_limit(&self) -> bool {
        self.is_over_limit()
            && self.allowed.is_some_and(|allowed| self.prepared >= allowed)
            && !self.all_prepared()
    }

    /// Returns true if the answer wants more calls than may start.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.allowed.is_some_and(|allowed| allowed < self.calls.len())
    }

    /// Notes the arguments that a tool takes for those of a call.
    pub(crate) fn repair(&mut self, slot: usize, arguments: Map<String, Value>) {
        if let Some(call) = self.calls.get_mut(slot) {
            call.repaired = Some(arguments);
        }
    }

    /// The answer with the repaired arguments; `None` if it has none.
    pub(crate) fn repaired(&self) -> Option<Arc<Message>> {
        if self.calls.iter().all(|call| call.repaired.is_none()) {
            return None;
        }
        let mut answer = self.message.as_assistant()?.clone();
        let calls = answer.content.iter_mut().filter_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some(call),
            _ => None,
        });
        // `Batch::new` has taken the calls in this order.
        for (shown, call) in calls.zip(&self.calls) {
            if let Some(arguments) = &call.repaired {
                shown.arguments.clone_from(arguments);
            }
        }
        Some(answer.into())
    }

    /// The tool of a call of the answer.
    pub(crate) fn tool(&self, slot: usize) -> Option<&str> {
        self.calls.get(slot).map(|call| call.call.name.as_str())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Begins the call whose turn it is: announces it and has it prepared.
    pub(crate) fn announce_next(&mut self, out: &mut Vec<Effect>) {
        // One call at a time, in their order, as in pi (pi-core.md 1.5).
        if self.is_preparing() {
            return;
        }
        if let Some(call) = self.calls.get_mut(self.prepared) {
            call.progress = Progress::Preparing;
            out.push(start_event(&call.call));
            out.push(Effect::PrepareTool(self.prepared, call.call.clone()));
        }
    }

    /// Refuses every call that has not been announced, with start and end events. Does nothing while one is being
    /// prepared: its outcome must come first.
    pub(crate) fn refuse_rest(&mut self, why: Refusal, out: &mut Vec<Effect>) {
        if self.is_preparing() {
            return;
        }
        for slot in self.prepared..self.calls.len() {
            let Some(call) = self.calls.get(slot) else {
                continue;
            };
            // A refused call has a start, too: clients pair ends with starts (dialects.md 9).
            out.push(start_event(&call.call));
            let error = ToolResult::error(why.text(&call.call.name));
            self.finish(slot, error, true, None, out);
        }
        self.prepared = self.calls.len();
    }

    /// Returns true if a call with this id may make calls of its own.
    pub(crate) fn may_nest(&self, id: &str) -> bool {
        self.calls.iter().any(|call| call.call.id == id) || self.nested.has_call(id)
    }

    /// A tool makes a call. It is refused unless tools run and may go on. Returns true if it begins.
    pub(crate) fn nest(&mut self, call: NestedCall, out: &mut Vec<Effect>) -> bool {
        // Without a running tool the turn ends, and the call with it. An interrupted batch begins nothing.
        let begins = self.running > 0 && !self.interrupted;
        if begins {
            self.nested.add(call, out);
        } else {
            nested::refuse(call.request, ABORTED, out);
        }
        begins
    }

    /// Returns true while the call whose turn it is is looked up, checked by hooks or waits for permission.
    fn is_preparing(&self) -> bool {
        let turn = self.calls.get(self.prepared).map(|call| &call.progress);
        matches!(
            turn,
            Some(Progress::Preparing | Progress::Checking(_) | Progress::Deciding)
        )
    }

    /// The call that was announced last has been looked up: hooks check it, then permissions. Nothing is asked about a call
    /// that will not run, since its run was aborted.
    pub(crate) fn on_prepared(
        &mut self,
        slot: usize,
        outcome: Prepared,
        aborted: bool,
        hooks: &mut Hooks,
        out: &mut Vec<Effect>,
    ) {
        let Some(call) = self.calls.get_mut(slot) else {
            return;
        };
        // A lookup that reports a second time changes nothing.
        if slot != self.prepared || !matches!(call.progress, Progress::Preparing) {
            return;
        }
        match outcome {
            // `advance` refuses it with the other ready calls.
            Prepared::Run if aborted => self.end_preparing(slot, Prepared::Run, out),
            Prepared::Run if hooks.hear(TOOL_CALL) => {
                let ticket = hooks.ticket();
                call.progress = Progress::Checking(ticket);
                let point = HookPoint::ToolCall {
                    slot,
                    call: call.call.clone(),
                    parent: None,
                };
                out.push(Effect::RunHooks(ticket, point));
            }
            Prepared::Run => {
                call.progress = Progress::Deciding;
                out.push(Effect::Decide(slot));
            }
            // Hooks come last in the preparation, so they do not see a call that failed before (pi-core.md 1.5).
            refused @ Prepared::Refused(_) => self.end_preparing(slot, refused, out),
        }
    }

    /// Hooks have answered about a call. Returns true if a call of the answer ended.
    pub(crate) fn on_hooks_done(
        &mut self,
        ticket: u64,
        outcome: HooksOutcome,
        out: &mut Vec<Effect>,
    ) -> bool {
        // Tickets of nested calls and of calls of the answer come from one counter, so only one of the two has this ticket.
        let Some(outcome) = self.nested.on_hooks_done(ticket, outcome, out) else {
            return false;
        };
        let (prepared, changed) = match outcome {
            HooksOutcome::Refused(result) => (Prepared::Refused(result), None),
            HooksOutcome::Result { result, is_error } => (Prepared::Run, Some((result, is_error))),
            _ => (Prepared::Run, None),
        };
        // A call that was checked has not run, so its end does not let steering interrupt the batch.
        !self.on_checked(ticket, prepared, out) && self.on_reviewed(ticket, changed, out)
    }

    /// Hooks have checked a call. Permissions come after them, since they judge the call as it will run. Returns false if
    /// the ticket belongs to no call that is checked.
    fn on_checked(&mut self, ticket: u64, outcome: Prepared, out: &mut Vec<Effect>) -> bool {
        let slot = self.prepared;
        let Some(call) = self.calls.get_mut(slot) else {
            return false;
        };
        if !matches!(call.progress, Progress::Checking(own) if own == ticket) {
            return false;
        }
        match outcome {
            Prepared::Run => {
                call.progress = Progress::Deciding;
                out.push(Effect::Decide(slot));
            }
            refused @ Prepared::Refused(_) => self.end_preparing(slot, refused, out),
        }
        true
    }

    /// Permissions have decided about a call.
    pub(crate) fn on_decided(&mut self, slot: usize, decision: Prepared, out: &mut Vec<Effect>) {
        let progress = self.calls.get(slot).map(|call| &call.progress);
        // A stop may have ended the call while its decision was under way.
        if slot == self.prepared && matches!(progress, Some(Progress::Deciding)) {
            self.end_preparing(slot, decision, out);
        }
    }

    fn end_preparing(&mut self, slot: usize, outcome: Prepared, out: &mut Vec<Effect>) {
        match outcome {
            Prepared::Run => {
                if let Some(call) = self.calls.get_mut(slot) {
                    call.progress = Progress::Ready;
                }
            }
            Prepared::Refused(result) => self.finish(slot, result, true, None, out),
        }
        // `slot` is `prepared` here: `announce_next` begins one call at a time, and only this call is looked up or checked.
        self.prepared += 1;
    }

    pub(crate) fn all_prepared(&self) -> bool {
        self.prepared == self.calls.len()
    }

    /// Starts prepared calls as far as there is room.
    pub(crate) fn start_ready(&mut self, out: &mut Vec<Effect>) {
        while self.running < MAX_PARALLEL_TOOLS {
            let Some(call) = self.calls.get_mut(self.started) else {
                break;
            };
            if matches!(call.progress, Progress::Ready) {
                call.progress = Progress::Running;
                self.running += 1;
                out.push(Effect::RunTool(self.started));
            }
            // Counted in any case: calls that were refused are passed over.
            self.started += 1;
        }
    }

    pub(crate) fn on_progress(&self, slot: usize, partial_result: ToolResult, out: &mut Vec<Effect>) {
        // A tool may still report progress after its result, which clients have seen by then.
        if let Some(Call {
            call,
            progress: Progress::Running,
            ..
        }) = self.calls.get(slot)
        {
            out.push(Effect::Emit(Event::ToolExecutionUpdate {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                // The raw arguments of the model, as in pi (pi-core.md 1.5).
                args: call.arguments.clone(),
                partial_result,
                parent_tool_call_id: None,
            }));
        }
    }

    /// A running call ended. Hooks may change its result first. When it was interrupted its result does not count. Returns
    /// false if the call does not run, or its result is reviewed.
    pub(crate) fn on_done(
        &mut self,
        slot: usize,
        result: ToolResult,
        is_error: bool,
        duration_ms: u64,
        hooks: &mut Hooks,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Some(call) = self.calls.get_mut(slot) else {
            return false;
        };
        if !matches!(call.progress, Progress::Running) {
            return false;
        }
        if !hooks.hear(TOOL_RESULT) {
            self.end_run(slot, result, is_error, duration_ms, out);
            return true;
        }
        let ticket = hooks.ticket();
        // A copy stays in `Review`: hooks that change nothing give no result back, and `stop` takes it as it is.
        let point = HookPoint::ToolResult {
            slot,
            call: call.call.clone(),
            parent: None,
            result: result.clone(),
            is_error,
        };
        call.progress = Progress::Reviewing(Review {
            ticket,
            result,
            is_error,
            duration_ms,
        });
        out.push(Effect::RunHooks(ticket, point));
        false
    }

    /// Hooks have seen a result; `changed` takes its place. Returns false if the ticket belongs to no such call.
    fn on_reviewed(
        &mut self,
        ticket: u64,
        changed: Option<(ToolResult, bool)>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let is_it =
            |call: &Call| matches!(&call.progress, Progress::Reviewing(review) if review.ticket == ticket);
        let Some(slot) = self.calls.iter().position(is_it) else {
            return false;
        };
        self.end_review(slot, changed, out);
        true
    }

    fn end_review(&mut self, slot: usize, changed: Option<(ToolResult, bool)>, out: &mut Vec<Effect>) {
        let progress = self.calls.get(slot).map(|call| call.progress.clone());
        if let Some(Progress::Reviewing(review)) = progress {
            let (result, is_error) = changed.unwrap_or((review.result, review.is_error));
            self.end_run(slot, result, is_error, review.duration_ms, out);
        }
    }

    fn end_run(
        &mut self,
        slot: usize,
        result: ToolResult,
        is_error: bool,
        duration_ms: u64,
        out: &mut Vec<Effect>,
    ) {
        // Only here, so a call whose result hooks look at keeps its place among the calls that run.
        self.running -= 1;
        // The call was cancelled for steering, so that its result may be half of one.
        if self.interrupted {
            self.finish(slot, ToolResult::error(SKIPPED), true, Some(duration_ms), out);
        } else {
            self.finish(slot, result, is_error, Some(duration_ms), out);
        }
    }

    /// Cancels running calls and the lookup of a call, refuses calls that wait for hooks, for permission or for their turn, and
    /// takes results that hooks still look at as they are: these calls have ended (dialects.md 9).
    pub(crate) fn stop(&mut self, why: Refusal, out: &mut Vec<Effect>) {
        // A call may have ended before the calls that it made.
        if self.running > 0 || self.is_preparing() || self.nested.len() > 0 {
            out.push(Effect::CancelTools);
        }
        self.refuse_ready(why, out);
        for slot in 0..self.calls.len() {
            match self.calls.get(slot).map(|call| &call.progress) {
                Some(Progress::Reviewing(review)) => {
                    out.push(Effect::CancelHooks(review.ticket));
                    self.end_review(slot, None, out);
                }
                // This arm and the next one are for an abort, hence the text: steering stops a batch only after a call has run, and none
                // runs before all are prepared.
                Some(Progress::Checking(ticket)) => {
                    out.push(Effect::CancelHooks(*ticket));
                    self.end_preparing(slot, Prepared::Refused(ToolResult::error(ABORTED)), out);
                }
                // `CancelTools` has withdrawn the question.
                Some(Progress::Deciding) => {
                    self.end_preparing(slot, Prepared::Refused(ToolResult::error(ABORTED)), out);
                }
                // Running calls and a lookup report back by themselves.
                _ => {}
            }
        }
        // After the results that were complete. Not after an abort: tools report it in their own words, `bash` with its output so far
        // (pi-core.md 1.8, behaviour.md 3.7).
        if why == Refusal::Steered {
            self.interrupted = true;
        }
        self.nested.stop(out);
    }

    /// Refuses calls that are prepared but not running.
    pub(crate) fn refuse_ready(&mut self, why: Refusal, out: &mut Vec<Effect>) {
        for slot in 0..self.prepared {
            if let Some(Call {
                progress: Progress::Ready,
                call,
                ..
            }) = self.calls.get(slot)
            {
                let error = ToolResult::error(why.text(&call.name));
                self.finish(slot, error, true, None, out);
            }
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    pub(crate) fn is_done(&self) -> bool {
        self.all_prepared()
            && self
                .calls
                .iter()
                .all(|call| matches!(call.progress, Progress::Done(..)))
    }

    /// Do all results ask the loop to stop?
    pub(crate) fn terminates(&self) -> bool {
        // An answer without calls wants no stop: it is the end anyway.
        !self.calls.is_empty()
            && self.calls.iter().all(
                |call| matches!(&call.progress, Progress::Done(result, ..) if result.terminate == Some(true)),
            )
    }

    /// The result messages, in call order.
    pub(crate) fn results(self, now: i64) -> Vec<Arc<Message>> {
        if let Some(told) = self.early.in_call_order() {
            return told;
        }
        let results = self.calls.into_iter().filter_map(|call| match call.progress {
            Progress::Done(result, is_error, duration_ms) => {
                Some(result_message(&call.call, result, is_error, duration_ms, now))
            }
            // Cannot happen: results are made once all calls have ended.
            _ => None,
        });
        results.collect()
    }

    fn finish(
        &mut self,
        slot: usize,
        result: ToolResult,
        is_error: bool,
        duration_ms: Option<u64>,
        out: &mut Vec<Effect>,
    ) {
        let Some(call) = self.calls.get_mut(slot) else {
            return;
        };
        out.push(Effect::Emit(Event::ToolExecutionEnd {
            tool_call_id: call.call.id.clone(),
            tool_name: call.call.name.clone(),
            result: result.clone(),
            is_error,
            // None if the tool did not run (pi-1.5-delta.md 2).
            duration_ms,
            parent_tool_call_id: None,
        }));
        let ended = &call.call;
        let message = |now| result_message(ended, result.clone(), is_error, duration_ms, now);
        self.early.tell(slot, message, out);
        // Kept until the end of the batch: some rules look at all results.
        call.progress = Progress::Done(result, is_error, duration_ms);
    }
}

fn start_event(call: &ToolCall) -> Effect {
    Effect::Emit(Event::ToolExecutionStart {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        // As the model wrote them, before coercion and hooks (behaviour.md 2.7).
        args: call.arguments.clone(),
        parent_tool_call_id: None,
    })
}

/// Why calls do not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Steering came and the interrupt mode is `immediate`.
    Steered,
    /// The run was aborted.
    Aborted,
    /// The answer hit the output limit.
    CutOff,
    /// No more calls are allowed.
    Limit,
}

impl Refusal {
    /// The result of a call of the tool `name`.
    fn text(self, name: &str) -> Cow<'static, str> {
        let text = match self {
            Self::Steered => SKIPPED,
            Self::Aborted => ABORTED,
            // Its arguments may be cut, so it must not run.
            Self::CutOff => {
                return format!(
                    "Tool call \"{name}\" was not executed: the response hit the output token limit, so its arguments may be \
                     truncated. Re-issue the tool call with complete arguments."
                )
                .into();
            }
            Self::Limit => LIMIT,
        };
        text.into()
    }
}
