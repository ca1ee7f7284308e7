//! The events that are still in force: a retry that waits, tools and shell commands that run, what extensions show. A client that
//! joins later gets them with a snapshot. Nothing of a session is decided by it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::Event;
use wire::connection::{RunningBash, RunningTool, WaitingRetry};
use wire::ui::{UiMethod, UiRequest};

use crate::limits;

/// See the module's page. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveState(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The `auto_retry_start`, and when it was told.
    retry: Option<(Arc<Event>, Instant)>,
    /// The newest event of each tool call that runs, in the order they began.
    tools: Vec<(String, Arc<Event>)>,
    bash: Vec<RunningBash>,
    /// The newest frame of each thing that is shown.
    shown: Vec<UiRequest>,
}

impl LiveState {
    /// Notes an event that is sent.
    pub(crate) fn saw(&self, event: &Arc<Event>) {
        if !matches!(**event, Event::MessageUpdate { .. }) {
            self.state().saw(event);
        }
    }

    /// The retry that waits, with the rest of its delay.
    pub(crate) fn retry(&self) -> Option<WaitingRetry> {
        let state = self.state();
        let (event, told) = state.retry.as_ref()?;
        let Event::AutoRetryStart {
            attempt,
            max_attempts,
            delay_ms,
            error_message,
        } = &**event
        else {
            return None;
        };
        let left = Duration::from_millis(*delay_ms).saturating_sub(told.elapsed());
        Some(WaitingRetry {
            attempt: *attempt,
            max_attempts: *max_attempts,
            delay_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            error_message: error_message.clone(),
        })
    }

    /// Tool calls that run.
    pub(crate) fn tools(&self) -> Vec<RunningTool> {
        let state = self.state();
        let tools = state.tools.iter();
        tools.filter_map(|(_, event)| running_tool(event)).collect()
    }

    /// Shell commands of clients that run.
    pub(crate) fn bash(&self) -> Vec<RunningBash> {
        self.state().bash.clone()
    }

    /// What extensions show.
    pub(crate) fn shown(&self) -> Vec<UiRequest> {
        self.state().shown.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn saw(&mut self, event: &Arc<Event>) {
        match &**event {
            Event::AutoRetryStart { .. } => self.retry = Some((Arc::clone(event), Instant::now())),
            Event::AgentStart | Event::AutoRetryEnd { .. } => self.retry = None,
            Event::AgentEnd { .. } => self.tools.clear(),
            Event::AgentSettled { .. } | Event::SessionChanged { .. } => {
                self.retry = None;
                self.tools.clear();
            }
            Event::ToolExecutionStart { tool_call_id, .. } => {
                self.tools.push((tool_call_id.clone(), Arc::clone(event)));
            }
            Event::ToolExecutionUpdate { tool_call_id, .. } => {
                let call = self.tools.iter_mut().find(|(id, _)| id == tool_call_id);
                if let Some((_, newest)) = call {
                    *newest = Arc::clone(event);
                }
            }
            Event::ToolExecutionEnd { tool_call_id, .. } => self.tools.retain(|(id, _)| id != tool_call_id),
            Event::BashExecutionStart {
                id,
                bash_id,
                command,
                exclude_from_context,
                ..
            } => self.bash.push(RunningBash {
                id: id.clone(),
                bash_id: bash_id.clone(),
                command: command.clone(),
                exclude_from_context: *exclude_from_context,
                output: String::new(),
            }),
            Event::BashExecutionUpdate {
                bash_id: Some(bash_id),
                delta,
                ..
            } => {
                if let Some(bash) = self.bash.iter_mut().find(|bash| bash.bash_id == *bash_id) {
                    bash.output.push_str(delta);
                    cut(&mut bash.output);
                }
            }
            Event::BashExecutionEnd { bash_id, .. } => self.bash.retain(|bash| bash.bash_id != *bash_id),
            Event::ExtensionUiRequest { request, .. } => self.show(request),
            _ => {}
        }
    }

    /// Something is shown in place of something else, or removed.
    fn show(&mut self, request: &UiRequest) {
        let is_there = match request.method {
            UiMethod::SetTitle => true,
            UiMethod::SetStatus => request.status_text.is_some(),
            UiMethod::SetWidget => request.widget_lines.is_some(),
            _ => return,
        };
        self.shown.retain(|shown| {
            shown.method != request.method
                || shown.status_key != request.status_key
                || shown.widget_key != request.widget_key
        });
        if is_there {
            if self.shown.len() >= limits::SHOWN {
                self.shown.remove(0);
            }
            self.shown.push(request.clone());
        }
    }
}

/// The call of a start or an update.
fn running_tool(event: &Event) -> Option<RunningTool> {
    let (id, name, args, parent, partial) = match event {
        Event::ToolExecutionStart {
            tool_call_id,
            tool_name,
            args,
            parent_tool_call_id,
        } => (tool_call_id, tool_name, args, parent_tool_call_id, None),
        Event::ToolExecutionUpdate {
            tool_call_id,
            tool_name,
            args,
            partial_result,
            parent_tool_call_id,
        } => (
            tool_call_id,
            tool_name,
            args,
            parent_tool_call_id,
            Some(partial_result),
        ),
        _ => return None,
    };
    Some(RunningTool {
        tool_call_id: id.clone(),
        tool_name: name.clone(),
        args: args.clone(),
        parent_tool_call_id: parent.clone(),
        partial_result: partial.cloned(),
    })
}

/// Cuts the front of an output that is too long, in pieces large enough that it does not happen with every line.
fn cut(output: &mut String) {
    if output.len() > 2 * limits::RUNNING_OUTPUT {
        let mut from = output.len() - limits::RUNNING_OUTPUT;
        while !output.is_char_boundary(from) {
            from += 1;
        }
        output.drain(..from);
    }
}
