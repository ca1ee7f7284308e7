//! Calls that a tool makes while it runs itself. They pass hooks and permissions like the calls of the model, under numbers that
//! no answer has. Their results go to the tool that made them, not to the model. They are prepared one after another and run
//! side by side.

use std::collections::{BTreeMap, VecDeque};

use wire::{Event, ToolCall, ToolResult};

use crate::batch::{ABORTED, Review};
use crate::effect::Effect;
use crate::hooks::{HookPoint, Hooks, HooksOutcome, TOOL_CALL, TOOL_RESULT};
use crate::input::{NestedCall, Prepared, ToolInput};

/// The number of the first such call; no answer has as many calls.
const FIRST: usize = 1 << 32;

/// Returns true if a tool made the call with this number.
#[must_use]
pub const fn is_nested(slot: usize) -> bool {
    slot >= FIRST
}

#[derive(Debug, Clone)]
enum Stage {
    Waiting,
    Preparing,
    Checking(u64),
    Deciding,
    Running,
    Reviewing(Review),
}

#[derive(Debug, Clone)]
struct Inner {
    /// The request to answer; none when the tool has withdrawn it.
    request: Option<u64>,
    parent: String,
    call: ToolCall,
    stage: Stage,
    /// The call was withdrawn or its run was aborted: it does not start any more.
    cancelled: bool,
}

/// The calls that tools of the current batch make.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nested {
    // Ordered: `stop` and `end` go through it, and a replay must give the same effects in the same order (`record`).
    calls: BTreeMap<usize, Inner>,
    /// Calls that were not announced yet, in order.
    waiting: VecDeque<usize>,
    /// The call that is looked up, checked or waits for permission.
    preparing: Option<usize>,
    /// How many there have been. A number is never used twice, since a late report may be about the call that had it.
    made: usize,
    /// How many each caller made, for their ids.
    by_caller: BTreeMap<String, u64>,
}

