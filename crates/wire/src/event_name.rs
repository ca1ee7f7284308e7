//! Names of the events, as they stand in `type`: what a filter of events is made of.

use crate::event::Event;

macro_rules! names {
    ($( $variant:ident = $name:literal; )+) => {
        /// Names of all events, in the order of the reference page.
        pub const EVENT_NAMES: &[&str] = &[ $($name),+ ];

        impl Event {
            /// The `type` on the wire.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant { .. } => $name, )+ }
            }
        }
    };
}

names! {
    Ready = "ready";
    Connected = "connected";
    AgentStart = "agent_start";
    AgentEnd = "agent_end";
    AgentSettled = "agent_settled";
    TurnStart = "turn_start";
    TurnEnd = "turn_end";
    MessageStart = "message_start";
    MessageUpdate = "message_update";
    MessageEnd = "message_end";
    ToolExecutionStart = "tool_execution_start";
    ToolExecutionUpdate = "tool_execution_update";
    ToolExecutionEnd = "tool_execution_end";
    QueueUpdate = "queue_update";
    SessionChanged = "session_changed";
    SessionClosed = "session_closed";
    HostToolCall = "host_tool_call";
    TtsrTriggered = "ttsr_triggered";
    TodoReminder = "todo_reminder";
    TodoAutoClear = "todo_auto_clear";
    HostToolCancel = "host_tool_cancel";
    HostUriRequest = "host_uri_request";
    HostUriCancel = "host_uri_cancel";
    ExtensionUiRequest = "extension_ui_request";
    ExtensionError = "extension_error";
    CompactionStart = "compaction_start";
    CompactionEnd = "compaction_end";
    AutoRetryStart = "auto_retry_start";
    SummarizationRetryScheduled = "summarization_retry_scheduled";
    SummarizationRetryAttemptStart = "summarization_retry_attempt_start";
    SummarizationRetryFinished = "summarization_retry_finished";
    AutoRetryEnd = "auto_retry_end";
    ThinkingLevelChanged = "thinking_level_changed";
    SessionInfoChanged = "session_info_changed";
    EntryAppended = "entry_appended";
    BashExecutionStart = "bash_execution_start";
    BashExecutionUpdate = "bash_execution_update";
    BashExecutionEnd = "bash_execution_end";
    Notice = "notice";
    SessionDamage = "session_damage";
    StorageStatus = "storage_status";
    McpServersChange = "mcp_servers_change";
    Heartbeat = "heartbeat";
}

/// The event that an older name stands for (dialects.md 5, rows 1 to 3); other names stand for themselves.
#[must_use]
pub fn canonical_event(name: &str) -> &str {
    match name {
        "auto_compaction_start" => "compaction_start",
        "auto_compaction_end" | "compaction" => "compaction_end",
        "hook_error" => "extension_error",
        "hook_ui_request" => "extension_ui_request",
        other => other,
    }
}
