//! Compaction in the flow of runs: when it begins and what follows it (pi-core.md 3.2, pi-1.5-delta.md 4); and changes that no run
//! makes: another session, a message from outside. `compaction` chooses the messages to summarise and asks for the summary.

use std::sync::Arc;

use wire::Event;
use wire::event::{CompactionReason, CompactionResult};
use wire::state::InterruptMode;

use crate::compaction::Refusal;
use crate::effect::Effect;
use crate::hooks::HookPoint;
use crate::input::{Change, CompactOutcome};
use crate::output::Ending;
use crate::phase::{Next, Phase, RunStart};
use crate::todo::Todos;
use crate::ttsr::Watch;
use crate::turn_loop::{TurnLoop, no_retry};

impl TurnLoop {
    pub(crate) fn compact(&mut self, reason: CompactionReason, next: Next, out: &mut Vec<Effect>) {
        // Before hooks are asked: a compaction that they refuse ends with `compaction_end`, too (behaviour.md 8.2).
        out.push(Effect::Emit(Event::CompactionStart { reason }));
        let again = matches!(next, Next::Again);
        self.phase = Phase::Compacting(reason, next);
        match self.hooks.before_compaction() {
            Some(ticket) => out.push(Effect::RunHooks(ticket, HookPoint::Compact { reason, again })),
            None => out.push(Effect::Compact(reason)),
        }
    }

