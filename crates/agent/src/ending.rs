//! How a run ends: aborted, failed and to be tried again, for good (pi-core.md 1.8, pi-1.5-delta.md 5); and the run that follows by
//! itself, when the model is reminded of open todos or told a rule that its answer went against (dialects.md 8). How a run
//! goes on is in `turn_loop`.

use std::sync::Arc;

use wire::event::CompactionReason;
use wire::omp::SILENT_ANSWER;
use wire::state::InterruptMode;
use wire::{AssistantMessage, Event, Message, Rule, StopReason};

use crate::batch::Refusal;
use crate::budget::RunBudget;
use crate::convert;
use crate::effect::Effect;
use crate::input::{Fallback, Verdict};
use crate::output::Ending;
use crate::phase::{Next, Phase, Recovery, Run, RunStart};
use crate::pressure::overflowed_twice;
use crate::settings::{FailureRules, LoopSettings};
use crate::todo::REMINDER_MESSAGE;
use crate::ttsr::hidden;
use crate::turn_loop::{RETRY_CANCELLED, TurnLoop, no_retry};

/// The hidden message after an answer with reasoning only.
const SILENT_TEXT: &str = "Your last answer contained reasoning only, which the user does not see. Give the answer to the user now, or \
                           make the next tool call.";
/// The hidden message after an empty answer.
const EMPTY_TEXT: &str =
    "Your last answer was empty. Give the answer to the user now, or make the next tool call.";

/// What follows a failed run: in today's pi a run for messages that wait, unless a limit is reached.
fn after_failure(settings: &LoopSettings, budget: &RunBudget) -> Next {
    // No message has the last number.
    let takes_queue = settings.failures == FailureRules::NewestPi && budget.reached().is_none();
    Next::Rest(if takes_queue { 0 } else { u64::MAX })
}

impl FailureRules {
    /// What the end of the retries says after an error: today's pi names an abort instead.
    fn last_error(self, aborted: bool, error: String) -> String {
        if aborted && self == Self::NewestPi {
            RETRY_CANCELLED.to_owned()
        } else {
            error
        }
    }

    /// The end of the retries and, if it `is_second`, of the recovery from an overflow, in the order of the dialect.
    fn events_of_failure(
        self,
        recovery: &mut Recovery,
        is_second: bool,
        aborted: bool,
        error: String,
    ) -> impl Iterator<Item = Event> {
        let overflow = is_second.then(overflowed_twice);
        let retries = recovery.end_retries(Some(self.last_error(aborted, error)));
        let [first, second] = if self == Self::NewestPi {
            [retries, overflow]
        } else {
            [overflow, retries]
        };
        first.into_iter().chain(second)
    }
}

impl TurnLoop {
    /// Ends a turn that has begun and cannot be answered: the run was aborted, a limit allows no request, or there is no room for one.
    /// An empty answer marks it. After an abort or at a limit its stop reason is `aborted`, as pi's clients know it; unlike in pi the
    /// queues are not touched (pi-core.md 1.8).
    pub(crate) fn end_unanswered_turn(
        &mut self,
        mut run: Run,
        ending: Ending<'_>,
        now: i64,
        out: &mut Vec<Effect>,
    ) {
        let mut answer = match self.conversation.last_answer() {
            Some(last) => AssistantMessage {
                // Zero only if the answers of this conversation say how long they took at all.
                duration_ms: last.duration_ms.map(|_| 0),
                thinking_level: last.thinking_level.clone(),
                ..AssistantMessage::begin(&last.api, &last.provider, &last.model, now)
            },
            // Before any answer there is no model to name; `spending` skips such a mark.
            None => AssistantMessage::begin("", "", "", now),
        };
        let (stop_reason, error) = match (ending.limit, ending.error) {
            (Some(limit), _) => (StopReason::Aborted, format!("Limit reached: {limit}")),
            (None, Some(error)) => (StopReason::Error, error.to_owned()),
            // With a full stop, as for a request without a response (behaviour.md 3.6).
            (None, None) => (StopReason::Aborted, "Request was aborted.".to_owned()),
        };
        answer.stop_reason = stop_reason;
        answer.error_message = Some(error);
        let message: Arc<Message> = answer.into();
        self.say(&mut run, Arc::clone(&message), out);
        run.turns += 1;
        out.push(Effect::Emit(Event::TurnEnd {
            message,
            tool_results: Vec::new(),
        }));
        self.finish_run(run, ending, out);
    }

