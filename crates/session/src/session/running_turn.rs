//! The work that a run has under way at the moment: its request, its calls, and what waits for its turn or its end.

use std::pin::Pin;
use std::sync::Arc;

use agent::Input;
use tokio::time::Sleep;
use wire::Message;
use wire::reply::{Accepted, CommandStage};
use wire::table::Respond;

use crate::outbox::Responder;

use super::model_request::RunningRequest;
use super::pending_prompt::UnansweredPrompt;
use super::tool_calls::{CallUpdate, ToolCalls};

/// What a run has under way at the moment.
pub(super) struct RunningTurn {
    /// The request that is out.
    pub(super) request: Option<RunningRequest>,
    pub(super) calls: ToolCalls,
    pub(super) retry_timer: Option<Pin<Box<Sleep>>>,
    /// The prompt of the run that begins after a compaction.
    pub(super) unanswered: Option<UnansweredPrompt>,
    /// Messages of extensions that join the conversation when the turn has ended.
    pub(super) kept: Vec<Arc<Message>>,
    /// Slash commands that have ended and that a run may follow, for clients that had the response to the beginning.
    pub(super) ended_commands: Vec<Responder<Accepted>>,
}

impl RunningTurn {
    pub(super) fn new() -> Self {
        Self {
            request: None,
            calls: ToolCalls::new(),
            retry_timer: None,
            unanswered: None,
            kept: Vec::new(),
            ended_commands: Vec::new(),
        }
    }

    /// Waits for the report of a call that has just got what it waited for. Returns the input for the machine.
    pub(super) async fn settle(&mut self, slot: usize) -> Option<Input> {
        let report = self.calls.settle(slot).await?;
        match self.calls.accept(report) {
            Some((slot, CallUpdate::Input(input))) => Some(Input::Tool(slot, input)),
            _ => None,
        }
    }

    /// Says of slash commands that have ended whether a run follows.
    pub(super) async fn end_commands(&mut self, begins_run: bool) {
        for responder in std::mem::take(&mut self.ended_commands) {
            let ended = Accepted::by_command(CommandStage::Ended(begins_run));
            responder.respond(Ok(ended)).await;
        }
    }

    /// The run is over.
    pub(super) fn on_idle(&mut self) {
        self.retry_timer = None;
        self.calls.reset();
    }

    /// The answer that is being received.
    pub(super) fn partial_message(&self) -> Option<Message> {
        self.request
            .as_ref()
            .and_then(|request| request.partial_message())
    }
}
