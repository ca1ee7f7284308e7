//! The outcome of prompts for clients of today's oh-my-pi (dialects.md 5, row 35): one `prompt_result` for each accepted
//! prompt, `session_settled` after a run, and the same knowledge in `get_state`. Its RpcClient waits for these lines.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use wire::event::ChangeReason;
use wire::message::StopReason;
use wire::reply::{Accepted, CommandStage, Disposition};
use wire::{AssistantMessage, Dialect, Event, Reply, Response};

use super::Encoder;
use super::failures::may_pass;
use super::json as text;
use crate::limits::OPEN_PROMPTS;

/// Shortest answer that has a speed, in milliseconds. As in oh-my-pi.
const SHORTEST_TIMED: u64 = 100;

/// The accepted prompts of a session that have no `prompt_result` yet.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    open: Vec<OpenPrompt>,
    /// Runs that began.
    runs: u64,
    /// A run began and the session has not settled since.
    is_active: bool,
    /// A run began since the last `session_settled`.
    owes_settled: bool,
    /// Messages wait in a queue of the session.
    has_queue: bool,
    /// The end of a background process may begin a run.
    may_wake: bool,
    /// How the newest run ended: its status and, after a failure, the member `error`.
    outcome: Option<(&'static str, Option<Map<String, Value>>)>,
    /// Output tokens per second of the newest answer.
    speed: Option<f64>,
}

/// An accepted prompt.
#[derive(Debug)]
struct OpenPrompt {
    id: Option<Box<RawValue>>,
    state: PromptState,
}

/// What an open prompt waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptState {
    /// The end of its run.
    Running,
    /// It went into a queue: the end of a run that leaves the queues empty.
    Queued,
    /// The end of a slash command, which began after that many runs.
    Command(u64),
}

/// The line of a response.
#[derive(Debug)]
pub(super) enum Line {
    /// As in other dialects.
    Usual,
    /// As in other dialects, of this response in its place.
    Instead(Box<Response>),
    /// With further members.
    Changed(Map<String, Value>),
    /// None: the client has its response.
    Nothing,
}

impl Encoder {
    /// Notes whether the end of a background process may begin a run, and appends the lines that follow from it.
    pub(crate) fn pending_wakeup(&mut self, is_pending: bool, out: &mut Vec<u8>) {
        self.prompts.may_wake = is_pending;
        self.prompts.write_settled(self.spoken.manner().dialect, out);
    }
}

impl Prompts {
    /// Returns true if the end of a background process may begin a run.
    pub(super) fn may_wake(&self) -> bool {
        self.may_wake
    }

    /// Follows an event, and appends the lines that come after it.
    pub(super) fn event(&mut self, event: &Event, dialect: Dialect, out: &mut Vec<u8>) {
        match event {
            Event::AgentStart => {
                self.runs += 1;
                self.is_active = true;
                self.owes_settled = true;
                self.outcome = None;
            }
            Event::MessageEnd { message } => {
                if let Some(answer) = message.as_assistant() {
                    self.speed = speed(answer);
                }
            }
            Event::QueueUpdate { steering, follow_up } => {
                self.has_queue = !steering.is_empty() || !follow_up.is_empty();
            }
            Event::AgentEnd { messages, .. } => {
                let answer = messages.iter().rev().find_map(|message| message.as_assistant());
                self.outcome = answer.map(outcome);
            }
            Event::AgentSettled { aborted } => self.settle(*aborted, dialect, out),
            // The run of the session has been aborted.
            Event::SessionChanged { reason, .. } => {
                // The queues of a session that was left are gone.
                self.has_queue &= matches!(reason, ChangeReason::Tree | ChangeReason::Reload);
                self.speed = self.speed.filter(|_| *reason == ChangeReason::Reload);
                self.report(!self.has_queue, "aborted", None, dialect, out);
                self.write_settled(dialect, out);
            }
            _ => {}
        }
    }

    /// The line of a response: `get_state` tells whether the session is idle, and the end of a slash command has none, since its client
    /// has the response to its beginning.
    pub(super) fn line(&self, response: &Response, dialect: Dialect) -> Line {
        match &response.outcome {
            Ok(Reply::Accepted(accepted)) if is_silent(accepted.stage, dialect) => Line::Nothing,
            Ok(Reply::Accepted(Accepted {
                stage: CommandStage::GivenUp(error),
                ..
            })) => Line::Instead(Box::new(Response {
                id: response.id.clone(),
                command: response.command.clone(),
                outcome: Err((*error).to_owned()),
            })),
            Ok(Reply::StateWithPrompt(shown)) if !dialect.reports_prompts() => {
                Line::Instead(Box::new(Response {
                    id: response.id.clone(),
                    command: response.command.clone(),
                    outcome: Ok(Reply::from(shown.state.clone())),
                }))
            }
            _ => self.state(response, dialect).map_or(Line::Usual, Line::Changed),
        }
    }

    /// Follows a response, and appends the `prompt_result` of a prompt that no run follows.
    pub(super) fn response(&mut self, response: &Response, dialect: Dialect, out: &mut Vec<u8>) {
        let command = response.command.as_ref().and_then(Value::as_str);
        if !dialect.reports_prompts() || !matches!(command, Some("prompt" | "abort_and_prompt")) {
            return;
        }
        if let Ok(Reply::Accepted(accepted)) = &response.outcome {
            self.accepted(response, accepted, out);
        }
    }