    /// Ends the work of a prompt whose newest `agent_end` announced another run that does not follow. The last `agent_end` of a prompt
    /// has its result, or says why there is none, and names the limit that ended the work. So a run without a request follows, but only
    /// if there is a result or a limit to tell: otherwise the session settles, as in pi. A run for messages that wait takes its place.
    pub(crate) fn end_announced_run(&mut self, ending: Ending<'_>, now: i64, out: &mut Vec<Effect>) {
        let next = after_failure(&self.settings, &self.budget);
        if !ending.aborted && matches!(next, Next::Rest(newest) if self.queues.has_newer(newest)) {
            return self.go_on(next, false, now, out);
        }
        // As in `finish_run`: an abort at the deadline names the limit.
        let limit = if ending.aborted {
            self.budget.timed_out()
        } else {
            ending.limit
        };
        if !self.output.is_expected() && limit.is_none() {
            return self.settle(ending.aborted, out);
        }
        // The interrupt mode does not matter, since no tool runs.
        let run = self.open_run(InterruptMode::Wait, Vec::new(), out);
        self.end_unanswered_turn(run, ending, now, out);
    }

    /// A run ended with an answer that failed.
    pub(crate) fn end_run(
        &mut self,
        run: Run,
        answer: &AssistantMessage,
        verdict: Verdict,
        now: i64,
        out: &mut Vec<Effect>,
    ) {
        let aborted = self.aborted || answer.stop_reason == StopReason::Aborted;
        let (retry, limit) = (self.settings.retry, self.budget.reached());
        let error = answer.error_message.clone().unwrap_or_default();
        let may_ask = !aborted && limit.is_none();
        match verdict {
            Verdict::Retry(asked)
                if may_ask && retry.enabled && self.recovery.attempt < retry.max_retries =>
            {
                self.recovery.attempt += 1;
                let delay_ms = retry.delay_ms(self.recovery.attempt, asked);
                // In the order of pi: the run ends before its retry is announced (behaviour.md 7.2).
                out.push(Effect::Emit(self.output.end(run, Ending::RETRY)));
                out.push(Effect::Emit(Event::AutoRetryStart {
                    attempt: self.recovery.attempt,
                    max_attempts: retry.max_retries,
                    delay_ms,
                    error_message: error,
                }));
                // The failed answer stays in the file but leaves the conversation.
                self.conversation.pop();
                // Without the prompt, which `agent_end` of the retry does not repeat (behaviour.md 2.10).
                self.phase = Phase::Waiting(RunStart::queued());
                out.push(Effect::StartRetryTimer(delay_ms));
            }
            Verdict::Overflow if may_ask && !self.recovery.overflowed => {
                self.recovery.overflowed = true;
                // `willRetry` is not certain yet: no run follows if the compaction fails, which `compaction_end` tells.
                out.push(Effect::Emit(self.output.end(run, Ending::RETRY)));
                if self.settings.failures == FailureRules::NewestPi {
                    out.extend(self.recovery.end_retries(Some(error)).map(Effect::Emit));
                }
                // As with a retry: the failed answer stays in the file but leaves the conversation.
                self.conversation.pop();
                self.compact(CompactionReason::Overflow, Next::Again, out);
            }
            // After the arm with the retries: another model is asked only when this one has failed for good.
            Verdict::Retry(_) | Verdict::Unavailable if may_ask => {
                self.phase = Phase::ChoosingModel(run, error);
                out.push(Effect::ChooseModel);
            }
            _ => {
                // Without the limit, the run would have gone on.
                let is_cut_off = matches!(verdict, Verdict::Retry(_) | Verdict::Overflow);
                let limit = limit.filter(|_| is_cut_off);
                let ending = Ending {
                    limit: if aborted { self.budget.timed_out() } else { limit },
                    aborted,
                    error: Some(&error),
                    ..Ending::default()
                };
                out.push(Effect::Emit(self.output.end(run, ending)));
                // At a limit the first overflow is not recovered from, so there was no recovery that could fail.
                let is_second = verdict == Verdict::Overflow && !aborted && self.recovery.overflowed;
                // After `agent_end`, as in pi (behaviour.md 7.2).
                let events =
                    (self.settings.failures).events_of_failure(&mut self.recovery, is_second, aborted, error);
                out.extend(events.map(Effect::Emit));
                // A compaction did not help the context that overflowed.
                self.follow_failure(aborted || is_second, aborted, now, out);
            }
        }
    }

