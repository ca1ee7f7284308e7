//! The tool calls of one answer: prepared one after another, run side by side, results in call order (pi-core.md 1.5).

use std::sync::Arc;

use wire::{AssistantMessage, Event, Message, ToolCall, ToolResult};

use crate::effect::Effect;
use crate::input::Prepared;
use crate::limits::MAX_PARALLEL_TOOLS;

/// What a call gives when steering came while it ran or before (dialects.md 9, interrupt mode `immediate`).
const SKIPPED: &str = "Skipped due to queued user message.";
/// What a call gives when the run was aborted before it started.
const ABORTED: &str = "Operation aborted";
/// What a call gives when the answer hit the output limit: its arguments may be cut, so it must not run.
const CUT_OFF: &str =
    "The answer was cut off by the output limit before this tool call was complete; it was not executed";

#[derive(Debug, Clone)]
enum Progress {
    Waiting,
    Ready,
    Running,
    Done(ToolResult, bool),
}

#[derive(Debug, Clone)]
struct Call {
    call: ToolCall,
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
    /// Is the call at `prepared` being prepared?
    announced: bool,
    /// Calls before this one have been started or will not be.
    started: usize,
    running: usize,
    interrupted: bool,
}

impl Batch {
    pub(crate) fn new(message: Arc<Message>, answer: &AssistantMessage) -> Self {
        let calls = answer.tool_calls().map(|call| Call {
            call: call.clone(),
            progress: Progress::Waiting,
        });
        let calls = calls.collect();
        Self {
            message,
            calls,
            prepared: 0,
            announced: false,
            started: 0,
            running: 0,
            interrupted: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Begins the call whose turn it is: announces it and has it prepared.
    pub(crate) fn announce_next(&mut self, out: &mut Vec<Effect>) {
        if self.announced {
            return;
        }
        if let Some(call) = self.calls.get(self.prepared) {
            self.announced = true;
            out.push(start_event(&call.call));
            out.push(Effect::PrepareTool(self.prepared, call.call.clone()));
        }
    }

    /// Refuses every call that has not been announced, with start and end events. Does nothing while one is being
    /// prepared: its outcome must come first.
    pub(crate) fn refuse_rest(&mut self, why: Refusal, out: &mut Vec<Effect>) {
        if self.announced {
            return;
        }
        for slot in self.prepared..self.calls.len() {
            if let Some(call) = self.calls.get(slot) {
                out.push(start_event(&call.call));
            }
            self.finish(slot, ToolResult::error(why.text()), true, None, out);
        }
        self.prepared = self.calls.len();
    }

    /// The call that was announced last has been prepared.
    pub(crate) fn on_prepared(&mut self, slot: usize, outcome: Prepared, out: &mut Vec<Effect>) {
        if slot != self.prepared || !self.announced {
            return;
        }
        self.announced = false;
        match outcome {
            Prepared::Run => {
                if let Some(call) = self.calls.get_mut(slot) {
                    call.progress = Progress::Ready;
                }
            }
            Prepared::Refused(result) => self.finish(slot, result, true, None, out),
        }
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
            self.started += 1;
        }
    }

    pub(crate) fn on_progress(&self, slot: usize, partial_result: ToolResult, out: &mut Vec<Effect>) {
        if let Some(Call {
            call,
            progress: Progress::Running,
        }) = self.calls.get(slot)
        {
            out.push(Effect::Emit(Event::ToolExecutionUpdate {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                args: call.arguments.clone(),
                partial_result,
                parent_tool_call_id: None,
            }));
        }
    }

    /// A running call ended. When it was interrupted its result does not count. False: no such call runs.
    pub(crate) fn on_done(
        &mut self,
        slot: usize,
        result: ToolResult,
        is_error: bool,
        duration_ms: u64,
        out: &mut Vec<Effect>,
    ) -> bool {
        if !matches!(
            self.calls.get(slot),
            Some(Call {
                progress: Progress::Running,
                ..
            })
        ) {
            return false;
        }
        self.running -= 1;
        if self.interrupted {
            self.finish(slot, ToolResult::error(SKIPPED), true, Some(duration_ms), out);
        } else {
            self.finish(slot, result, is_error, Some(duration_ms), out);
        }
        true
    }

    /// Cancels what runs or is being prepared, and refuses what only waits.
    pub(crate) fn stop(&mut self, why: Refusal, out: &mut Vec<Effect>) {
        if why == Refusal::Steered {
            self.interrupted = true;
        }
        if self.running > 0 || self.announced {
            out.push(Effect::CancelTools);
        }
        self.refuse_ready(why, out);
    }

    /// Refuses calls that are prepared but not running.
    pub(crate) fn refuse_ready(&mut self, why: Refusal, out: &mut Vec<Effect>) {
        for slot in 0..self.prepared {
            if matches!(
                self.calls.get(slot),
                Some(Call {
                    progress: Progress::Ready,
                    ..
                })
            ) {
                self.finish(slot, ToolResult::error(why.text()), true, None, out);
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
        !self.calls.is_empty()
            && self.calls.iter().all(
                |call| matches!(&call.progress, Progress::Done(result, _) if result.terminate == Some(true)),
            )
    }

    /// The result messages, in call order.
    pub(crate) fn results(self, now: i64) -> Vec<Arc<Message>> {
        let results = self.calls.into_iter().filter_map(|call| match call.progress {
            Progress::Done(result, is_error) => {
                Some(Arc::new(Message::ToolResult(wire::ToolResultMessage {
                    tool_call_id: call.call.id,
                    tool_name: call.call.name,
                    content: result.content,
                    details: result.details,
                    is_error,
                    timestamp: now,
                    extra: wire::Extra::default(),
                })))
            }
            Progress::Waiting | Progress::Ready | Progress::Running => None,
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
            duration_ms,
            parent_tool_call_id: None,
        }));
        call.progress = Progress::Done(result, is_error);
    }
}

fn start_event(call: &ToolCall) -> Effect {
    Effect::Emit(Event::ToolExecutionStart {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
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
}

impl Refusal {
    const fn text(self) -> &'static str {
        match self {
            Self::Steered => SKIPPED,
            Self::Aborted => ABORTED,
            Self::CutOff => CUT_OFF,
        }
    }
}