    fn accepted(&mut self, response: &Response, accepted: &Accepted, out: &mut Vec<u8>) {
        let state = match (accepted.stage, accepted.disposition) {
            (CommandStage::Begun, _) => PromptState::Command(self.runs),
            (CommandStage::Ended(begins_run), _) => return self.command_ended(response, begins_run, out),
            (CommandStage::GivenUp(error), _) => {
                if let Some(prompt) = self.take_command(response) {
                    let error = json!({"message": error, "retryable": false});
                    prompt.write(false, "error", Some(&error), self.is_settled(), out);
                }
                return;
            }
            (CommandStage::Whole, Disposition::Handled) => {
                return OpenPrompt::new(response, PromptState::Running).write(
                    false,
                    "completed",
                    None,
                    self.is_settled(),
                    out,
                );
            }
            (CommandStage::Whole, Disposition::Queued) => PromptState::Queued,
            (CommandStage::Whole, Disposition::Started) => PromptState::Running,
        };
        let prompt = OpenPrompt::new(response, state);
        // Bounded, since a client may send prompts without end during a run.
        if self.open.len() < OPEN_PROMPTS {
            self.open.push(prompt);
        } else {
            let error = json!({"message": "Too many prompts are open: the outcome is not reported", "retryable": false});
            prompt.write(true, "error", Some(&error), false, out);
        }
    }

    /// A slash command has ended. The prompt waits for the run of the command, if there is one.
    fn command_ended(&mut self, response: &Response, begins_run: bool, out: &mut Vec<u8>) {
        let Some(mut prompt) = self.take_command(response) else {
            return;
        };
        let had_run = prompt.state != PromptState::Command(self.runs);
        if begins_run || (had_run && self.is_active) {
            prompt.state = PromptState::Running;
            self.open.push(prompt);
            return;
        }
        // A run that began and ended within the command has settled before this response.
        prompt.write(had_run, "completed", None, self.is_settled(), out);
    }

    /// Takes the slash command of this response from the open prompts.
    fn take_command(&mut self, response: &Response) -> Option<OpenPrompt> {
        let id = response.id.as_ref().map(|id| id.get());
        let at = self.open.iter().position(|prompt| {
            let is_command = matches!(prompt.state, PromptState::Command(_));
            is_command && prompt.id.as_ref().map(|id| id.get()) == id
        });
        at.map(|at| self.open.remove(at))
    }

    /// The response to `get_state` with the members that tell whether the session is idle; none for other lines.
    fn state(&self, response: &Response, dialect: Dialect) -> Option<Map<String, Value>> {
        let state = response.outcome.as_ref().ok()?.state()?;
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
        // oh-my-pi counts the wait for a retry as part of the run.
        data.insert(
            "isStreaming".to_owned(),
            (state.is_streaming || state.is_retrying).into(),
        );
        data.insert("hasPendingAsyncWork".to_owned(), self.may_wake.into());
        // There are no service tiers.
        data.insert("fastModeEnabled".to_owned(), false.into());
        data.insert("fastModeActive".to_owned(), false.into());
        data.insert(
            "tokensPerSecond".to_owned(),
            self.speed.map_or(Value::Null, Value::from),
        );
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
        let error = error.map(Value::from);
        self.report(!self.has_queue, status, error.as_ref(), dialect, out);
        self.write_settled(dialect, out);
    }

    /// Writes `session_settled` if a run began since the last one and nothing is left that would begin another.
    fn write_settled(&mut self, dialect: Dialect, out: &mut Vec<u8>) {
        if !self.owes_settled || !self.is_settled() {
            return;
        }
        // In every dialect: a client that shows its dialect later must not get the line for an earlier run.
        self.owes_settled = false;
        if dialect.reports_prompts() {
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
        let (mut done, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition::<Vec<_>, _>(|prompt| match prompt.state {
                PromptState::Running => true,
                PromptState::Queued => all,
                PromptState::Command(_) => false,
            });
        self.open = open;
        // As in oh-my-pi: a prompt that joined a run is reported before the prompt that began it.
        done.sort_by_key(|prompt| prompt.state == PromptState::Running);
        let settled = self.is_settled();
        // A client that has changed its dialect with `hello` does not know the line.
        for prompt in done.iter().filter(|_| dialect.reports_prompts()) {
            prompt.write(true, status, error, settled, out);
        }
    }

    /// Returns true if no run, queue, prompt or process is left that would wake the session.
    fn is_settled(&self) -> bool {
        // A slash command alone is no work of the agent.
        let has_prompt = |prompt: &OpenPrompt| !matches!(prompt.state, PromptState::Command(_));
        !self.is_active && !self.has_queue && !self.may_wake && !self.open.iter().any(has_prompt)
    }
}

/// Returns true for a response that this client does not get: it hears of the beginning of a slash command, or of the end.
fn is_silent(stage: CommandStage, dialect: Dialect) -> bool {
    match stage {
        CommandStage::Whole => false,
        CommandStage::Begun => !dialect.reports_prompts(),
        CommandStage::Ended(_) | CommandStage::GivenUp(_) => dialect.reports_prompts(),
    }
}

/// Output tokens per second of an answer; none if it was too short for a figure, or is of an older file.
fn speed(answer: &AssistantMessage) -> Option<f64> {
    let milliseconds = answer.duration_ms.filter(|time| *time >= SHORTEST_TIMED)?;
    let number = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let tokens = answer.usage.output;
    (tokens > 0).then(|| number(tokens) * 1000.0 / number(milliseconds))
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
            error.insert("retryable".to_owned(), may_pass(answer).into());
            if let Some(status) = answer.http_status {
                error.insert("httpStatus".to_owned(), status.into());
            }
            ("error", Some(error))
        }
        _ => ("completed", None),
    }
}

impl OpenPrompt {
    fn new(response: &Response, state: PromptState) -> Self {
        Self {
            id: response.id.clone(),
            state,
        }
    }

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
