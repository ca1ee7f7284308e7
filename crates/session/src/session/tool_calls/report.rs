//! What a running call reports to its session.

use agent::ToolInput;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use wire::ToolResult;

/// What happened to a call.
#[derive(Debug)]
pub(crate) enum CallUpdate {
    /// The owner of the tool has rewritten the arguments, or refuses the call with a text for the model.
    Rewritten(Result<Map<String, Value>, String>),
    /// Its checkpoint is stored, so that its tool can start.
    CheckpointStored,
    /// The machine wants to know it.
    Input(ToolInput),
}

/// A report about a call.
#[derive(Debug)]
pub(crate) struct CallReport {
    pub(super) slot: usize,
    /// The batch that the call belongs to; reports of older batches do not count.
    pub(super) batch: u64,
    pub(super) update: CallUpdate,
}

/// Reports the steps of one call.
#[derive(Debug, Clone)]
pub(crate) struct ProgressSender {
    pub(super) sender: mpsc::Sender<Box<CallReport>>,
    pub(super) slot: usize,
    pub(super) batch: u64,
}

impl ProgressSender {
    /// Reports a partial result. Waits while the session is behind.
    pub(crate) async fn send(&self, partial: ToolResult) {
        self.report(CallUpdate::Input(ToolInput::Progress(partial))).await;
    }

    pub(super) async fn report(&self, update: CallUpdate) {
        let (slot, batch) = (self.slot, self.batch);
        // The receiver is gone when the session has ended.
        let report = Box::new(CallReport { slot, batch, update });
        let _gone = self.sender.send(report).await;
    }
}
