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
use crate::omp::AvailableCommand;
use crate::process::ProcessInfo;
use crate::rule::Rule;
use crate::run_limits::ReachedLimit;
use crate::state::BashResult;
use crate::subagent::{SubagentEvent, SubagentLifecycle, SubagentProgress};
use crate::todo::OpenTodo;
use crate::tool::ToolResult;
use crate::ui::UiRequest;
use crate::usage::Usage;

pub use crate::reasons::{CloseReason, SummarySource};

/// A step of a streamed answer (`assistantMessageEvent`).
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
    /// A thinking block begins.
    ThinkingStart {
        /// Position in the message's content.
        content_index: usize,
    },
    /// Thinking text arrived.
    ThinkingDelta {
        /// Position in the message's content.
        content_index: usize,
        /// The new text.
        delta: String,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// Position in the message's content.
        content_index: usize,
        /// The whole text.
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
    /// A part of the arguments arrived, as JSON text.
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
        /// The whole call as a content block (`type` is `toolCall`).
        #[serde(
            serialize_with = "crate::content::serialize_tool_call",
            deserialize_with = "crate::content::deserialize_tool_call"
        )]
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

/// Why the session or its position changed.
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
    /// `navigate_tree`: the same session at another entry.
    Tree,
    /// `reload_resources`: the same session with reloaded settings and resources.
    Reload,
}

