//! The phases of a session: what it waits for, and what follows then. The turn loop moves from one to the next.

use std::sync::Arc;

use wire::event::CompactionReason;
use wire::state::InterruptMode;
use wire::{Event, Message};

use crate::batch::{ABORTED, Batch, LIMIT};
use crate::budget::RunBudget;
use crate::conversation::{Conversation, is_same, replace_equal};
use crate::convert;
use crate::effect::Effect;
use crate::input::{NestedCall, Verdict};
use crate::nested;
use crate::retry::RetrySettings;

/// A run: from `agent_start` to `agent_end`.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) added: Vec<Arc<Message>>,
    pub(crate) interrupt_mode: InterruptMode,
    /// Results of tools wait for the model.
    pub(crate) goes_on: bool,
    /// Turns that have ended.
    pub(crate) turns: u64,
}

impl Run {
    pub(crate) fn new(interrupt_mode: InterruptMode) -> Self {
        Self {
            added: Vec::new(),
            interrupt_mode,
            goes_on: false,
            turns: 0,
        }
    }

    /// The answer of a turn as the conversation shows it from now on: with the arguments that tools have repaired. The file keeps
    /// what the model wrote.
    pub(crate) fn repair(&mut self, batch: &Batch, conversation: &mut Conversation) -> Arc<Message> {
        let Some(repaired) = batch.repaired() else {
            return Arc::clone(&batch.message);
        };
        conversation.replace_newest(&batch.message, &repaired);
        replace_equal(&mut self.added, &batch.message, &repaired, 0);
        repaired
    }
}

/// The messages that a run begins with.
#[derive(Debug, Clone)]
pub(crate) struct RunStart {
    /// Those of the prompt; none for a run that goes on.
    pub(crate) messages: Vec<Arc<Message>>,
    /// Number of the newest queued message that may go with them; later ones wait for the end of the first turn.
    pub(crate) newest: u64,
}

impl RunStart {
    /// No messages but the queued ones.
    pub(crate) fn queued() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<Arc<Message>>> for RunStart {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Self {
            messages,
            // All steering that waits may go with it.
            newest: u64::MAX,
        }
    }
}

/// What the session waits for.
#[derive(Debug, Clone, Default)]
pub(crate) enum Phase {
    #[default]
    Idle,
    /// A request is out; `true` once its `message_start` was sent.
    Asking(Run, bool),
    Tools(Run, Box<Batch>),
    /// A failed run waits to be tried again, with the messages of a prompt that came meanwhile.
    Waiting(RunStart),
    /// A run failed for good, with this error; the caller chooses another model.
    ChoosingModel(Run, String),
    /// The size of the context is checked.
    Checking(Next),
    /// The conversation is being compacted.
    Compacting(CompactionReason, Next),
    /// The session moves to another place of its tree; a summary may be in the making. This was the newest queued message
    /// before.
    Moving(u64),
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Nothing.
    Idle,
    /// It waits for an answer of the model.
    Asking {
        /// True once the answer has begun.
        has_begun: bool,
    },
    /// Tools run.
    Calling,
    /// A failed run waits to be tried again.
    WaitingToRetry {
        /// True if a prompt came meanwhile, with which the retry begins.
        joined: bool,
    },
    /// A run failed for good, and the caller chooses another model.
    ChoosingModel,
    /// The size of the context is checked.
    Checking {
        /// True between two turns of a run.
        in_run: bool,
    },
    /// The conversation is being compacted.
    Compacting {
        /// Why.
        reason: CompactionReason,
        /// True if a run that overflowed is tried again after it.
        again: bool,
        /// True between two turns of a run.
        in_run: bool,
    },
    /// The session moves to another place of its tree; a branch that is left may be summarised.
    Moving,
}

impl Activity {
    /// Returns true if a run is under way.
    #[must_use]
    pub fn is_running(self) -> bool {
        match self {
            // The run of `ChoosingModel` has not ended yet: the next model may go on with it.
            Self::Asking { .. } | Self::Calling | Self::ChoosingModel => true,
            Self::Checking { in_run } | Self::Compacting { in_run, .. } => in_run,
            // A retry delay is no run: `isStreaming` is false in it, except in `pi-delta` (behaviour.md 7.6).
            Self::Idle | Self::WaitingToRetry { .. } | Self::Moving => false,
        }
    }

    /// Returns true for work that a client asked for and that belongs to no run: a manual compaction, a move in the tree.
    #[must_use]
    pub fn is_outside_runs(self) -> bool {
        match self {
            Self::Moving => true,
            Self::Compacting { reason, .. } => reason == CompactionReason::Manual,
            _ => false,
        }
    }