    pub(crate) fn on_context(&mut self, full: bool, now: i64, out: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            // A summary is a request, too, which a limit that is reached forbids.
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
                self.conversation.set(messages, None);
                if matches!(next, Next::Again) {
                    // The answer that overflowed is on disk, but not part of the conversation.
                    self.conversation.drop_void();
                }
                (Some(result), None)
            }
            CompactOutcome::Failed(error) => (None, Some(format!("{}{error}", failure_prefix(reason)))),
            CompactOutcome::Aborted => (None, None),
        };
        let succeeded = result.is_some();
        let again = matches!(next, Next::Again);
        let limit = self.budget.reached();
        // The compaction may have won the race against an abort; nothing follows from it all the same.
        let will_retry = succeeded && again && !self.aborted && limit.is_none();
        // Hooks that refuse a compaction abort nothing: what follows is what follows a failed one, as in pi.
        let refused =
            (aborted && !self.aborted).then(|| format!("{}{}", failure_prefix(reason), Refusal::Aborted));
        let why = error.clone().or(refused);
        out.push(Effect::Emit(end(reason, result, aborted, will_retry, error)));
        if again && !will_retry {
            // Without room the same request would overflow again.
            let why = why.unwrap_or_else(|| no_retry(limit));
            // The attempt that overflowed may have been a retry, whose end clients wait for.
            out.extend(self.recovery.end_retries(Some(why.clone())).map(Effect::Emit));
            let failed = Ending {
                limit,
                error: Some(&why),
                ..Ending::default()
            };
            let ending = if self.aborted { Ending::ABORTED } else { failed };
            self.end_announced_run(ending, now, out);
        } else {
            self.go_on(next, false, now, out);
        }
    }

    /// Takes over a change that the caller made.
    pub(crate) fn change(&mut self, change: Change, now: i64, out: &mut Vec<Effect>) {
        match change {
            Change::Open { settings, messages } => {
                // The settings bring the limits, and the new loop begins counting at 0 (docs/guides/limits.md).
                // Tickets go on counting: an answer to a question of the former session must not fit one of this session.
                let hooks = self.hooks.anew();
                *self = Self {
                    hooks,
                    ..Self::new(settings, messages)
                };
            }
            Change::Hooks(subscribed) => self.hooks.subscribe(subscribed),
            Change::Branch { todos, phases } => {
                self.todos = Todos::new(todos, phases);
                // Which rules the model knows depends on the branch, too: the caller gives them again.
                self.rules.set(None);
            }
            Change::Settings(settings) => {
                // Setting limits that did not change would warn the model of them a second time.
                if settings.limits != self.settings.limits {
                    self.budget.set(settings.limits, false);
                }
                self.settings = settings;
            }
            Change::Limits { limits, reset } => {
                // Also in the settings: `Change::Settings` with the same limits changes nothing then.
                self.settings.limits = limits;
                self.budget.set(limits, reset);
            }
            Change::Used(used) => self.budget.go_on(used),
            Change::Add(message) => match self.phase {
                Phase::Tools(..) => self.conversation.push_after_results(message),
                _ => self.conversation.push(message),
            },
            Change::Conversation(messages) => {
                let open = match &self.phase {
                    Phase::Tools(_, batch) => Some(&batch.message),
                    _ => None,
                };
                self.conversation.set(messages, open);
                // As with the answer: hooks may keep them from the file.
                if let Phase::Tools(_, batch) = &self.phase {
                    for result in batch.early.messages() {
                        self.conversation.push(Arc::clone(result));
                    }
                }
            }
            Change::Todos(phases) => self.todos.replace(phases, now),
            Change::Reminders(reminds) => self.todos.set_reminders(reminds),
            Change::TodosDue => {
                let left = self.todos.clear_due(now);
                // One event for each item (dialects.md 8).
                out.extend((0..left).map(|_| Effect::Emit(Event::TodoAutoClear)));
            }
            Change::Rules {
                rules,
                settings,
                told,
            } => self.rules.set(Some(Watch::new(rules, settings, told))),
        }
    }

    /// Continues after a look at the context, a compaction or a move.
    pub(crate) fn go_on(&mut self, next: Next, aborted: bool, now: i64, out: &mut Vec<Effect>) {
        let aborted = aborted || self.aborted;
        match next {
            Next::Turn(run) if aborted => {
                // In a turn of its own, since the last one has ended (pi-core.md 1.8).
                out.push(Effect::Emit(Event::TurnStart));
                self.end_unanswered_turn(run, Ending::ABORTED, now, out);
            }
            Next::Turn(run) => self.next_turn(run, now, out),
            Next::Run(prompts) if aborted => {
                // The prompt was accepted, so its run must be seen to end.
                // The interrupt mode does not matter, since no tool runs.
                let run = self.open_run(InterruptMode::Wait, prompts, out);
                self.end_unanswered_turn(run, Ending::ABORTED, now, out);
            }
            Next::Run(prompts) => self.start_run(prompts.into(), now, out),
            Next::Again => self.start_run(RunStart::queued(), now, out),
            // An abort leaves queues as they are, and their messages must not start a run.
            Next::Rest(_) if aborted => self.settle(true, out),
            // The run that ended announced a reminder, whose run would name the limit of time.
            Next::Remind if aborted => self.end_announced_run(Ending::ABORTED, now, out),
            // Only what came meanwhile.
            Next::Rest(newest) if !self.queues.has_newer(newest) => self.settle(false, out),
            Next::Remind if self.queues.is_empty() => self.remind(now, out),
            Next::Rest(_) | Next::Remind => {
                // Messages were queued while no run could take them.
                let mut run = self.open_run(self.settings.interrupt_mode, Vec::new(), out);
                // Not with `start_run`, which takes steering only: follow-ups may be all that waits.
                let (kind, count) = self.queues.next_due(&self.settings, false);
                self.deliver(&mut run, kind, count, out);
                self.ask(run, now, out);
            }
        }
    }
}

/// A second overflow of the same prompt: told without a start, as pi does.
pub(crate) fn overflowed_twice() -> Event {
    // The words of pi (behaviour.md 8.3).
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

/// What precedes the error of a compaction in its events.
#[must_use]
pub const fn failure_prefix(reason: CompactionReason) -> &'static str {
    match reason {
        // The words of pi (pi-core.md 3.2).
        CompactionReason::Manual => "Compaction failed: ",
        CompactionReason::Threshold => "Auto-compaction failed: ",
        CompactionReason::Overflow => "Context overflow recovery failed: ",
    }
}