/// Result of a compaction; also the response to `compact`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// Summary of everything before `firstKeptEntryId`.
    pub summary: String,
    /// Two or three sentences for lists and titles. Only the dialect `omp-now` asks the model for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_summary: Option<String>,
    /// First entry that is still sent to the model.
    pub first_kept_entry_id: String,
    /// Tokens in the context before.
    pub tokens_before: u64,
    /// `readFiles` and `modifiedFiles`.
    pub details: Value,
    /// Estimate of the tokens in the context afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_tokens_after: Option<u64>,
    /// Tokens and cost of the summaries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// Events that a session sends to its clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Event {
    /// First line of the stream. Clients of oh-my-pi and xcsh wait for it; all others ignore it.
    Ready {
        /// Version of the program.
        version: String,
    },
    /// First message of the web server to a client whose URL contains `after` or `instance`. It has no `seq`.
    Connected {
        /// Id of the process. Sequence numbers are only valid within one process.
        instance_id: String,
        /// True if all events after the number in the URL follow. If false, some are no longer stored or belong to
        /// another process; use `replay` for a snapshot.
        is_complete: bool,
        /// Current position of the client: the number in its URL, or that of the newest event.
        last_seq: u64,
    },
    /// A run begins; a retry is a run of its own.
    AgentStart,
    /// A run ended.
    AgentEnd {
        /// Messages that this run added, prompts included.
        messages: Vec<Arc<Message>>,
        /// Whether another run follows automatically (retry, recovery from an overflow).
        will_retry: bool,
        /// The limit that ended the run. A higher limit and `continue` resume it.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit: Option<ReachedLimit>,
        /// The result, if the prompt had a schema (`outputSchema`): a value that fits it.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<serde_json::Value>,
        /// Why there is no result although the prompt had a schema. Absent if another run follows by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        result_error: Option<String>,
    },
    /// The model of a run failed for good, and the run goes on with the next fallback model until the session has settled.
    ModelFallback {
        /// The model that failed, as `provider/id`.
        from: String,
        /// The model of the following requests, as `provider/id`.
        to: String,
        /// The error of the model that failed.
        reason: String,
    },
    /// The session is idle: nothing happens until the next command.
    AgentSettled {
        /// Whether the last run was aborted.
        aborted: bool,
    },
    /// A turn (one answer and its tool calls) begins.
    TurnStart,
    /// A turn ended.
    TurnEnd {
        /// The answer.
        message: Arc<Message>,
        /// Results of its tool calls, in the order of their `message_end`.
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
    /// A message is complete and was written to the session file.
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
        /// Id of the call whose tool made this call (`ctx.executeTool` of extensions). Absent for calls of the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A tool reports progress. Each update replaces the previous one.
    ToolExecutionUpdate {
        /// Id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// Arguments as the model wrote them.
        args: Map<String, Value>,
        /// The whole result so far.
        partial_result: ToolResult,
        /// Id of the call whose tool made this call (`ctx.executeTool` of extensions). Absent for calls of the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A tool call ended.
    ToolExecutionEnd {
        /// Id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// The result.
        result: ToolResult,
        /// Whether it failed.
        is_error: bool,
        /// Run time in milliseconds; absent when the tool did not run.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Id of the call whose tool made this call (`ctx.executeTool` of extensions). Absent for calls of the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// Asks the client to run one of its tools. The client answers with `host_tool_result`.
    HostToolCall {
        /// Id of the request, for the answer.
        id: String,
        /// Id of the call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// Arguments in the types of the tool's schema.
        arguments: Map<String, Value>,
    },
    /// Cancels a call of a client tool. An answer is no longer needed.
    HostToolCancel {
        /// Id of this line.
        id: String,
        /// Id of the request that is cancelled.
        target_id: String,
    },
    /// Asks the client to read or write one of its URIs. The client answers with `host_uri_result`.
    HostUriRequest {
        /// Id of the request, for the answer.
        id: String,
        /// The operation.
        operation: UriOperation,
        /// The URI as the model wrote it.
        url: String,
        /// Content to write.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
    },
    /// Cancels reading or writing a URI. An answer is no longer needed.
    HostUriCancel {
        /// Id of this line.
        id: String,
        /// Id of the request that is cancelled.
        target_id: String,
    },
    /// A dialog for the user, which the client answers with `extension_ui_response`, or something to show.
    ExtensionUiRequest {
        /// The dialog or notification.
        #[serde(flatten)]
        request: Box<UiRequest>,
    },
    /// A sub-agent starts or ends. Sent to clients that ask for it with `set_subagent_subscription`.
    SubagentLifecycle {
        /// The sub-agent and what happens.
        payload: Box<SubagentLifecycle>,
    },
    /// A sub-agent came further. Sent to clients that ask for it with `set_subagent_subscription`.
    SubagentProgress {
        /// The sub-agent and what it has done so far.
        payload: Box<SubagentProgress>,
    },
    /// An event of a sub-agent's session. Sent to clients that ask for it with `set_subagent_subscription`.
    SubagentEvent {
        /// The sub-agent and the event.
        payload: Box<SubagentEvent>,
    },
    /// A background process was started.
    ProcessStart {
        /// The process.
        process: Box<ProcessInfo>,
    },
    /// A background process has printed more. Sent once after each `read_process` with `notify`.
    ProcessOutput {
        /// The process.
        process_id: String,
        /// Bytes that it has printed.
        output_bytes: u64,
    },
    /// A background process has ended.
    ProcessEnd {
        /// The process.
        process: Box<ProcessInfo>,
    },
    /// A queue changed.
    QueueUpdate {
        /// Steering messages.
        steering: Vec<String>,
        /// Follow-up messages.
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
        /// The result; null if it failed or was aborted.
        result: Option<CompactionResult>,
        /// Whether it was aborted.
        aborted: bool,
        /// Whether the run that exceeded the context window is retried.
        will_retry: bool,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// A run failed and is retried after a delay.
    AutoRetryStart {
        /// 1 for the first retry.
        attempt: u32,
        /// Maximum number.
        max_attempts: u32,
        /// The delay in milliseconds.
        delay_ms: u64,
        /// Why the run failed.
        error_message: String,
    },
    /// The session changed, or its position in the tree. The client must read the conversation again.
    SessionChanged {
        /// Why.
        reason: ChangeReason,
        /// Session id.
        session_id: String,
        /// Path of the session file, which may not exist yet. Absent with `--no-session`.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_file: Option<String>,
        /// Name of the session, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_name: Option<String>,
        /// Number of messages in the conversation.
        message_count: usize,
    },
    /// A session other than the first was closed. Sent in the web dialect and to clients that request it with `hello`.
    SessionClosed {
        /// Why.
        reason: CloseReason,
        /// Session id.
        session_id: String,
        /// Path of the session file, which may not exist. Absent with `--no-session`.
        #[serde(skip_serializing_if = "Option::is_none")]
        session_file: Option<String>,
    },
    /// The request for a summary failed and is retried after a delay.
    SummarizationRetryScheduled {
        /// 1 for the first retry.
        attempt: u32,
        /// Maximum number.
        max_attempts: u32,
        /// The delay in milliseconds.
        delay_ms: u64,
        /// Why the request failed.
        error_message: String,
    },
    /// The request for a summary is retried.
    SummarizationRetryAttemptStart {
        /// What the summary is for.
        source: SummarySource,
        /// Why the conversation is compacted; absent for a branch.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<CompactionReason>,
    },
    /// Retries of the request for a summary have ended, with success or failure.
    SummarizationRetryFinished,
    /// Retries have ended.
    AutoRetryEnd {
        /// Whether a retry succeeded.
        success: bool,
        /// Number of retries.
        attempt: u32,
        /// Why the last one failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        final_error: Option<String>,
    },
    /// The thinking level changed.
    ThinkingLevelChanged {
        /// The new level.
        level: ThinkingLevel,
    },
    /// The name of the session changed.
    SessionInfoChanged {
        /// The name; absent when it was removed.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// An extension failed. The run continues. Older dialects receive it as `hook_error` with `hookPath`.
    ExtensionError {
        /// Path of the extension, or `command:NAME` for a slash command.
        extension_path: String,
        /// The event or call that failed.
        event: String,
        /// The error message.
        error: String,
    },
    /// An extension's entry was appended.
    EntryAppended {
        /// The entry.
        entry: Arc<Entry>,
    },
    /// A `bash` command of a client starts. Sent in the web dialect and to clients that request it with `hello`.
    BashExecutionStart {
        /// `id` of the command, if it had one. Commands of other clients can have the same. Absent in the web dialect.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// `id` of the command, in the web dialect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_id: Option<Value>,
        /// Id of this execution, unique in the session.
        bash_id: String,
        /// The command line.
        command: String,
        /// Whether it is hidden from the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        exclude_from_context: Option<bool>,
    },
    /// A `bash` command printed something.
    BashExecutionUpdate {
        /// `id` of the command, if it had one. Absent in the web dialect.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// `id` of the command, in the web dialect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_id: Option<Value>,
        /// Id of the execution. Only in the web dialect.
        #[serde(skip_serializing_if = "Option::is_none")]
        bash_id: Option<String>,
        /// The output.
        delta: String,
    },
    /// A `bash` command ended or could not be started. Sent to the clients that receive `bash_execution_start`.
    BashExecutionEnd {
        /// `id` of the command, if it had one. Absent in the web dialect.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// `id` of the command, in the web dialect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command_id: Option<Value>,
        /// Id of the execution.
        bash_id: String,
        /// The command line.
        command: String,
        /// Whether it is hidden from the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        exclude_from_context: Option<bool>,
        /// The result.
        #[serde(flatten)]
        result: BashResult,
        /// Why it could not be started.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// Rules matched the streamed answer. Pinion stops it, sends the rules to the model and starts another run.
    TtsrTriggered {
        /// The rules.
        rules: Vec<Arc<Rule>>,
    },
    /// The model stopped while todos are open. Pinion reminds it and starts another run.
    TodoReminder {
        /// Open items of all phases.
        todos: Vec<OpenTodo>,
        /// Number of the reminder since the last user message, starting at 1.
        attempt: u32,
        /// Maximum number.
        max_attempts: u32,
    },
    /// A completed todo was removed from the list. Sent once for each. `get_state` returns the remaining list.
    TodoAutoClear,
    /// A message for the user.
    Notice {
        /// `info`, `warning` or `error`.
        level: String,
        /// The message.
        message: String,
    },
    /// A session file was damaged. Complete entries were kept.
    SessionDamage {
        /// The file.
        path: String,
        /// Description of the damage.
        message: String,
        /// Numbers of the skipped lines, starting at 1.
        lines: Vec<u64>,
        /// Bytes of an incomplete last line that were removed.
        torn_bytes: u64,
    },
    /// Entries of the session could not be written to its file, or all of them are written again. Sent when that changes.
    /// Pinion keeps the entries in memory and tries again. `get_state` returns the current number.
    StorageStatus {
        /// The session file.
        path: String,
        /// Number of entries that wait to be written.
        pending: usize,
        /// Why they could not be written; absent when none waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The status of an MCP server changed. Sent only after a `get_mcp_servers`, `set_mcp_servers` or `mcp_reconnect`.
    McpServersChange {
        /// The servers of the session.
        servers: Vec<McpServer>,
    },
    /// The slash commands, after the start and when they have changed. Only for clients of today's oh-my-pi.
    AvailableCommandsUpdate {
        /// The slash commands that a prompt can begin with.
        commands: Vec<AvailableCommand>,
    },
    /// The run is active but has sent nothing for a while. Sent only to clients that request it with `hello`.
    Heartbeat {
        /// Whether a run is active. False during a retry delay.
        is_streaming: bool,
        /// Whether a compaction is running.
        is_compacting: bool,
        /// Whether a retry delay is running.
        is_retrying: bool,
        /// Ids of the tool calls that are running.
        running_tools: Vec<String>,
        /// Milliseconds since the last event.
        silent_ms: u64,
    },
}
