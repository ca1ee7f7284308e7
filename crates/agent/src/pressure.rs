//! Compaction in the flow of runs: when it begins and what follows it (pi-core.md 3.2, pi-1.5-delta.md 4). `compaction`
//! chooses the messages to summarise and asks for the summary.

use std::sync::Arc;

use wire::event::{CompactionReason, CompactionResult};
use wire::state::InterruptMode;
use wire::{Event, Message};

use crate::convert;
use crate::effect::Effect;
use crate::hooks::HookPoint;
use crate::input::CompactOutcome;
use crate::phase::{Next, Phase, Run};
use crate::queue::QueueKind;
use crate::turn_loop::{RETRY_CANCELLED, TurnLoop};

impl TurnLoop {
    pub(crate) fn compact(&mut self, reason: CompactionReason, next: Next, out: &mut Vec<Effect>) {
        out.push(Effect::Emit(Event::CompactionStart { reason }));
        let again = matches!(next, Next::Again);
        self.phase = Phase::Compacting(reason, next);
        match self.hooks.before_compaction() {
            Some(ticket) => out.push(Effect::RunHooks(ticket, HookPoint::Compact { reason, again })),
            None => out.push(Effect::Compact(reason)),
        }
    }

    /// Why the conversation is being compacted, and whether a run that overflowed is tried again after it.
    #[must_use]
    pub fn compacting(&self) -> Option<(CompactionReason, bool)> {
        match &self.phase {
            Phase::Compacting(reason, next) => Some((*reason, matches!(next, Next::Again))),
            _ => None,
        }
    }

    pub(crate) fn on_context(&mut self, full: bool, now: i64, out: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Checking(next) if full && !self.aborted && self.budget.reached().is_none() => {
                self.compact(CompactionReason::Threshold, next, out)
            }
            Phase::Checking(next) => self.go_on(next, false, now, out),
            phase => self.phase = phase,
        }
    }

    pub(crate) fn on_compacted(&mut self, outcome: CompactOutcome, now: i64, out: &mut Vec<Effect>) {
        let (reason, next) = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Compacting(reason, next) => (reason, next),
            phase => {
                self.phase = phase;
                return;
            }
        };
        let aborted = matches!(outcome, CompactOutcome::Aborted);
        let (result, error) = match outcome {
            CompactOutcome::Done { result, messages } => {
                // Read again by the caller: the file is the source of what the model sees from now on.
                self.messages = messages;
                if matches!(next, Next::Again) {
                    // The answer that overflowed is on disk, but not part of the conversation.
                    while self
                        .messages
                        .last()
                        .and_then(|m| m.as_assistant())
                        .is_some_and(|a| a.failed() || convert::is_void(a))
                    {
                        self.messages.pop();
                    }
                }
                (Some(result), None)
            }
            CompactOutcome::Failed(error) => (None, Some(format!("{}{error}", prefix(reason)))),
            CompactOutcome::Aborted => (None, None),
        };
        let succeeded = result.is_some();
        let again = matches!(next, Next::Again);
        let limit = self.budget.reached();
        let will_retry = succeeded && again && !self.aborted && limit.is_none();
        let why = error.clone();
        out.push(Effect::Emit(end(reason, result, aborted, will_retry, error)));
        if again && !will_retry {
            // Without room the same request would overflow again.
            let why = why.unwrap_or_else(|| match limit {
                Some(limit) => format!("Limit reached: {limit}"),
                None => RETRY_CANCELLED.to_owned(),
            });
            self.give_up_retrying(why, out);
            self.settle(aborted || self.aborted, out);
        } else {
            self.go_on(next, aborted, now, out);
        }
    }

    pub(crate) fn on_moved(
        &mut self,
        messages: Option<Vec<Arc<Message>>>,
        aborted: bool,
        now: i64,
        out: &mut Vec<Effect>,
    ) {
        let newest = match self.phase {
            Phase::Moving(newest) => newest,
            _ => return,
        };
        if let Some(messages) = messages {
            self.messages = messages;
        }
        self.go_on(Next::Rest(newest), aborted, now, out);
    }

    fn go_on(&mut self, next: Next, aborted: bool, now: i64, out: &mut Vec<Effect>) {
        let aborted = aborted || self.aborted;
        match next {
            Next::Turn(run) if aborted => {
                out.push(Effect::Emit(Event::TurnStart));
                self.end_unanswered_turn(run, None, now, out);
            }
            Next::Turn(run) => self.next_turn(run, now, out),
            Next::Run(prompts) if aborted => {
                // The prompt was accepted, so its run must be seen to end.
                let mut run = Run::new(InterruptMode::Wait);
                self.tell_start(out);
                out.push(Effect::Emit(Event::TurnStart));
                for message in prompts {
                    self.say(&mut run, message, out);
                }
                self.end_unanswered_turn(run, None, now, out);
            }
            Next::Run(prompts) => self.start_run(prompts, now, out),
            Next::Again => self.start_run(Vec::new(), now, out),
            // Only what came meanwhile: an abort leaves queues as they are, and their messages must not start a run.
            Next::Rest(newest) if !aborted && self.queues.has_newer(newest) => self.start_queued(now, out),
            Next::Remind if !aborted && !self.queues.is_empty() => self.start_queued(now, out),
            Next::Remind if !aborted => self.remind(now, out),
            Next::Rest(_) | Next::Remind => self.settle(aborted, out),
        }
    }

    /// A run for the messages queued while no run could take them.
    fn start_queued(&mut self, now: i64, out: &mut Vec<Effect>) {
        let mut run = Run::new(self.settings.interrupt_mode);
        self.tell_start(out);
        out.push(Effect::Emit(Event::TurnStart));
        let mut kind = QueueKind::Steering;
        let mut count = self.queues.due(kind, self.settings.steering_mode);
        if count == 0 {
            kind = QueueKind::FollowUp;
            count = self.queues.due(kind, self.settings.follow_up_mode);
        }
        self.deliver(&mut run, kind, count, out);
        self.ask(run, now, out);
    }
}

/// A second overflow of the same prompt: told without a start, as pi does.
pub(crate) fn overflowed_twice() -> Event {
    let error = "Context overflow recovery failed after one compact-and-retry attempt. Try reducing context or \
                 switching to a larger-context model.";
    end(
        CompactionReason::Overflow,
        None,
        false,
        false,
        Some(error.to_owned()),
    )
}

fn end(
    reason: CompactionReason,
    result: Option<CompactionResult>,
    aborted: bool,
    will_retry: bool,
    error_message: Option<String>,
) -> Event {
    Event::CompactionEnd {
        reason,
        result,
        aborted,
        will_retry,
        error_message,
    }
}

const fn prefix(reason: CompactionReason) -> &'static str {
    match reason {
        CompactionReason::Manual => "Compaction failed: ",
        CompactionReason::Threshold => "Auto-compaction failed: ",
        CompactionReason::Overflow => "Context overflow recovery failed: ",
    }
}
