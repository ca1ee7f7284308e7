//! What the machine wants done.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use wire::event::CompactionReason;
use wire::{Entry, EntryBody, Event, Message, ToolCall};

/// Something to be done by the caller, in the order given.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Append the message to the session file. Comes before the event that announces it as complete.
    Persist(Arc<Message>),
    /// Append an entry that is no message to the session file.
    Record(#[serde(serialize_with = "entry_without_id")] EntryBody),
    /// Tell the clients.
    Emit(Event),
    /// Ask the model, with the conversation as it is now.
    CallModel,
    /// Stop the request; its `Finished` input must still come.
    CancelModel,
    /// Look up a tool and check the arguments of call number `0`.
    PrepareTool(usize, ToolCall),
    /// Run call number `0`, which was prepared.
    RunTool(usize),
    /// Stop every running tool; their `Done` inputs must still come.
    CancelTools,
    /// Send `RetryDue` in this many milliseconds.
    StartRetryTimer(u64),
    /// Forget the timer.
    CancelRetryTimer,
    /// Say with `Context` whether the context is too full to go on. Asked when it matters: after an answer, before the next
    /// request.
    CheckContext,
    /// Compact the conversation on disk; `Compacted` must come.
    Compact(CompactionReason),
    /// Stop the compaction; its `Compacted` must still come.
    CancelCompaction,
    /// The session is idle now.
    Idle,
}

/// The caller gives an entry its id and time, so none are known here.
fn entry_without_id<S: Serializer>(body: &EntryBody, serializer: S) -> Result<S::Ok, S::Error> {
    let entry = Entry {
        id: String::new(),
        parent_id: None,
        timestamp: String::new(),
        body: body.clone(),
    };
    entry.serialize(serializer)
}
