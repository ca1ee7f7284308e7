//! Hook points: where extensions and hook programs may look at what happens, or change it. The caller says by an input which
//! points have subscribers, so a session without any takes no step for them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wire::event::CompactionReason;
use wire::{AssistantMessage, Event, Message, ToolCall, ToolResult};

use crate::compaction::Finished;

/// The name of the hook point before a message is stored.
pub(crate) const MESSAGE_END: &str = "message_end";
/// The name of the hook point before the session settles.
pub(crate) const BEFORE_SETTLE: &str = "agent_before_settle";
/// The name of the hook point before a compaction.
const BEFORE_COMPACT: &str = "session_before_compact";
/// The name of the hook point before a tool call runs.
pub(crate) const TOOL_CALL: &str = "tool_call";
/// The name of the hook point before the result of a call is taken over.
pub(crate) const TOOL_RESULT: &str = "tool_result";

/// The points at which the machine waits for subscribers that may answer. Other events never wait.
pub const HOOK_POINTS: [&str; 13] = [
    MESSAGE_END,
    BEFORE_SETTLE,
    BEFORE_COMPACT,
    TOOL_CALL,
    TOOL_RESULT,
    "agent_start",
    "turn_start",
    "message_start",
    "tool_execution_start",
    "tool_execution_end",
    "turn_end",
    "agent_end",
    "agent_settled",
];

/// The hook points that have subscribers, by the names of their events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Subscriptions {
    /// Points whose subscribers may answer: what follows waits for them.
    pub waits: Vec<String>,
    /// Points whose subscribers only receive the event.
    pub tells: Vec<String>,
}

/// What hooks are run for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// An event that clients receive after its subscribers.
    Event {
        /// The event.
        event: Event,
        /// The turn of the run, from 0.
        turn: u64,
    },
    /// A message that may be replaced before it is stored.
    Message(Arc<Message>),
    /// An answer that may be replaced before its calls count.
    Answer(AssistantMessage),
    /// The session settles unless one more request is wanted.
    Settle {
        /// True if the run was aborted.
        aborted: bool,
    },
    /// A compaction that may be refused, or made otherwise.
    Compact {
        /// Why the conversation is compacted.
        reason: CompactionReason,
        /// True if a run that overflowed is tried again after it.
        again: bool,
    },
    /// A call that may be blocked or changed before permissions judge it.
    ToolCall {
        /// Its number.
        slot: usize,
        /// The call as the model, or the tool that makes it, wrote it.
        call: ToolCall,
        /// The id of the call whose tool makes this one.
        parent: Option<String>,
    },
    /// A call that has ended and whose result may be changed.
    ToolResult {
        /// Its number.
        slot: usize,
        /// The call as the model, or the tool that makes it, wrote it.
        call: ToolCall,
        /// The id of the call whose tool makes this one.
        parent: Option<String>,
        /// The result.
        result: ToolResult,
        /// True if the call failed.
        is_error: bool,
    },
}

impl HookPoint {
    /// The name of the event that subscribers receive.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Event { event, .. } => event.name(),
            Self::Message(_) | Self::Answer(_) => MESSAGE_END,
            Self::Settle { .. } => BEFORE_SETTLE,
            Self::Compact { .. } => BEFORE_COMPACT,
            Self::ToolCall { .. } => TOOL_CALL,
            Self::ToolResult { .. } => TOOL_RESULT,
        }
    }
}

/// What hooks answered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HooksOutcome {
    /// Nothing changes.
    #[default]
    Unchanged,
    /// One more request is wanted.
    Continue,
    /// The compaction is not made.
    Cancel,
    /// The compaction was made.
    Compacted(Box<Finished>),
    /// Another message takes the place of one.
    Message(Arc<Message>),
    /// Another answer takes the place of one.
    Answer(AssistantMessage),
    /// A checked call does not run; this is its result.
    Refused(ToolResult),
    /// A call has this result.
    Result {
        /// The result.
        result: ToolResult,
        /// True if the call failed.
        is_error: bool,
    },
}

/// The subscriptions, and the numbers of questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hooks {
    subscribed: Subscriptions,
    tickets: u64,
    /// Hooks that may refuse the compaction.
    compaction: Option<u64>,
}

impl Hooks {
    /// Takes over who subscribes to what.
    pub(crate) fn subscribe(&mut self, subscribed: Subscriptions) {
        self.subscribed = subscribed;
    }

    /// The subscriptions that hold.
    pub(crate) fn subscribed(&self) -> &Subscriptions {
        &self.subscribed
    }

    /// Returns true if no point has subscribers.
    pub(crate) fn are_unused(&self) -> bool {
        self.subscribed.waits.is_empty() && self.subscribed.tells.is_empty()
    }

    /// Returns true if a point has subscribers that may answer.
    pub(crate) fn hear(&self, name: &str) -> bool {
        self.subscribed.waits.iter().any(|point| point == name)
    }

    /// Returns true if a point has subscribers.
    pub(crate) fn tell(&self, name: &str) -> bool {
        // Subscribers that may answer also receive updates, for which nothing waits (`machine::is_awaited`).
        self.hear(name) || self.subscribed.tells.iter().any(|point| point == name)
    }

    /// The number of a new question. It is never used twice, so that a late answer is recognised.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// The hooks of the session that takes this one's place: old questions do not count there.
    pub(crate) fn anew(&self) -> Self {
        Self {
            subscribed: self.subscribed.clone(),
            tickets: self.tickets,
            compaction: None,
        }
    }

    /// The ticket of the question before a compaction; none without subscribers.
    pub(crate) fn before_compaction(&mut self) -> Option<u64> {
        self.compaction = self.hear(BEFORE_COMPACT).then(|| self.ticket());
        self.compaction
    }

    /// Returns true for the answer to the question before a compaction.
    pub(crate) fn ends_compaction(&mut self, ticket: u64) -> bool {
        self.compaction.take_if(|own| *own == ticket).is_some()
    }

    /// Withdraws the question before a compaction.
    pub(crate) fn take_compaction(&mut self) -> Option<u64> {
        self.compaction.take()
    }
}
