//! Everything that can happen to a session. Inputs can be written as JSON and read again, see `record`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wire::event::CompactionResult;
use wire::{AssistantMessage, Message, RunLimits, StreamEvent, TodoPhase, ToolResult, Usage};

use crate::budget::{SessionUse, Spent};
use crate::hooks::{HooksOutcome, Subscriptions};
use crate::queue::{QueueKind, Queued};
use crate::settings::LoopSettings;
use crate::todo::TodoSettings;
use crate::ttsr::{Rules, TtsrSettings};

/// Something that happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// A prompt while the session is idle. Ignored while it is busy: the caller queues or refuses then.
    Prompt {
        /// Its messages.
        messages: Vec<Arc<Message>>,
        /// Is the context too full to send it as it is?
        full: bool,
        /// Limits of its run alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<RunLimits>,
        /// Whether its run must give a result.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        wants_result: bool,
    },
    /// A prompt during the delay before a retry: the retry begins with these messages. Ignored outside of such a delay, and after the first.
    Join(Vec<Arc<Message>>),
    /// A client wants the conversation compacted while the session is idle.
    Compact,
    /// A client wants to go to another place of the session's tree while the session is idle; until `Moved` it is busy.
    Move,
    /// The session is at its new place, or stays where it was.
    Moved {
        /// The conversation from now on; none when nothing changed.
        messages: Option<Vec<Arc<Message>>>,
        /// True if it was aborted.
        aborted: bool,
    },
    /// A compaction that was asked for has ended.
    Compacted(CompactOutcome),
    /// Answer to `CheckContext`: is the context too full to go on?
    Context(bool),
    /// A message for a queue, at any time.
    Enqueue(QueueKind, Queued),
    /// Answer to `ChooseModel`: the run goes on with another model, or ends.
    Fallback(Option<Fallback>),
    /// Requests to a model were made outside of the turn loop.
    Spent(Spent),
    /// Both queues are to be emptied.
    ClearQueue,
    /// A queued message, by its number, is to be another one. Ignored when it does not wait any more.
    EditQueued(u64, Queued),
    /// A queued message, by its number, is to go. Ignored when it does not wait any more.
    RemoveQueued(u64),
    /// The conversation is to go on without a new message, where its last run died. Ignored unless `Machine::can_resume`.
    Continue {
        /// Is the context too full to send it as it is?
        full: bool,
    },
    /// All activity is to end; the queues stay.
    Abort,
    /// A retry wait is to end, if there is one.
    AbortRetry,
    /// The wait before a retry is over.
    RetryDue,
    /// The caller changed something that no run changes.
    Change(Change),
    /// News from the model.
    Model(ModelInput),
    /// News from a tool call, by its position in the answer's calls.
    Tool(usize, ToolInput),
    /// Hooks were run; the ticket is that of `RunHooks`. Ignored if nothing waits for them any more.
    HooksDone(u64, HooksOutcome),
    /// A running tool calls another one. Refused with `AnswerNested` unless tools run.
    Nest(NestedCall),
    /// A tool has withdrawn the request under which it made a call.
    WithdrawNested(u64),
}

/// A change that no run makes. All are allowed at any time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The machine works for another session from now on; a run that was going on is forgotten. The caller has ended it.
    Open {
        /// Its settings.
        settings: LoopSettings,
        /// Its conversation.
        messages: Vec<Arc<Message>>,
    },
    /// The session stands at another place of its tree: its todo list is another one, and rules have to be given again.
    Branch {
        /// How the list behaves.
        todos: TodoSettings,
        /// The list.
        phases: Vec<TodoPhase>,
    },
    /// Settings of the loop. A run that is under way keeps its interrupt mode.
    Settings(LoopSettings),
    /// Limits of the session.
    Limits {
        /// All of them.
        limits: RunLimits,
        /// Whether counting begins again at 0.
        reset: bool,
    },
    /// The session was closed for a while: counting goes on from what it had used. Settings with its limits come before.
    Used(SessionUse),
    /// A message that no run produced (a user's shell command, an extension's note) joins the conversation: at once, or
    /// after the results of the tools that run. The caller writes it to the session file.
    Add(Arc<Message>),
    /// The conversation was read again from the session file, after something was appended that changes what the model sees.
    /// While tools run, their answer and the results that were told (`ResultOrder`) stay the newest messages.
    Conversation(Vec<Arc<Message>>),
    /// Extensions or hooks were registered or left: these hook points have subscribers from now on.
    Hooks(Subscriptions),
    /// Another todo list takes the place of the current one.
    Todos(Vec<TodoPhase>),
    /// Whether the model is reminded of open todos from now on.
    Reminders(bool),
    /// Items that were done long enough leave the todo list.
    TodosDue,
    /// Rules watch answers from now on.
    Rules {
        /// The rules.
        rules: Arc<Rules>,
        /// How they behave.
        settings: TtsrSettings,
        /// Names of the rules that the model was told on this branch.
        told: Vec<String>,
    },
}

impl From<Change> for Input {
    fn from(change: Change) -> Self {
        Self::Change(change)
    }
}

/// News from the model.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelInput {
    /// The provider began to answer; the message is still empty.
    Started(AssistantMessage),
    /// The answer grew.
    Update(StreamEvent, Usage),
    /// The answer is complete, failed or was cut off. Comes exactly once for each request.
    Finished(AssistantMessage, Verdict),
}

/// What a failed answer means. The caller reads it off the provider's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It did not fail, or asking again is no use.
    Final,
    /// It may work in a moment; the provider may have said when (milliseconds).
    Retry(Option<u64>),
    /// The quota is used up; it may be there again after this time (milliseconds).
    Exhausted(u64),
    /// The model cannot be used now: its key is rejected, its quota is exhausted, the provider does not know it. Another model
    /// may work.
    Unavailable,
    /// The conversation is too long for the model, or leaves no room for an answer; compacting it may help.
    Overflow,
    /// It failed for good, and leaves the conversation. It stays in the file.
    Discarded,
}

/// The change to a fallback model. Names are `provider/id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fallback {
    /// The model that failed.
    pub from: String,
    /// The model of the following requests.
    pub to: String,
}

/// How a compaction ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "comes once in a compaction and is moved once"
)]
pub enum CompactOutcome {
    /// It is on disk; the conversation is this now.
    Done {
        /// The result that clients receive.
        result: CompactionResult,
        /// The conversation from now on.
        messages: Vec<Arc<Message>>,
    },
    /// Nothing changed; a sentence says why.
    Failed(String),
    /// It was aborted; nothing changed.
    Aborted,
}

/// News from a tool call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolInput {
    /// Its tool takes these arguments for what the model wrote in another form. The conversation shows them from the end of the
    /// turn on. Comes before `Prepared`.
    Repaired(Map<String, Value>),
    /// It was looked up and its arguments were checked.
    Prepared(Prepared),
    /// Permissions have decided about it.
    Decided(Prepared),
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

/// Whether a tool call may run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepared {
    /// It can run.
    Run,
    /// It cannot; this is its result.
    Refused(ToolResult),
}

/// A call that a tool wants to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NestedCall {
    /// The caller's number for the request that is answered at the end; none if no answer is wanted.
    pub request: Option<u64>,
    /// The id of the call whose tool makes this one.
    pub parent: String,
    /// The name of the tool to call.
    pub name: String,
    /// Its arguments.
    pub args: Map<String, Value>,
}
