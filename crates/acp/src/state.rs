//! What a connection knows of a session and of the prompt that runs in it.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::message::StopReason;
use wire::{Event, Message};

use crate::rpc::{Failure, INTERNAL};

/// A session of the connection.
#[derive(Debug)]
pub(crate) struct SessionState {
    /// The handle for commands.
    pub(crate) handle: Arc<str>,
    /// The prompt that waits for its end.
    pub(crate) turn: Option<Turn>,
}

/// A prompt whose request is open.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The id of the request.
    pub(crate) request: Value,
    /// The session has started a run for it. What settles before belongs to another run.
    pub(crate) is_started: bool,
    /// The client cancelled it. The protocol then wants the stop reason `cancelled` in any case.
    pub(crate) is_cancelled: bool,
    stop: StopReason,
    error: Option<String>,
}

impl SessionState {
    pub(crate) fn new(handle: Arc<str>) -> Self {
        Self { handle, turn: None }
    }

    /// Follows an event. Returns the turn that it ends, and its outcome.
    pub(crate) fn note(&mut self, event: &Event) -> Option<(Value, Result<Value, Failure>)> {
        match event {
            Event::MessageEnd { message } => {
                if let (Some(turn), Message::Assistant(answer)) = (&mut self.turn, &**message) {
                    turn.stop = answer.stop_reason;
                    turn.error.clone_from(&answer.error_message);
                }
            }
            Event::AgentSettled { aborted } => {
                let turn = self.turn.take_if(|turn| turn.is_started)?;
                return Some(turn.end(*aborted));
            }
            _ => {}
        }
        None
    }
}

impl Turn {
    pub(crate) fn new(request: Value) -> Self {
        Self {
            request,
            is_started: false,
            is_cancelled: false,
            stop: StopReason::Stop,
            error: None,
        }
    }

    /// The request and its outcome.
    pub(crate) fn end(self, is_aborted: bool) -> (Value, Result<Value, Failure>) {
        let reason = match self.stop {
            _ if is_aborted || self.is_cancelled => "cancelled",
            StopReason::Aborted => "cancelled",
            StopReason::Length => "max_tokens",
            StopReason::Error => {
                let error = self
                    .error
                    .unwrap_or_else(|| "The model request failed".to_owned());
                return (self.request, Err(Failure::new(INTERNAL, error)));
            }
            StopReason::Stop | StopReason::ToolUse | StopReason::Deferred => "end_turn",
        };
        (self.request, Ok(json!({"stopReason": reason})))
    }
}
