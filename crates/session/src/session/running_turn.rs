//! The work that a run has under way at the moment: its request, its calls, and what waits for its turn or its end.

use std::pin::Pin;
use std::sync::Arc;

use agent::Input;
use tokio::time::Sleep;
use wire::Message;
use wire::reply::{Accepted, Disposition};
use wire::table::Respond;

use super::model_request::RunningRequest;
use super::pending_prompt::PromptSender;
use super::session_core::SessionCore;
use super::storage::Batch;
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
}

impl RunningTurn {
    pub(super) fn new() -> Self {
        Self {
            request: None,
            calls: ToolCalls::new(),
            retry_timer: None,
            unanswered: None,
            kept: Vec::new(),
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

/// A prompt without a response. It is stored and acknowledged when its run begins, after a compaction, as in pi: if the process died
/// earlier, an acknowledged prompt would be lost.
pub(super) struct UnansweredPrompt {
    pub(super) sender: PromptSender,
    /// The messages to store before the response; empty if that happens later.
    pub(super) messages: Vec<Arc<Message>>,
}

impl UnansweredPrompt {
    /// Appends the prompt, which its run does not append again, and acknowledges it.
    pub(super) async fn accept(self, core: &mut SessionCore) {
        if !self.messages.is_empty() {
            let (log, mut batch) = (&mut core.conversation.log, Batch::default());
            for message in self.messages {
                batch.push_message(Arc::clone(&message));
                // The run persists its messages once more, and leaves those out that were noted (`Driver::persist_group`).
                log.note_prompt(message);
            }
            log.keep(batch, &core.outbox).await;
        }
        if let PromptSender::Client(responder) = self.sender {
            responder.respond(Ok(Accepted::new(Disposition::Started))).await;
        }
    }
}