impl Nested {
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns true if one of the calls has this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.calls.values().any(|inner| inner.call.id == id)
    }

    /// Adds a call; it begins when the calls before it are prepared.
    pub(crate) fn add(&mut self, made: NestedCall, out: &mut Vec<Effect>) {
        let NestedCall {
            request,
            parent,
            name,
            args,
        } = made;
        let count = self.by_caller.entry(parent.clone()).or_default();
        *count += 1;
        let call = ToolCall {
            id: format!("{parent}/{count}"),
            name,
            arguments: args,
            ..ToolCall::default()
        };
        let slot = FIRST + self.made;
        self.made += 1;
        let inner = Inner {
            request,
            parent,
            call,
            stage: Stage::Waiting,
            cancelled: false,
        };
        self.calls.insert(slot, inner);
        self.waiting.push_back(slot);
        self.prepare_next(out);
    }

    /// Announces the next call, unless one is being prepared.
    fn prepare_next(&mut self, out: &mut Vec<Effect>) {
        if self.preparing.is_some() {
            return;
        }
        let Some(slot) = self.waiting.pop_front() else {
            return;
        };
        self.preparing = Some(slot);
        if let Some(inner) = self.calls.get_mut(&slot) {
            inner.stage = Stage::Preparing;
            out.push(Effect::Emit(Event::ToolExecutionStart {
                tool_call_id: inner.call.id.clone(),
                tool_name: inner.call.name.clone(),
                args: inner.call.arguments.clone(),
                parent_tool_call_id: Some(inner.parent.clone()),
            }));
            out.push(Effect::PrepareTool(slot, inner.call.clone()));
        }
    }

    /// Takes a report about a call.
    pub(crate) fn on_input(
        &mut self,
        slot: usize,
        input: ToolInput,
        hooks: &mut Hooks,
        out: &mut Vec<Effect>,
    ) {
        let Some(inner) = self.calls.get_mut(&slot) else {
            return;
        };
        match (input, &inner.stage) {
            (ToolInput::Prepared(Prepared::Run), Stage::Preparing)
                if !inner.cancelled && hooks.hear(TOOL_CALL) =>
            {
                let ticket = hooks.ticket();
                inner.stage = Stage::Checking(ticket);
                let point = HookPoint::ToolCall {
                    slot,
                    call: inner.call.clone(),
                    parent: Some(inner.parent.clone()),
                };
                out.push(Effect::RunHooks(ticket, point));
            }
            (ToolInput::Prepared(outcome), Stage::Preparing) => self.decide(slot, outcome, out),
            (ToolInput::Decided(outcome), Stage::Deciding) => self.end_preparing(slot, outcome, out),
            (ToolInput::Progress(partial), Stage::Running) => inner.update(partial, out),
            (
                ToolInput::Done {
                    result,
                    is_error,
                    duration_ms,
                },
                Stage::Running,
            ) => {
                if !hooks.hear(TOOL_RESULT) {
                    return self.finish(slot, result, is_error, Some(duration_ms), out);
                }
                let ticket = hooks.ticket();
                let point = HookPoint::ToolResult {
                    slot,
                    call: inner.call.clone(),
                    parent: Some(inner.parent.clone()),
                    result: result.clone(),
                    is_error,
                };
                inner.stage = Stage::Reviewing(Review {
                    ticket,
                    result,
                    is_error,
                    duration_ms,
                });
                out.push(Effect::RunHooks(ticket, point));
            }
            // Repaired arguments are ignored, since no answer shows this call. Other reports that do not fit the stage are late.
            _ => {}
        }
    }

    /// Takes the answer of hooks. Returns it if the ticket belongs to no call here.
    pub(crate) fn on_hooks_done(
        &mut self,
        ticket: u64,
        outcome: HooksOutcome,
        out: &mut Vec<Effect>,
    ) -> Option<HooksOutcome> {
        let is_it = |(_, inner): &(&usize, &Inner)| match &inner.stage {
            Stage::Checking(own) => *own == ticket,
            Stage::Reviewing(review) => review.ticket == ticket,
            _ => false,
        };
        let Some((slot, inner)) = self.calls.iter().find(is_it) else {
            return Some(outcome);
        };
        let slot = *slot;
        match (&inner.stage, outcome) {
            (Stage::Checking(_), HooksOutcome::Refused(result)) => {
                self.decide(slot, Prepared::Refused(result), out);
            }
            (Stage::Checking(_), _) => self.decide(slot, Prepared::Run, out),
            (Stage::Reviewing(review), HooksOutcome::Result { result, is_error }) => {
                let duration_ms = review.duration_ms;
                self.finish(slot, result, is_error, Some(duration_ms), out);
            }
            _ => self.end_review(slot, out),
        }
        None
    }

    /// Asks permissions about a call that may run.
    fn decide(&mut self, slot: usize, outcome: Prepared, out: &mut Vec<Effect>) {
        match self.calls.get_mut(&slot) {
            Some(inner) if matches!(outcome, Prepared::Run) && !inner.cancelled => {
                inner.stage = Stage::Deciding;
                out.push(Effect::Decide(slot));
            }
            _ => self.end_preparing(slot, outcome, out),
        }
    }

    fn end_preparing(&mut self, slot: usize, outcome: Prepared, out: &mut Vec<Effect>) {
        self.preparing = None;
        match (self.calls.get_mut(&slot), outcome) {
            (Some(inner), Prepared::Run) if inner.cancelled => {
                self.finish(slot, ToolResult::error(ABORTED), true, None, out);
            }
            (Some(inner), Prepared::Run) => {
                inner.stage = Stage::Running;
                // Without `MAX_PARALLEL_TOOLS`: the session bounds the open calls of tools (`nested_calls`).
                out.push(Effect::RunTool(slot));
            }
            (_, Prepared::Refused(result)) => self.finish(slot, result, true, None, out),
            // Cannot happen: every caller has found the call under this number.
            (None, Prepared::Run) => {}
        }
        self.prepare_next(out);
    }

    fn end_review(&mut self, slot: usize, out: &mut Vec<Effect>) {
        let stage = self.calls.get(&slot).map(|inner| inner.stage.clone());
        if let Some(Stage::Reviewing(review)) = stage {
            let duration_ms = Some(review.duration_ms);
            self.finish(slot, review.result, review.is_error, duration_ms, out);
        }
    }

    /// Answers the tool that made the call, then tells that it ended.
    fn finish(
        &mut self,
        slot: usize,
        result: ToolResult,
        is_error: bool,
        duration_ms: Option<u64>,
        out: &mut Vec<Effect>,
    ) {
        let Some(inner) = self.calls.remove(&slot) else {
            return;
        };
        // Before the event, which may wait for its subscribers: the tool does not wait with it.
        answer(inner.request, &result, is_error, out);
        out.push(Effect::Emit(Event::ToolExecutionEnd {
            tool_call_id: inner.call.id,
            tool_name: inner.call.name,
            result,
            is_error,
            duration_ms,
            parent_tool_call_id: Some(inner.parent),
        }));
    }

    /// The tool that made a call has withdrawn its request.
    pub(crate) fn withdraw(&mut self, request: u64, out: &mut Vec<Effect>) {
        let is_it = |(_, inner): &(&usize, &mut Inner)| inner.request == Some(request);
        let Some((slot, inner)) = self.calls.iter_mut().find(is_it) else {
            return;
        };
        let slot = *slot;
        inner.request = None;
        inner.cancelled = true;
        match inner.stage {
            Stage::Waiting => {
                // It was never announced.
                // Clients saw no start, so no end is sent.
                self.calls.remove(&slot);
                self.waiting.retain(|waiting| *waiting != slot);
            }
            Stage::Checking(ticket) => {
                out.extend([Effect::CancelTool(slot), Effect::CancelHooks(ticket)]);
                // It is cancelled by now, so that this ends it.
                self.end_preparing(slot, Prepared::Run, out);
            }
            // `CancelTool` withdraws the question.
            Stage::Deciding => {
                out.push(Effect::CancelTool(slot));
                self.end_preparing(slot, Prepared::Run, out);
            }
            // These still report, and end with their report.
            Stage::Preparing | Stage::Running | Stage::Reviewing(_) => out.push(Effect::CancelTool(slot)),
        }
    }

    /// The batch is cancelled: calls that did not start do not start any more, and results that hooks still look at are taken
    /// as they are. Running calls still report.
    pub(crate) fn stop(&mut self, out: &mut Vec<Effect>) {
        // First, or the end of a call that is being prepared would announce the next one.
        self.drop_waiting(out);
        // Collected, since the end of a call takes it out of the map.
        let slots: Vec<usize> = self.calls.keys().copied().collect();
        for slot in slots {
            let Some(inner) = self.calls.get_mut(&slot) else {
                continue;
            };
            inner.cancelled = true;
            match &inner.stage {
                Stage::Checking(ticket) => {
                    out.push(Effect::CancelHooks(*ticket));
                    self.end_preparing(slot, Prepared::Refused(ToolResult::error(ABORTED)), out);
                }
                // `CancelTools` has withdrawn the question.
                Stage::Deciding => {
                    self.end_preparing(slot, Prepared::Refused(ToolResult::error(ABORTED)), out);
                }
                Stage::Reviewing(review) => {
                    out.push(Effect::CancelHooks(review.ticket));
                    self.end_review(slot, out);
                }
                Stage::Waiting | Stage::Preparing | Stage::Running => {}
            }
        }
    }

    /// Drops calls that were not announced.
    fn drop_waiting(&mut self, out: &mut Vec<Effect>) {
        for slot in std::mem::take(&mut self.waiting) {
            if let Some(inner) = self.calls.remove(&slot) {
                answer(inner.request, &ToolResult::error(ABORTED), true, out);
            }
        }
    }

    /// The turn is over, and with it calls whose tool did not wait for them.
    pub(crate) fn end(&mut self, out: &mut Vec<Effect>) {
        self.drop_waiting(out);
        let slots: Vec<usize> = self.calls.keys().copied().collect();
        for slot in slots {
            match self.calls.get(&slot).map(|inner| &inner.stage) {
                Some(Stage::Checking(ticket)) => out.push(Effect::CancelHooks(*ticket)),
                Some(Stage::Reviewing(review)) => out.push(Effect::CancelHooks(review.ticket)),
                // `CancelTool` below withdraws a question of permissions.
                _ => {}
            }
            out.push(Effect::CancelTool(slot));
            self.finish(slot, ToolResult::error(ABORTED), true, None, out);
        }
        // Numbers go on across turns, since reports of this turn may still come in the next one.
        *self = Self {
            made: self.made,
            ..Self::default()
        };
    }
}

impl Inner {
    fn update(&self, partial_result: ToolResult, out: &mut Vec<Effect>) {
        if let Some(request) = self.request {
            let partial_result = partial_result.clone();
            out.push(Effect::UpdateNested(request, partial_result));
        }
        out.push(Effect::Emit(Event::ToolExecutionUpdate {
            tool_call_id: self.call.id.clone(),
            tool_name: self.call.name.clone(),
            args: self.call.arguments.clone(),
            partial_result,
            parent_tool_call_id: Some(self.parent.clone()),
        }));
    }
}

/// Refuses a call that cannot be made, for this reason.
pub(crate) fn refuse(request: Option<u64>, why: &str, out: &mut Vec<Effect>) {
    answer(request, &ToolResult::error(why), true, out);
}

fn answer(request: Option<u64>, result: &ToolResult, is_error: bool, out: &mut Vec<Effect>) {
    if let Some(request) = request {
        let result = result.clone();
        out.push(Effect::AnswerNested {
            request,
            result,
            is_error,
        });
    }
}
