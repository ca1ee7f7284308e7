//! The outcome of prompts for clients of today's oh-my-pi (dialects.md 5, row 35): one `prompt_result` for each accepted
//! prompt, `session_settled` after a run, and the same knowledge in `get_state`. Its RpcClient waits for these lines.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use wire::message::StopReason;
use wire::reply::Disposition;
use wire::{AssistantMessage, Dialect, Event, Reply, Response};

use super::json as text;
use crate::limits::OPEN_PROMPTS;

/// The accepted prompts of a session that have no `prompt_result` yet.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    open: Vec<OpenPrompt>,
    /// A run began and the session has not settled since.
    is_active: bool,
    /// Messages wait in a queue of the session.
    has_queue: bool,
    /// Automatic retries of the current run were made and none succeeded.
    retries_failed: bool,
    /// How the newest run ended: its status and, after a failure, the member `error`.
    outcome: Option<(&'static str, Option<Map<String, Value>>)>,
}

/// An accepted prompt.
#[derive(Debug)]
struct OpenPrompt {
    id: Option<Box<RawValue>>,
    /// It went into a queue. It stays open while a queue has messages.
    is_queued: bool,
}

impl Prompts {
    /// Follows an event, and appends the lines that come after it.
    pub(super) fn event(&mut self, event: &Event, dialect: Dialect, out: &mut Vec<u8>) {
        match event {
            Event::AgentStart => {
                self.is_active = true;
                self.outcome = None;
            }
            Event::QueueUpdate { steering, follow_up } => {
                self.has_queue = !steering.is_empty() || !follow_up.is_empty();
            }
            Event::AutoRetryStart { .. } => self.retries_failed = false,
            Event::AutoRetryEnd { success, .. } => self.retries_failed = !success,
            Event::AgentEnd { messages, .. } => {
                let answer = messages.iter().rev().find_map(|message| message.as_assistant());
                self.outcome = answer.map(outcome);
            }
            Event::AgentSettled { aborted } => self.settle(*aborted, dialect, out),
            // The run of the session that was left has been aborted.
            Event::SessionChanged { .. } => self.report(true, "aborted", None, dialect, out),
            _ => {}
        }
    }

    /// Follows a response, and appends the `prompt_result` of a prompt that no run follows.
    pub(super) fn response(&mut self, response: &Response, dialect: Dialect, out: &mut Vec<u8>) {
        let command = response.command.as_ref().and_then(Value::as_str);
        let Ok(Reply::Accepted(accepted)) = &response.outcome else {
            return;
        };
        if !dialect.reports_prompts() || !matches!(command, Some("prompt" | "abort_and_prompt")) {
            return;
        }
        let prompt = OpenPrompt {
            id: response.id.clone(),
            is_queued: accepted.disposition == Disposition::Queued,
        };
        if accepted.disposition == Disposition::Handled {
            let settled = self.is_settled();
            prompt.write(false, "completed", None, settled, out);
        // Bounded, since a client may send prompts without end during a run.
        } else if self.open.len() < OPEN_PROMPTS {
            self.open.push(prompt);
        } else {
            let error = json!({"message": "Too many prompts are open: the outcome is not reported", "retryable": false});
            prompt.write(true, "error", Some(&error), false, out);
        }
    }

    /// The response to `get_state` with the members that tell whether the session is idle; none for other lines.
    pub(super) fn state(&self, response: &Response, dialect: Dialect) -> Option<Map<String, Value>> {
        let Ok(Reply::State(state)) = &response.outcome else {
            return None;
        };
        if !dialect.reports_prompts() {
            return None;
        }
        let Ok(Value::Object(mut line)) = serde_json::to_value(response) else {
            return None;
        };
        let data = line.get_mut("data")?.as_object_mut()?;
        // The client joined during a run if the state contains a run without its `agent_start` event.
        let is_busy = state.is_streaming || state.is_retrying || state.queued_message_count > 0;
        data.insert("isSettled".to_owned(), (!is_busy && self.is_settled()).into());
        // A retry that waits for its time is the only work that wakes an idle session.
        data.insert("hasPendingAsyncWork".to_owned(), state.is_retrying.into());
        Some(line)
    }

    /// The session is idle. Prompts stay open while their message waits in a queue.
    fn settle(&mut self, aborted: bool, dialect: Dialect, out: &mut Vec<u8>) {
        self.is_active = false;
        let (status, error) = match self.outcome.take() {
            // First: an abort in the wait for a retry follows an answer that failed.
            _ if aborted => ("aborted", None),
            Some((status, error)) => (status, error),
            None => ("completed", None),
        };
        // Only failures that may pass are retried. Retries end after the run, so this is known now.
        let retryable = std::mem::take(&mut self.retries_failed);
        let error = error.map(|mut error: Map<String, Value>| {
            error.insert("retryable".to_owned(), retryable.into());
            Value::from(error)
        });
        self.report(!self.has_queue, status, error.as_ref(), dialect, out);
        if self.is_settled() && dialect.reports_prompts() {
            text::line(out, &json!({"type": "session_settled"}));
        }
    }

    /// Writes the result of the open prompts: of all of them, or of the unqueued ones.
    fn report(
        &mut self,
        all: bool,
        status: &'static str,
        error: Option<&Value>,
        dialect: Dialect,
        out: &mut Vec<u8>,
    ) {
        let (done, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition::<Vec<_>, _>(|prompt| all || !prompt.is_queued);
        self.open = open;
        let settled = self.is_settled();
        // A client that has changed its dialect with `hello` does not know the line.
        for prompt in done.iter().filter(|_| dialect.reports_prompts()) {
            prompt.write(true, status, error, settled, out);
        }
    }

    /// Returns true if no run, queue or prompt is left that would wake the session.
    fn is_settled(&self) -> bool {
        !self.is_active && !self.has_queue && self.open.is_empty()
    }
}

/// The status of a run that ended with this answer, and the error if it failed.
fn outcome(answer: &AssistantMessage) -> (&'static str, Option<Map<String, Value>>) {
    match answer.stop_reason {
        StopReason::Aborted => ("aborted", None),
        StopReason::Error => {
            let message = answer.error_message.as_deref();
            let mut error = Map::new();
            error.insert(
                "message".to_owned(),
                message.unwrap_or("Provider request failed").into(),
            );
            error.insert("provider".to_owned(), answer.provider.as_str().into());
            error.insert("model".to_owned(), answer.model.as_str().into());
            ("error", Some(error))
        }
        _ => ("completed", None),
    }
}

impl OpenPrompt {
    fn write(&self, invoked: bool, status: &str, error: Option<&Value>, settled: bool, out: &mut Vec<u8>) {
        let mut line = Map::new();
        line.insert("type".to_owned(), "prompt_result".into());
        // The id is JSON that was parsed with the command.
        let id = self.id.as_ref().map(|id| serde_json::from_str(id.get()));
        if let Some(Ok(id)) = id {
            line.insert("id".to_owned(), id);
        }
        line.insert("agentInvoked".to_owned(), invoked.into());
        line.insert("status".to_owned(), status.into());
        if let Some(error) = error {
            line.insert("error".to_owned(), error.clone());
        }
        line.insert("sessionSettled".to_owned(), settled.into());
        text::line(out, &line);
    }
}
