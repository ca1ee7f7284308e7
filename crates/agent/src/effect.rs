//! What the machine wants done.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use wire::event::CompactionReason;
use wire::{Entry, EntryBody, Event, Message, ToolCall, ToolResult};

use crate::compaction::Finished;
use crate::hooks::HookPoint;

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
    /// The model failed for good: choose the next fallback model. `Fallback` must come, also if there is none.
    ChooseModel,
    /// Look up a tool and check the arguments of call number `0`.
    PrepareTool(usize, ToolCall),
    /// Ask permissions about call number `0`; `Decided` must come, unless `CancelTools` or `CancelTool` withdraws the question.
    Decide(usize),
    /// Run call number `0`, which was prepared and allowed.
    RunTool(usize),
    /// Stop every running tool; their `Done` inputs must still come.
    CancelTools,
    /// Stop one call that a tool made; its `Done` input need not come.
    CancelTool(usize),
    /// Answer a tool's request to make a call.
    AnswerNested {
        /// The caller's number for the request.
        request: u64,
        /// The result of the call.
        result: ToolResult,
        /// True if the call failed.
        is_error: bool,
    },
    /// Tell a tool how far the call is that it made under this request.
    UpdateNested(u64, ToolResult),
    /// The turn is over: forget its calls.
    ForgetTools,
    /// Run the hooks of a point; `HooksDone` with this ticket must come, unless `CancelHooks` withdraws it.
    RunHooks(u64, HookPoint),
    /// Tell subscribers that only receive the event, in this turn of the run (from 0), then the clients.
    Tell(Event, u64),
    /// Report that the subscribers of a point wanted something that cannot be done: the point, the reason.
    HooksFailed(&'static str, &'static str),
    /// Nothing waits for these hooks any more.
    CancelHooks(u64),
    /// Send `RetryDue` in this many milliseconds.
    StartRetryTimer(u64),
    /// Forget the timer.
    CancelRetryTimer,
    /// Say with `Context` whether the context is too full to go on. Asked when it matters: after an answer, before the next
    /// request.
    CheckContext,
    /// Compact the conversation on disk; `Compacted` must come.
    Compact(CompactionReason),
    /// End the compaction as hooks want it: with this outcome, or without one; `Compacted` must come.
    EndCompaction(Option<Box<Finished>>),
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

impl Effect {
    /// Puts another message in the place of one in an effect that has not left the machine.
    pub(crate) fn replace(&mut self, old: &Arc<Message>, new: &Arc<Message>) {
        match self {
            Self::Persist(message)
            | Self::Emit(Event::MessageStart { message } | Event::MessageEnd { message }) => {
                put(std::slice::from_mut(message), old, new);
            }
            Self::Emit(Event::TurnEnd {
                message,
                tool_results,
            }) => {
                put(std::slice::from_mut(message), old, new);
                put(tool_results, old, new);
            }
            Self::Emit(Event::AgentEnd { messages, .. }) => put(messages, old, new),
            // The end of a tool call shows what the tool gave back: hooks replaced its message, not its result.
            // `Tell` and the hooks of events and messages are made when an effect leaves, so none of them is held.
            _ => {}
        }
    }
}

fn put(messages: &mut [Arc<Message>], old: &Arc<Message>, new: &Arc<Message>) {
    // By address, which all effects of a message share: an equal message stays.
    // It is among the newest.
    let found = messages
        .iter_mut()
        .rev()
        .find(|message| Arc::ptr_eq(message, old));
    if let Some(message) = found {
        *message = Arc::clone(new);
    }
}
