//! What a connection knows of a session and of the prompt that runs in it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::message::StopReason;
use wire::{Event, Message};

use crate::config::Config;
use crate::rpc::{Failure, INTERNAL};
use crate::tool_calls;

/// A session of the connection.
#[derive(Debug)]
pub(crate) struct SessionState {
    /// The handle for commands.
    pub(crate) handle: Arc<str>,
    /// Its working directory.
    pub(crate) cwd: PathBuf,
    pub(crate) config: Config,
    /// The calls that have started and not ended, as the client knows them.
    calls: HashMap<String, Map<String, Value>>,
    /// Terminals of calls that have not begun here: the client may be faster than the session.
    terminals: HashMap<String, Value>,
    /// Compactions that have begun. They number the current one.
    pub(crate) compactions: u64,
    /// The `usage_update` that the client got last.
    pub(crate) told_usage: Value,
    /// The last update about commands; null before.
    pub(crate) told_commands: Value,
    /// True once the client has a title.
    pub(crate) has_title: bool,
    /// The prompt that waits for its end.
    pub(crate) turn: Option<Turn>,
}

/// A prompt whose request is open.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The id of the request.
    pub(crate) request: Value,
    /// The session has started a run for it. What settles before belongs to another run.
    pub(crate) is_started: bool,
    /// The client cancelled it. The protocol then wants the stop reason `cancelled` in any case.
    pub(crate) is_cancelled: bool,
    /// The title that the session gets from it.
    pub(crate) title: Option<String>,
    stop: StopReason,
    error: Option<String>,
}

impl SessionState {
    pub(crate) fn new(handle: Arc<str>, cwd: &Path) -> Self {
        Self {
            handle,
            cwd: cwd.to_path_buf(),
            config: Config::default(),
            calls: HashMap::new(),
            terminals: HashMap::new(),
            compactions: 0,
            told_usage: Value::Null,
            told_commands: Value::Null,
            has_title: false,
            turn: None,
        }
    }

    /// The call that a permission request is about.
    pub(crate) fn call(&self, id: &str) -> Map<String, Value> {
        let unknown = || Map::from_iter([("toolCallId".to_owned(), id.into())]);
        self.calls.get(id).cloned().unwrap_or_else(unknown)
    }

    /// Shows the terminal of a call. Returns the update for the client.
    pub(crate) fn embed(&mut self, id: &str, terminal: &str) -> Option<Value> {
        let terminal = json!({"type": "terminal", "terminalId": terminal});
        let Some(call) = self.calls.get_mut(id) else {
            self.terminals.insert(id.to_owned(), terminal);
            return None;
        };
        call.insert("content".to_owned(), json!([terminal]));
        Some(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": id,
            "status": "in_progress",
            "content": [terminal],
        }))
    }

    /// What a call shows in addition to its output: the changes that it proposes, or its terminal.
    pub(crate) fn shown_by(&self, id: &str) -> Vec<Value> {
        let content = self.calls.get(id).and_then(|call| call.get("content"));
        content.and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// Keeps the call or compaction that an event begins. `old_text` is the text of the file that a call replaces.
    pub(crate) fn begin(&mut self, event: &Event, old_text: Option<&str>) {
        match event {
            Event::ToolExecutionStart {
                tool_call_id,
                tool_name,
                args,
                ..
            } => {
                let mut call = tool_calls::describe(tool_call_id, tool_name, args, &self.cwd, old_text);
                if let Some(terminal) = self.terminals.remove(tool_call_id) {
                    call.insert("content".to_owned(), json!([terminal]));
                }
                self.calls.insert(tool_call_id.clone(), call);
            }
            Event::CompactionStart { .. } => self.compactions += 1,
            _ => {}
        }
    }

    /// Follows an event. Returns the turn that it ends, and its outcome.
    pub(crate) fn note(&mut self, event: &Event) -> Option<(Value, Result<Value, Failure>)> {
        match event {
            Event::ToolExecutionEnd { tool_call_id, .. } => {
                self.calls.remove(tool_call_id);
            }
            Event::AgentEnd { .. } => {
                self.calls.clear();
                self.terminals.clear();
            }
            Event::SessionInfoChanged { name } => self.has_title = name.is_some(),
            Event::MessageEnd { message } => {
                if let (Some(turn), Message::Assistant(answer)) = (&mut self.turn, &**message) {
                    turn.stop = answer.stop_reason;
                    turn.error.clone_from(&answer.error_message);
                }
            }
            Event::AgentSettled { aborted } => {
                let turn = self.turn.take_if(|turn| turn.is_started)?;
                return Some(turn.end(*aborted));
            }
            _ => {}
        }
        None
    }
}

impl Turn {
    pub(crate) fn new(request: Value) -> Self {
        Self {
            request,
            is_started: false,
            is_cancelled: false,
            title: None,
            stop: StopReason::Stop,
            error: None,
        }
    }

    /// The request and its outcome.
    pub(crate) fn end(self, is_aborted: bool) -> (Value, Result<Value, Failure>) {
        let reason = match self.stop {
            _ if is_aborted || self.is_cancelled => "cancelled",
            StopReason::Aborted => "cancelled",
            StopReason::Length => "max_tokens",
            StopReason::Error => {
                let error = self
                    .error
                    .unwrap_or_else(|| "The model request failed".to_owned());
                return (self.request, Err(Failure::new(INTERNAL, error)));
            }
            StopReason::Stop | StopReason::ToolUse | StopReason::Deferred | StopReason::Pending => "end_turn",
        };
        (self.request, Ok(json!({"stopReason": reason})))
    }
}