    /// Continues after a run that failed for good. Today's pi looks at the context before it takes messages that wait.
    fn follow_failure(&mut self, skips_check: bool, aborted: bool, now: i64, out: &mut Vec<Effect>) {
        let next = after_failure(&self.settings, &self.budget);
        // Today's pi compacts a full context first, but not after a second overflow (pi-1.5-delta.md 5).
        if skips_check || self.settings.failures != FailureRules::NewestPi {
            return self.go_on(next, aborted, now, out);
        }
        self.phase = Phase::Checking(next);
        out.push(Effect::CheckContext);
    }

    /// The run goes on with another model: as with a retry, the failed answer stays in the file but leaves the conversation. Without
    /// one, as in most sessions, it has failed.
    pub(crate) fn on_fallback(&mut self, fallback: Option<Fallback>, now: i64, out: &mut Vec<Effect>) {
        let (run, error) = match std::mem::take(&mut self.phase) {
            Phase::ChoosingModel(run, error) => (run, error),
            phase => {
                self.phase = phase;
                return;
            }
        };
        // An abort while the caller chose ends the run.
        let fallback = fallback.filter(|_| !self.aborted);
        let ending = Ending {
            will_retry: fallback.is_some(),
            // As in `finish_run`: an abort at the deadline names the limit.
            limit: self.aborted.then(|| self.budget.timed_out()).flatten(),
            aborted: self.aborted,
            error: Some(&error),
        };
        out.push(Effect::Emit(self.output.end(run, ending)));
        // They were retries of the model that has failed.
        let is_last = fallback.is_none() && !self.aborted;
        let why = self.settings.failures.last_error(self.aborted, error.clone());
        let ended = self.recovery.end_for_good(&why, is_last, self.settings.retry);
        out.extend(ended.map(Effect::Emit));
        let Some(Fallback { from, to }) = fallback else {
            return self.follow_failure(self.aborted, false, now, out);
        };
        // Hooks of `turn_end` may have added messages behind it while the caller chose.
        self.conversation.drop_failed_answer();
        out.push(Effect::Emit(Event::ModelFallback {
            from,
            to,
            reason: error,
        }));
        self.start_run(RunStart::queued(), now, out);
    }

    pub(crate) fn finish_run(&mut self, run: Run, mut ending: Ending<'_>, out: &mut Vec<Effect>) {
        // The caller aborts a run at its deadline: such an abort names the limit, any other names none.
        if ending.aborted {
            ending.limit = self.budget.timed_out();
        }
        out.push(Effect::Emit(self.output.end(run, ending)));
        // The run may have been a retry, whose end clients wait for; after `agent_end`, as in `end_run`.
        let why = no_retry(ending.limit);
        out.extend(self.recovery.end_retries(Some(why)).map(Effect::Emit));
        self.settle(ending.aborted, out);
    }

    pub(crate) fn settle(&mut self, aborted: bool, out: &mut Vec<Effect>) {
        self.phase = Phase::Idle;
        self.aborted = false;
        // A compaction or a move by itself is no run: clients that collect a run until it has settled must not see one end.
        if std::mem::take(&mut self.has_run) {
            out.push(Effect::Emit(Event::AgentSettled { aborted }));
        }
        out.push(Effect::Idle);
    }

