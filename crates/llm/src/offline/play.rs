//! Plays steps as the events of an answer, in their time. Where the steps come from is not known here.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use wire::{StopReason, ThinkingContent, Usage};

use crate::answer::{Answer, Fault};
use crate::event::ModelEvent;
use crate::request::ModelRequest;
use crate::stream::ABORTED_EARLY;

/// One step of an answer.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// The request is accepted.
    Begin,
    /// Nothing happens for a while.
    Wait(Duration),
    /// A text block begins.
    Text,
    /// A reasoning block begins.
    Thinking(ThinkingContent),
    /// A tool call begins.
    Call {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
    },
    /// The open block grows.
    Delta(String),
    /// The open block ends.
    End,
    /// Token counts.
    Usage(Usage),
    /// The answer is complete.
    Done(StopReason),
    /// The answer fails.
    Fail(Fault),
}

/// An answer being played.
pub(crate) struct Playing {
    answer: Answer,
    steps: VecDeque<Step>,
    /// The block that grows.
    open: Option<usize>,
    /// The request was accepted.
    begun: bool,
    /// When the wait in front ends, once it has begun.
    until: Option<Instant>,
}

impl Playing {
    /// The steps as an answer to a request.
    pub(super) fn new(request: &ModelRequest, steps: VecDeque<Step>) -> Self {
        Self {
            answer: Answer::new(request),
            steps,
            open: None,
            begun: false,
            until: None,
        }
    }

    /// The answer so far.
    pub(crate) fn answer_so_far(&self) -> &Answer {
        &self.answer
    }

    /// Plays on until there are events and the next step is a wait. True after the last event. Dropping it while it waits
    /// loses nothing.
    pub(crate) async fn step(&mut self, cancel: &CancellationToken, out: &mut Vec<ModelEvent>) -> bool {
        let before = out.len();
        loop {
            if cancel.is_cancelled() {
                self.abort(out);
                return true;
            }
            if let Some(Step::Wait(time)) = self.steps.front() {
                if out.len() > before {
                    return false;
                }
                let until = *self.until.get_or_insert_with(|| Instant::now() + *time);
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => continue,
                    () = sleep_until(until) => {}
                }
                self.until = None;
                self.steps.pop_front();
                continue;
            }
            let step = self.steps.pop_front().unwrap_or(Step::Done(StopReason::Stop));
            match self.play(step, out) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(fault) => {
                    self.answer.failed(StopReason::Error, fault, out);
                    return true;
                }
            }
        }
    }

    /// Plays one step that is no wait. True after the last.
    fn play(&mut self, step: Step, out: &mut Vec<ModelEvent>) -> Result<bool, Fault> {
        match step {
            Step::Begin => {
                self.begun = true;
                out.push(ModelEvent::Start(self.answer.head()));
            }
            Step::Wait(_) => {}
            Step::Text => self.open = Some(self.answer.start_text(out)?),
            Step::Thinking(block) => self.open = Some(self.answer.start_thinking(block, out)?),
            Step::Call { id, name } => self.open = Some(self.answer.start_call(id, name, out)?),
            Step::Delta(text) => {
                if let Some(block) = self.open {
                    self.answer.delta(block, &text, out)?;
                }
            }
            Step::End => {
                if let Some(block) = self.open.take() {
                    self.answer.end(block, out);
                }
            }
            Step::Usage(usage) => self.answer.set_usage(usage, out),
            Step::Done(reason) => {
                self.answer.end_all(out);
                self.answer.message().stop_reason = reason;
                self.answer.done(out);
                return Ok(true);
            }
            Step::Fail(fault) => return Err(fault),
        }
        Ok(false)
    }

    /// Ends the answer where it is (behaviour.md 3.6).
    fn abort(&mut self, out: &mut Vec<ModelEvent>) {
        self.answer.end_all(out);
        let text = if self.begun {
            "Request was aborted"
        } else {
            ABORTED_EARLY
        };
        self.answer.failed(StopReason::Aborted, Fault::new(text), out);
    }
}
