//! What can happen to a session.

use std::sync::Arc;

use wire::event::CompactionResult;
use wire::{AssistantMessage, Message, StreamEvent, ToolResult, Usage};

use crate::queue::{QueueKind, Queued};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Somebody said something while the session is idle. Ignored while it is busy: the caller queues or refuses then.
    Prompt {
        /// What was said.
        messages: Vec<Arc<Message>>,
        /// Is the context too full to send it as it is?
        full: bool,
    },
    /// A client wants the conversation compacted while the session is idle.
    Compact,
    /// A client wants to go to another place of the session's tree while the session is idle; until `Moved` it is busy.
    Move,
    /// The session is at its new place, or stays where it was.
    Moved {
        /// The conversation from now on; none when nothing changed.
        messages: Option<Vec<Arc<Message>>>,
        /// Did somebody abort it?
        aborted: bool,
    },
    /// A compaction that was asked for has ended.
    Compacted(CompactOutcome),
    /// Answer to `CheckContext`: is the context too full to go on?
    Context(bool),
    /// A message for a queue, at any time.
    Enqueue(QueueKind, Queued),
    /// Both queues are to be emptied.
    ClearQueue,
    /// All activity is to end; the queues stay.
    Abort,
    /// A retry wait is to end, if there is one.
    AbortRetry,
    /// The wait before a retry is over.
    RetryDue,
    /// News from the model.
    Model(ModelInput),
    /// News from a tool call, by its position in the answer's calls.
    Tool(usize, ToolInput),
}

/// News from the model.
#[derive(Debug, Clone)]
pub enum ModelInput {
    /// The provider began to answer; the message is still empty.
    Started(AssistantMessage),
    /// The answer grew.
    Update(StreamEvent, Usage),
    /// The answer is complete, failed or was cut off. Comes exactly once for each request.
    Finished(AssistantMessage, Verdict),
}

/// What a failed answer means. The caller reads it off the provider's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It did not fail, or asking again is no use.
    Final,
    /// It may work in a moment; the provider may have said when (milliseconds).
    Retry(Option<u64>),
    /// The conversation is too long for the model, or leaves no room for an answer; compacting it may help.
    Overflow,
}

/// How a compaction ended.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "comes once in a compaction and is moved once"
)]
pub enum CompactOutcome {
    /// It is on disk; the conversation is this now.
    Done {
        /// What clients are told.
        result: CompactionResult,
        /// The conversation from now on.
        messages: Vec<Arc<Message>>,
    },
    /// Nothing changed; a sentence says why.
    Failed(String),
    /// Somebody aborted it; nothing changed.
    Aborted,
}

/// News from a tool call.
#[derive(Debug, Clone)]
pub enum ToolInput {
    /// It was looked up and its arguments were checked.
    Prepared(Prepared),
    /// It came further; replaces what it said before.
    Progress(ToolResult),
    /// It ended.
    Done {
        /// What it gave back.
        result: ToolResult,
        /// Did it fail?
        is_error: bool,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
    },
}

/// Outcome of preparing a tool call.
#[derive(Debug, Clone)]
pub enum Prepared {
    /// It can run.
    Run,
    /// It cannot; this is its result.
    Refused(ToolResult),
}