    /// Returns true if the conversation is being compacted, or a branch that is left being summarised.
    #[must_use]
    pub fn is_compacting(self) -> bool {
        matches!(self, Self::Compacting { .. } | Self::Moving)
    }
}

impl Phase {
    /// Ends the delay before a retry; none outside of one, as after an abort.
    pub(crate) fn end_delay(&mut self) -> Option<RunStart> {
        match self {
            // The phase stays until the caller begins the run or settles.
            Self::Waiting(start) => Some(std::mem::replace(start, RunStart::queued())),
            _ => None,
        }
    }

    /// The first prompt during the delay before a retry, which begins with it. As in pi, whose run begins then, messages after the
    /// newest queued one wait for the end of the first turn.
    pub(crate) fn join(&mut self, messages: Vec<Arc<Message>>, newest: u64) {
        // The session refuses or queues later prompts: from the first on it streams, as in pi (behaviour.md 7.6).
        if let Self::Waiting(start) = self
            && start.messages.is_empty()
        {
            *start = RunStart { messages, newest };
        }
    }

    /// What clients and the caller learn of the phase.
    pub(crate) fn activity(&self) -> Activity {
        let in_run = |next: &Next| matches!(next, Next::Turn(_));
        match self {
            Self::Idle => Activity::Idle,
            Self::Asking(_, has_begun) => Activity::Asking {
                has_begun: *has_begun,
            },
            Self::Tools(..) => Activity::Calling,
            Self::Waiting(start) => Activity::WaitingToRetry {
                joined: !start.messages.is_empty(),
            },
            Self::ChoosingModel(..) => Activity::ChoosingModel,
            Self::Checking(next) => Activity::Checking { in_run: in_run(next) },
            Self::Compacting(reason, next) => Activity::Compacting {
                reason: *reason,
                again: matches!(next, Next::Again),
                in_run: in_run(next),
            },
            Self::Moving(_) => Activity::Moving,
        }
    }

    /// The run that is under way.
    pub(crate) fn run(&self) -> Option<&Run> {
        match self {
            Self::Asking(run, _)
            | Self::Tools(run, _)
            | Self::ChoosingModel(run, _)
            | Self::Checking(Next::Turn(run))
            | Self::Compacting(_, Next::Turn(run)) => Some(run),
            Self::Idle | Self::Waiting(_) | Self::Checking(_) | Self::Compacting(..) | Self::Moving(_) => {
                None
            }
        }
    }

    /// An input comes at this time.
    pub(crate) fn tick(&mut self, now: i64) {
        if let Self::Tools(_, batch) = self {
            batch.early.tick(now);
        }
    }

    /// A tool calls another one. Such calls use up the limit of tool calls like those of the model. The tool waits for an answer in any
    /// case.
    pub(crate) fn nest(
        &mut self,
        call: NestedCall,
        aborted: bool,
        budget: &mut RunBudget,
        out: &mut Vec<Effect>,
    ) {
        match self {
            Self::Tools(..) if !aborted && budget.calls_left() == Some(0) => {
                nested::refuse(call.request, LIMIT, out)
            }
            Self::Tools(_, batch) if !aborted => {
                if batch.nest(call, out) {
                    budget.called(1);
                }
            }
            _ => nested::refuse(call.request, ABORTED, out),
        }
    }

    /// A tool that called another one no longer wants the result. Without a batch the call has ended already.
    pub(crate) fn withdraw_nested(&mut self, request: u64, out: &mut Vec<Effect>) {
        if let Self::Tools(_, batch) = self {
            batch.nested.withdraw(request, out);
        }
    }

    /// Puts another message in the place of one in the run that is under way: the one with `newer` equal ones behind it.
    pub(crate) fn replace(&mut self, old: &Arc<Message>, new: &Arc<Message>, newer: usize) {
        match self {
            Self::Asking(run, _)
            | Self::ChoosingModel(run, _)
            | Self::Checking(Next::Turn(run))
            | Self::Compacting(_, Next::Turn(run)) => replace_equal(&mut run.added, old, new, newer),
            Self::Tools(run, batch) => {
                replace_equal(&mut run.added, old, new, newer);
                batch.early.replace(old, new);
                // `turn_end` shows the answer of the batch.
                if is_same(&batch.message, old) {
                    batch.message = Arc::clone(new);
                }
            }
            Self::Idle | Self::Waiting(_) | Self::Checking(_) | Self::Compacting(..) | Self::Moving(_) => {}
        }
    }
}