    pub(crate) fn abort(&mut self, now: i64, out: &mut Vec<Effect>) {
        // Not while idle: `aborted` is reset when the session settles, and would abort the next run.
        if self.aborted || self.is_idle() {
            return;
        }
        self.aborted = true;
        match &mut self.phase {
            // The run ends with the answer so far, which the cancelled request still gives.
            Phase::Asking(..) => out.push(Effect::CancelModel),
            // What still runs or is looked up reports back; the turn ends then.
            Phase::Tools(..) => {
                if let Phase::Tools(run, mut batch) = std::mem::take(&mut self.phase) {
                    batch.stop(Refusal::Aborted, out);
                    // At once: if no call runs, no report comes that would end the turn.
                    self.advance(run, batch, false, now, out);
                }
            }
            Phase::Waiting(_) => self.abort_retry(true, now, out),
            // While hooks are asked, the compaction has not begun, so there is no summary to cancel.
            Phase::Compacting(..) | Phase::Moving(_) => match self.hooks.take_compaction() {
                Some(ticket) => out.extend([Effect::CancelHooks(ticket), Effect::EndCompaction(None)]),
                None => out.push(Effect::CancelCompaction),
            },
            // The answer to the question comes in any case. `go_on` and `on_fallback` see the abort then.
            Phase::Idle | Phase::Checking(_) | Phase::ChoosingModel(..) => {}
        }
    }

    /// Ends a retry delay. Without another attempt the run has failed, which is no abort (recorded from pi 1.5.2). A prompt that came
    /// meanwhile begins a run of its own, unless everything is aborted.
    pub(crate) fn abort_retry(&mut self, aborted: bool, now: i64, out: &mut Vec<Effect>) {
        let Some(start) = self.phase.end_delay() else {
            return;
        };
        out.push(Effect::CancelRetryTimer);
        let why = Some(RETRY_CANCELLED.to_owned());
        out.extend(self.recovery.end_retries(why).map(Effect::Emit));
        if !aborted && !start.messages.is_empty() {
            return self.start_run(start, now, out);
        }
        // Without a result to tell, it ends like every other failure.
        if !aborted && !self.output.is_expected() {
            return self.follow_failure(false, false, now, out);
        }
        let cancelled = Ending {
            error: Some(RETRY_CANCELLED),
            ..Ending::default()
        };
        let ending = if aborted { Ending::ABORTED } else { cancelled };
        self.end_announced_run(ending, now, out);
    }

    /// A run ended well: asks the model again if its answer had neither text nor calls, reminds it if todos are open, else all is quiet.
    pub(crate) fn remind(&mut self, now: i64, out: &mut Vec<Effect>) {
        // First the answer that the user misses: open todos are looked at again when that run ends.
        if self.recovery.take_question() {
            let is_empty = self.conversation.last_answer().is_some_and(convert::is_empty);
            let text = if is_empty { EMPTY_TEXT } else { SILENT_TEXT };
            // As with a retry: an empty answer stays in the file but leaves the conversation.
            self.conversation.drop_empty();
            let message = Arc::new(hidden(SILENT_ANSWER, text.to_owned(), now));
            // Without events: only the model gets it, and no run is open that it could belong to.
            out.push(Effect::Persist(Arc::clone(&message)));
            self.conversation.push(message);
            return self.start_run(RunStart::queued(), now, out);
        }
        let Some(reminder) = self.todos.remind() else {
            // A client changed the list while the conversation was being compacted.
            self.settle(false, out);
            return;
        };
        let message = Arc::new(hidden(REMINDER_MESSAGE, reminder.text, now));
        out.push(Effect::Persist(Arc::clone(&message)));
        self.conversation.push(message);
        out.push(Effect::Emit(reminder.event));
        self.start_run(RunStart::queued(), now, out);
    }

    /// The answer that rules stopped has ended: tells the model the rules and begins another run.
    pub(crate) fn tell_rules(&mut self, run: Run, rules: &[Arc<Rule>], now: i64, out: &mut Vec<Effect>) {
        // The stopped answer used up the rest: rules that no request can follow are not told.
        if let Some(limit) = self.budget.reached() {
            return self.finish_run(run, Ending::at_limit(Some(limit)), out);
        }
        out.push(Effect::Emit(self.output.end(run, Ending::RETRY)));
        if !self.rules.keep_partial() {
            // As with a retry: it stays in the file but leaves the conversation.
            self.conversation.pop();
        }
        if let Some((message, entry)) = self.rules.tell(rules, now) {
            // Only the model hears it: it is on disk and in the conversation, but in no run.
            let message = Arc::new(message);
            out.push(Effect::Persist(Arc::clone(&message)));
            self.conversation.push(message);
            out.push(Effect::Record(entry));
        }
        self.start_run(RunStart::queued(), now, out);
    }
}
