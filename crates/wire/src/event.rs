//! Events: what a session tells its clients (dialects.md 3; behaviour.md 2). `message_update` is kept in its linear form here;
//! the cumulative form that older clients need is made where lines are written, in `serve`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::content::ToolCall;
use crate::entry::Entry;
use crate::hosted::UriOperation;
use crate::mcp::McpServer;
use crate::message::Message;
use crate::model::ThinkingLevel;
use crate::rule::Rule;
use crate::state::BashResult;
use crate::todo::OpenTodo;
use crate::tool::ToolResult;
use crate::ui::UiRequest;
use crate::usage::Usage;

/// One step of an answer that streams in (`assistantMessageEvent`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum StreamEvent {
    /// A text block begins.
    TextStart {
        /// Position in the message's content.
        content_index: usize,
    },
    /// Text arrived.
    TextDelta {
        /// Position in the message's content.
        content_index: usize,
        /// The new text.
        delta: String,
    },
    /// A text block is complete.
    TextEnd {
        /// Position in the message's content.
        content_index: usize,
        /// The whole text.
        content: String,
    },
    /// A reasoning block begins.
    ThinkingStart {
        /// Position in the message's content.
        content_index: usize,
    },
    /// Reasoning arrived.
    ThinkingDelta {
        /// Position in the message's content.
        content_index: usize,
        /// The new reasoning.
        delta: String,
    },
    /// A reasoning block is complete.
    ThinkingEnd {
        /// Position in the message's content.
        content_index: usize,
        /// The whole reasoning.
        content: String,
    },
    /// A tool call begins.
    ToolcallStart {
        /// Position in the message's content.
        content_index: usize,
        /// The provider's call id.
        id: String,
        /// The tool.
        tool_name: String,
    },
    /// A piece of the arguments' JSON text arrived.
    ToolcallDelta {
        /// Position in the message's content.
        content_index: usize,
        /// The new JSON text.
        delta: String,
    },
    /// A tool call is complete.
    ToolcallEnd {
        /// Position in the message's content.
        content_index: usize,
        /// The whole call, as the block that it is (`type` is `toolCall`).
        #[serde(serialize_with = "crate::content::serialize_tool_call")]
        tool_call: ToolCall,
    },
}

/// Why a compaction ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompactionReason {
    /// A client asked for it.
    Manual,
    /// The context was nearly full.
    Threshold,
    /// The provider refused the request as too long.
    Overflow,
}

/// Why a session is another one, or at another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ChangeReason {
    /// `new_session`.
    New,
    /// `switch_session`.
    Switch,
    /// `fork`, `branch` or `clone`.
    Fork,
    /// `navigate_tree`: the same session at another place of its tree.
    Tree,
    /// `reload_resources`: the same session, with everything that files say about it read again.
    Reload,
}

/// Why a session is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CloseReason {
    /// `close_session`.
    Closed,
    /// Nobody has used it for long, or others needed its place. Its handle stays: the next command to it opens it again.
    Evicted,
}

/// What a summary is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum SummarySource {
    /// A compaction.
    Compaction,
    /// A branch that is left.
    BranchSummary,
}