/// What comes after looking at the context or compacting it.
#[derive(Debug, Clone)]
pub(crate) enum Next {
    /// The next turn of a run that is under way.
    Turn(Run),
    /// A run that begins with these messages.
    Run(Vec<Arc<Message>>),
    /// The run that overflowed, once more.
    Again,
    /// Nothing, unless something was queued meanwhile, after the message with this number.
    Rest(u64),
    /// The same after a run that ended well, with empty queues: the model may have to be reminded of its todos.
    Remind,
}

/// Attempts to make a prompt succeed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recovery {
    /// Retries made since the last success.
    pub(crate) attempt: u32,
    /// The wait for a used-up quota that is too long for a retry, in milliseconds.
    too_long: Option<u64>,
    /// Has the prompt overflowed before? One compaction per prompt must do.
    pub(crate) overflowed: bool,
    /// Answers in a row without text and calls.
    silent: u32,
    /// The model is asked again after the last one of them.
    asks_again: bool,
}

impl Recovery {
    /// A message of the user: counts of the message before it begin anew.
    pub(crate) fn user_spoke(&mut self) {
        // The count of retries stays: only a good answer resets it (pi-core.md 4.1).
        self.overflowed = false;
        self.silent = 0;
    }

    /// Notes an answer that would end the run. Returns true if the model is asked again, which is done at most `most` times.
    pub(crate) fn note_answer(&mut self, answer: &Message, most: u32) -> bool {
        let is_silent = answer.as_assistant().is_some_and(convert::is_silent);
        self.asks_again = is_silent && self.silent < most;
        self.silent = if is_silent {
            self.silent.saturating_add(1)
        } else {
            0
        };
        self.asks_again
    }

    /// Returns true once if the model is asked again.
    pub(crate) fn take_question(&mut self) -> bool {
        std::mem::take(&mut self.asks_again)
    }

    /// What a used-up quota means: a retry if it comes back within the longest delay, else a failure of the model for good.
    pub(crate) fn weigh_quota(&mut self, verdict: Verdict, retry: RetrySettings) -> Verdict {
        // That of an earlier run.
        self.too_long = None;
        match verdict {
            Verdict::Exhausted(wait) if wait <= retry.max_delay_ms => Verdict::Retry(Some(wait)),
            Verdict::Exhausted(wait) => {
                let may_retry = retry.enabled && self.attempt < retry.max_retries;
                self.too_long = may_retry.then_some(wait);
                Verdict::Unavailable
            }
            verdict => verdict,
        }
    }

    /// Ends the retries of a model that has failed for good. If a retry would have to wait too long and no other model answers
    /// (`is_last`), clients hear why there is none, as in oh-my-pi.
    pub(crate) fn end_for_good(&mut self, error: &str, is_last: bool, retry: RetrySettings) -> Option<Event> {
        let Some(wait) = self.too_long.take().filter(|_| is_last) else {
            return self.end_retries(Some(error.to_owned()));
        };
        self.attempt += 1;
        let longest = retry.max_delay_ms;
        self.end_retries(Some(format!(
            "Provider requested {wait}ms wait, exceeds retry.maxDelayMs ({longest}ms). Original error: {error}"
        )))
    }

    /// No retry will follow any more: after a success, or with the error of the last attempt. Gives the event for it if any
    /// retry was made.
    pub(crate) fn end_retries(&mut self, final_error: Option<String>) -> Option<Event> {
        let attempt = std::mem::take(&mut self.attempt);
        (attempt > 0).then_some(Event::AutoRetryEnd {
            success: final_error.is_none(),
            attempt,
            final_error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_end_once_and_only_if_made() {
        let mut recovery = Recovery::default();
        assert!(recovery.end_retries(None).is_none());
        recovery.attempt = 2;
        let Some(Event::AutoRetryEnd {
            success,
            attempt,
            final_error,
        }) = recovery.end_retries(Some("late".to_owned()))
        else {
            panic!("no event")
        };
        assert_eq!(
            (success, attempt, final_error.as_deref()),
            (false, 2, Some("late"))
        );
        assert!(recovery.end_retries(None).is_none(), "once");
    }

    #[test]
    fn compaction_between_turns_belongs_to_run() {
        let run = || Run::new(InterruptMode::Wait);
        let between = Phase::Compacting(CompactionReason::Threshold, Next::Turn(run())).activity();
        assert!(between.is_running() && between.is_compacting());
        let after = Phase::Compacting(CompactionReason::Overflow, Next::Again).activity();
        assert!(!after.is_running() && after.is_compacting());
        assert!(Phase::Checking(Next::Turn(run())).activity().is_running());
        assert!(!Phase::Checking(Next::Rest(0)).activity().is_running());
        assert!(!Phase::Waiting(RunStart::queued()).activity().is_running());
        assert!(Phase::Moving(0).activity().is_compacting());
    }
}
