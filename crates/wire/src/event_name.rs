//! The table of events: their names, as they stand in `type`, and the dialects that have them. What an event says is in
//! `event`, with its members.

use crate::dialect_set::{ALL, Belongs, E, EVERY, HO, LATE, N, OWN, PI, W, XN};
use crate::event::Event;

macro_rules! events {
    ($( $variant:ident = $name:literal, $dialects:expr; )+ [older: $( $older:literal = $today:literal, $had:expr; )+]) => {
        /// Names of all events, in the order of the reference page.
        pub const EVENT_NAMES: &[&str] = &[ $($name),+ ];

        /// The events and the dialects that have them; [`OWN`] if the event is Pinion's alone.
        pub(crate) const EVENT_DIALECTS: &[Belongs] = &[ $(($name, $dialects)),+ ];

        /// Names of lines that single dialects have for an event, and these dialects.
        pub(crate) const OLDER_EVENTS: &[Belongs] = &[ $(($older, $had)),+ ];

        impl Event {
            /// The `type` on the wire.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant { .. } => $name, )+ }
            }
        }

        /// The event that an older name stands for (dialects.md 5, rows 1 to 3); other names stand for themselves.
        #[must_use]
        pub fn canonical_event(name: &str) -> &str {
            match name {
                $( $older => $today, )+
                other => other,
            }
        }
    };
}

events! {
    Ready = "ready", XN;
    Connected = "connected", OWN;
    AgentStart = "agent_start", EVERY;
    AgentEnd = "agent_end", EVERY;
    ModelFallback = "model_fallback", OWN;
    AgentSettled = "agent_settled", PI;
    TurnStart = "turn_start", EVERY;
    TurnEnd = "turn_end", EVERY;
    MessageStart = "message_start", EVERY;
    MessageUpdate = "message_update", EVERY;
    MessageEnd = "message_end", EVERY;
    ToolExecutionStart = "tool_execution_start", EVERY;
    ToolExecutionUpdate = "tool_execution_update", ALL;
    ToolExecutionEnd = "tool_execution_end", EVERY;
    QueueUpdate = "queue_update", PI;
    SessionChanged = "session_changed", W;
    SessionClosed = "session_closed", OWN;
    HostToolCall = "host_tool_call", XN;
    TtsrTriggered = "ttsr_triggered", XN;
    TodoReminder = "todo_reminder", XN;
    TodoAutoClear = "todo_auto_clear", XN;
    HostToolCancel = "host_tool_cancel", XN;
    HostUriRequest = "host_uri_request", N;
    HostUriCancel = "host_uri_cancel", N;
    ExtensionUiRequest = "extension_ui_request", LATE;
    ExtensionError = "extension_error", LATE;
    CompactionStart = "compaction_start", PI;
    CompactionEnd = "compaction_end", PI;
    AutoRetryStart = "auto_retry_start", ALL;
    SummarizationRetryScheduled = "summarization_retry_scheduled", PI;
    SummarizationRetryAttemptStart = "summarization_retry_attempt_start", PI;
    SummarizationRetryFinished = "summarization_retry_finished", PI;
    AutoRetryEnd = "auto_retry_end", ALL;
    ThinkingLevelChanged = "thinking_level_changed", N.and(PI);
    SessionInfoChanged = "session_info_changed", PI;
    EntryAppended = "entry_appended", PI;
    BashExecutionStart = "bash_execution_start", OWN;
    BashExecutionUpdate = "bash_execution_update", PI;
    BashExecutionEnd = "bash_execution_end", OWN;
    SubagentLifecycle = "subagent_lifecycle", N;
    SubagentProgress = "subagent_progress", N;
    SubagentEvent = "subagent_event", N;
    ProcessStart = "process_start", OWN;
    ProcessOutput = "process_output", OWN;
    ProcessEnd = "process_end", OWN;
    Notice = "notice", N;
    SessionDamage = "session_damage", OWN;
    StorageStatus = "storage_status", OWN;
    McpServersChange = "mcp_servers_change", OWN;
    AvailableCommandsUpdate = "available_commands_update", N;
    Heartbeat = "heartbeat", OWN;
    [older:
        "auto_compaction_start" = "compaction_start", W.and(HO).and(XN);
        "auto_compaction_end" = "compaction_end", W.and(HO).and(XN);
        "compaction" = "compaction_end", E;
        "hook_error" = "extension_error", HO;
        "hook_ui_request" = "extension_ui_request", HO;
        "prompt_result" = "agent_settled", N;
        "session_settled" = "agent_settled", N;
        "retry_fallback_applied" = "model_fallback", XN;
        "retry_fallback_succeeded" = "model_fallback", XN;
    ]
}