/// What a compaction produced; also the answer of `compact`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// Stands for everything before `firstKeptEntryId`.
    pub summary: String,
    /// First entry that is still sent to the model.
    pub first_kept_entry_id: String,
    /// Tokens in the context before.
    pub tokens_before: u64,
    /// `readFiles` and `modifiedFiles`.
    pub details: Value,
    /// Estimate of the tokens in the context afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_tokens_after: Option<u64>,
    /// What the summaries took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Everything a session tells its clients on its own account.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// First line of the stream (dialects.md 1; clients of omp and xcsh wait for it, all others ignore it).
    Ready {
        /// Version of the agent.
        version: String,
    },
    /// First frame for a client of a web door that said where it wants to go on (`after=`, `instance=`). It has no `seq`.
    Connected {
        /// Says which process this is; numbers of events mean nothing beyond it.
        instance_id: String,
        /// True: every event after the number that the client named follows. False: some of them are gone, or were another
        /// process's, and only `replay` has the session as it is.
        is_complete: bool,
        /// Where the client now is: the number that it named, or that of the newest event.
        last_seq: u64,
    },
    /// A run begins; a retry is a run of its own.
    AgentStart,
    /// A run ended.
    AgentEnd {
        /// Messages that this run added, prompts included.
        messages: Vec<Arc<Message>>,
        /// Will another run follow by itself (retry, overflow recovery)?
        will_retry: bool,
    },
    /// Nothing will happen any more until a client asks for something.
    AgentSettled {
        /// Did the last run end in an abort?
        aborted: bool,
    },
    /// A turn (one answer and its tool calls) begins.
    TurnStart,
    /// A turn ended.
    TurnEnd {
        /// The answer.
        message: Arc<Message>,
        /// Results of its tool calls, in call order.
        tool_results: Vec<Arc<Message>>,
    },
    /// A message begins.
    MessageStart {
        /// The message so far.
        message: Arc<Message>,
    },
    /// An answer grew.
    MessageUpdate {
        /// Token counts so far.
        usage: Usage,
        /// What arrived.
        assistant_message_event: StreamEvent,
    },
    /// A message is complete; it is on disk.
    MessageEnd {
        /// The message.
        message: Arc<Message>,
    },
    /// A tool call is about to run.
    ToolExecutionStart {
        /// Id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// Arguments as the model wrote them.
        args: Map<String, Value>,
        /// The call whose tool made this one (`ctx.executeTool` of extensions); absent for calls of the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A tool came further; each update replaces the one before.
    ToolExecutionUpdate {
        /// Id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// Arguments as the model wrote them.
        args: Map<String, Value>,
        /// Everything so far.
        partial_result: ToolResult,
        /// The call whose tool made this one (`ctx.executeTool` of extensions); absent for calls of the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A tool call ended.
    ToolExecutionEnd {
        /// Id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What it gave back.
        result: ToolResult,
        /// Did it fail?
        is_error: bool,
        /// Run time in milliseconds; absent when the tool did not run.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// The call whose tool made this one (`ctx.executeTool` of extensions); absent for calls of the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// The host is to carry out a call of one of its tools. It answers with `host_tool_result`, whenever it can.
    HostToolCall {
        /// Id of this question, for the answer.
        id: String,
        /// Id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// Arguments in the types of the tool's schema.
        arguments: Map<String, Value>,
    },
    /// A call of the host is over; no answer is wanted any more.
    HostToolCancel {
        /// Id of this line.
        id: String,
        /// Id of the question.
        target_id: String,
    },
    /// The host is to read or write one of its URIs. It answers with `host_uri_result`.
    HostUriRequest {
        /// Id of this question, for the answer.
        id: String,
        /// What is wanted.
        operation: UriOperation,
        /// The URI as the model wrote it.
        url: String,
        /// What to write.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
    },
    /// Reading or writing a URI is over; no answer is wanted any more.
    HostUriCancel {
        /// Id of this line.
        id: String,
        /// Id of the question.
        target_id: String,
    },
    /// Something for the person in front of the client: a question, which is answered with `extension_ui_response`, or something
    /// to show.
    ExtensionUiRequest {
        /// What.
        #[serde(flatten)]
        request: Box<UiRequest>,
    },
    /// A queue changed.
    QueueUpdate {
        /// Texts that wait for the next turn.
        steering: Vec<String>,
        /// Texts that wait for the end of the run.
        follow_up: Vec<String>,
    },
    /// A compaction begins.
    CompactionStart {
        /// Why.
        reason: CompactionReason,
    },
    /// A compaction ended.
    CompactionEnd {
        /// Why it ran.
        reason: CompactionReason,
        /// What it produced; null when it failed or was aborted.
        result: Option<CompactionResult>,
        /// Was it aborted?
        aborted: bool,
        /// Will the run that overflowed be tried again?
        will_retry: bool,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// A run failed and will be tried again after a wait.
    AutoRetryStart {
        /// 1 for the first retry.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// The wait, in milliseconds.
        delay_ms: u64,
        /// Why the run failed.
        error_message: String,
    },
    /// The session is another one now, or at another place of its tree: what a client shows is out of date (dialects.md 3).
    SessionChanged {
        /// Why.
        reason: ChangeReason,
        /// Session id.
        session_id: String,
        /// Its file, which may not exist yet; absent without persistence.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_file: Option<String>,
        /// Its name, when it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_name: Option<String>,
        /// Messages in the conversation.
        message_count: usize,
    },
    /// A session other than the first is closed. Told in the web dialect, and to clients that name it with `hello`.
    SessionClosed {
        /// Why.
        reason: CloseReason,
        /// Session id.
        session_id: String,
        /// Its file, which may not exist; absent without persistence.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_file: Option<String>,
    },
    /// The request for a summary failed and will be made again after a wait (pi-1.5-delta.md 5).
    SummarizationRetryScheduled {
        /// 1 for the first retry.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
        /// The wait, in milliseconds.
        delay_ms: u64,
        /// Why the request failed.
        error_message: String,
    },
    /// The wait is over and the request is made again.
    SummarizationRetryAttemptStart {
        /// What the summary is for.
        source: SummarySource,
        /// Why the conversation is compacted; absent for a branch.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<CompactionReason>,
    },
    /// Retrying the request for a summary is over, whatever came of it.
    SummarizationRetryFinished,
    /// Retrying is over.
    AutoRetryEnd {
        /// Did a retry succeed?
        success: bool,
        /// How many were made.
        attempt: u32,
        /// Why the last one failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<String>,
    },
    /// The thinking level changed.
    ThinkingLevelChanged {
        /// The level from now on.
        level: ThinkingLevel,
    },
    /// The session got another name.
    SessionInfoChanged {
        /// The name; absent when it was removed.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// An extension failed at something (dialects.md 10.3); what it was about goes on. Called `hook_error` with `hookPath` by
    /// older clients.
    ExtensionError {
        /// Its file; `command:NAME` when it was a slash command.
        extension_path: String,
        /// The event or call that it failed at.
        event: String,
        /// What it said.
        error: String,
    },
    /// An extension's entry was appended.
    EntryAppended {
        /// The entry.
        entry: Arc<Entry>,
    },
    /// A `bash` command of some client begins. Told in the web dialect, and to clients that name it with `hello`.
    BashExecutionStart {
        /// Id of the command, when it had one; commands of other clients may have the same. Not in the web dialect.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// The same in the web dialect, where events have no `id` of somebody's command (seed 001).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_id: Option<Value>,
        /// Which run of a command this is; no other of the session has the same.
        bash_id: String,
        /// The command line.
        command: String,
        /// True keeps it from the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        exclude_from_context: Option<bool>,
    },
    /// A `bash` command printed something.
    BashExecutionUpdate {
        /// Id of the command, when it had one; not in the web dialect.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// The same in the web dialect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_id: Option<Value>,
        /// Which run of a command printed it; only in the web dialect.
        #[serde(skip_serializing_if = "Option::is_none")]
        bash_id: Option<String>,
        /// What it printed.
        delta: String,
    },
    /// A `bash` command ended, or could not be started. Told where its start is told.
    BashExecutionEnd {
        /// Id of the command, when it had one; not in the web dialect.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// The same in the web dialect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_id: Option<Value>,
        /// Which run of a command this is.
        bash_id: String,
        /// The command line.
        command: String,
        /// True keeps it from the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        exclude_from_context: Option<bool>,
        /// How it ended.
        #[serde(flatten)]
        result: BashResult,
        /// Why it could not be started.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Rules matched the answer that streams in: it is stopped, the model is told them, and another run follows
    /// (dialects.md 8).
    TtsrTriggered {
        /// The rules.
        rules: Vec<Arc<Rule>>,
    },
    /// The model stopped while todos are open; it is reminded of them and another run follows (dialects.md 8).
    TodoReminder {
        /// Open items of all phases.
        todos: Vec<OpenTodo>,
        /// 1 for the first reminder since the user said something.
        attempt: u32,
        /// How many there may be.
        max_attempts: u32,
    },
    /// A todo that was done left the list; `get_state` has what remains. One for each.
    TodoAutoClear,
    /// Something a person should know; nothing depends on it.
    Notice {
        /// `info`, `warning` or `error`.
        level: String,
        /// A sentence.
        message: String,
    },
    /// A session file had damage; whole entries were kept (DESIGN.md, persistence).
    SessionDamage {
        /// The file.
        path: String,
        /// What was found, for people.
        message: String,
        /// Lines that were skipped, 1-based.
        lines: Vec<u64>,
        /// Bytes of a torn last line that were cut off.
        torn_bytes: u64,
    },
    /// Something about the session's MCP servers has changed. Told only where `get_mcp_servers`, `set_mcp_servers` or
    /// `mcp_reconnect` was used.
    McpServersChange {
        /// The servers of the session.
        servers: Vec<McpServer>,
    },
    /// Nothing was said for a while, but the run is alive. Sent only to clients that asked for it with `hello`.
    Heartbeat {
        /// Is a run under way? False while a failed one waits to be tried again.
        is_streaming: bool,
        /// Is the conversation being compacted?
        is_compacting: bool,
        /// Does a failed run wait to be tried again?
        is_retrying: bool,
        /// Ids of the tool calls that are running.
        running_tools: Vec<String>,
        /// For how long nothing was said, in milliseconds.
        silent_ms: u64,
    },
}
