//! The result that a run must give if its prompt has a schema: which attempts were made, whether the model gets a message, what
//! `agent_end` says (docs/guides/results.md). Whether a value fits the schema is checked by the tool.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wire::run_limits::ReachedLimit;
use wire::{Event, Message, ToolResult};

use crate::limits::RESULT_REPAIRS;
use crate::phase::Run;

/// The tool with which a model gives the result. A result that fits the schema is the structured content of its call.
pub const TOOL: &str = "submit_result";

/// The type of the message that tells the model that the result is missing.
pub(crate) const MISSING_MESSAGE: &str = "result-missing";

/// What a run ends with if the model was asked for a result and gave none.
const NONE_GIVEN: &str = "The model gave no result";

/// What a run ends with if it was aborted before there was a result.
const ABORTED: &str = "The run was aborted before the model gave a result";

/// The result of the current prompt.
#[derive(Debug, Clone, Default)]
pub struct Output {
    state: State,
    /// Valid results of the calls that run, by the position of the call.
    submitted: BTreeMap<usize, Value>,
    /// The newest valid result.
    result: Option<Value>,
    /// Why the newest attempt failed.
    error: Option<String>,
    /// Failed attempts.
    failures: u32,
    /// The model gets a message before the next request.
    reminds: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// The prompt wants no result, or has got it.
    #[default]
    None,
    /// The run must give a result.
    Expected,
    /// The run ended without one. If it is continued, it must give one again.
    Ended,
}

impl Output {
    /// The result of a prompt that has a schema, or none.
    pub(crate) fn of_prompt(is_expected: bool) -> Self {
        Self {
            state: if is_expected { State::Expected } else { State::None },
            ..Self::default()
        }
    }

    /// Returns true if the model may give a result.
    #[must_use]
    pub fn is_expected(&self) -> bool {
        self.state == State::Expected
    }

    /// A run that ended without a result goes on.
    pub(crate) fn resume(&mut self) {
        let is_expected = self.state != State::None;
        *self = Self::of_prompt(is_expected);
    }

    /// A call of a tool ended.
    pub(crate) fn call_ended(&mut self, slot: usize, tool: Option<&str>, result: &ToolResult) {
        if self.is_expected() && tool == Some(TOOL) {
            let value = result.structured_content.clone();
            self.submitted.extend(value.map(|value| (slot, value)));
        }
    }

    /// A turn ended with these results of its calls, none if it was an answer. `has_more` tells that messages wait. Decides whether the run
    /// goes on.
    pub(crate) fn turn_ended(&mut self, run: &mut Run, results: &[Arc<Message>], has_more: bool) {
        // In any case: the positions are those of one batch.
        let mut submitted = std::mem::take(&mut self.submitted);
        if !self.is_expected() {
            return;
        }
        // Results come in the order of the calls, so their places are the slots, and the last valid one counts.
        let attempts = results
            .iter()
            .enumerate()
            .filter_map(|(slot, result)| match &**result {
                Message::ToolResult(result) if result.tool_name == TOOL => Some((slot, result)),
                _ => None,
            });
        let mut is_given = false;
        for (slot, attempt) in attempts {
            // Hooks may have made an error of a valid result.
            match submitted.remove(&slot).filter(|_| !attempt.is_error) {
                Some(value) => {
                    is_given = true;
                    self.result = Some(value);
                }
                None => {
                    self.failures += 1;
                    self.error = Some(wire::content::joined_text(&attempt.content));
                }
            }
        }
        let has_failed = self.failures > RESULT_REPAIRS;
        // After too many failed attempts the run ends with the last error, instead of asking for ever.
        if is_given || has_failed {
            run.goes_on = false;
        // An answer without calls would end the run. While messages wait it does not, and the model gets another turn anyway.
        } else if results.is_empty() && self.result.is_none() && !has_more {
            self.failures += 1;
            self.reminds = self.failures <= RESULT_REPAIRS;
            run.goes_on = self.reminds;
        }
    }

    /// The message for the model, if the result is missing.
    pub(crate) fn take_reminder(&mut self) -> Option<String> {
        std::mem::take(&mut self.reminds).then(|| {
            format!("The result is missing. Call {TOOL} with the result of the work; text alone is not read.")
        })
    }

    /// The event for the end of a run. The last run of a prompt has the result, or says why there is none.
    pub(crate) fn end(&mut self, run: Run, ending: Ending<'_>) -> Event {
        let mut event = (None, None);
        // A result that was given before a retry waits for the last `agent_end` of the prompt (docs/guides/results.md).
        if self.is_expected() && !ending.will_retry {
            event = match self.result.take() {
                Some(result) => (Some(result), None),
                None => (None, Some(self.failure(&ending))),
            };
            let is_given = event.0.is_some();
            self.state = if is_given { State::None } else { State::Ended };
        }
        Event::AgentEnd {
            messages: run.added,
            will_retry: ending.will_retry,
            limit: ending.limit,
            result: event.0,
            result_error: event.1,
        }
    }

    fn failure(&mut self, ending: &Ending<'_>) -> String {
        // The limit first: a run is aborted at its deadline, and the limit is the reason.
        if let Some(limit) = ending.limit {
            return format!("Limit reached: {limit}");
        }
        if ending.aborted {
            return ABORTED.to_owned();
        }
        // A provider may fail without a text.
        let error = ending.error.filter(|error| !error.is_empty()).map(str::to_owned);
        error
            .or_else(|| self.error.take())
            .unwrap_or_else(|| NONE_GIVEN.to_owned())
    }
}

impl Ending<'_> {
    /// Another run follows by itself.
    pub(crate) const RETRY: Self = Self {
        will_retry: true,
        limit: None,
        aborted: false,
        error: None,
    };

    /// It was aborted.
    pub(crate) const ABORTED: Self = Self {
        will_retry: false,
        limit: None,
        aborted: true,
        error: None,
    };

    /// This limit ended it; without one it ended by itself.
    pub(crate) fn at_limit(limit: Option<ReachedLimit>) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }
}

/// How a run ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ending<'a> {
    /// Another run follows by itself.
    pub(crate) will_retry: bool,
    /// The limit that ended it.
    pub(crate) limit: Option<ReachedLimit>,
    /// It was aborted.
    pub(crate) aborted: bool,
    /// The error of the answer that failed.
    pub(crate) error: Option<&'a str>,
}
