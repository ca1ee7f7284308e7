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
        self.state().saw(event);
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
        // Every change is complete in itself, so that the state stays valid if a holder of the lock panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn saw(&mut self, event: &Arc<Event>) {
        match &**event {
            Event::AutoRetryStart { .. } => self.retry = Some((Arc::clone(event), Instant::now())),
            // The delay ends when the attempt begins. `auto_retry_end` follows only when its outcome is known (behaviour.md 7.2).
            Event::AgentStart | Event::AutoRetryEnd { .. } => self.retry = None,
            // Shell commands of the user stay: no run ends them, and a session change waits for their end.
            Event::AgentEnd { .. } => self.tools.clear(),
            Event::AgentSettled { .. } | Event::SessionChanged { .. } => {
                self.retry = None;
                self.tools.clear();
            }
            Event::ToolExecutionStart { tool_call_id, .. } => {
                self.tools.push((tool_call_id.clone(), Arc::clone(event)));
            }
            Event::ToolExecutionUpdate { tool_call_id, .. } => {
                // An update must not bring back a call that has ended.
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
            // Dialogs are open work of the session, which lists them in a snapshot itself.
            _ => return,
        };
        self.shown.retain(|shown| {
            shown.method != request.method
                || shown.status_key != request.status_key
                || shown.widget_key != request.widget_key
        });
        if is_there {
            // Extensions choose the keys, so that their number needs a bound.
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

#[cfg(test)]
mod tests {
    use serde_json::Map;
    use wire::ToolResult;
    use wire::event::ChangeReason;

    use super::*;

    fn saw(state: &LiveState, event: Event) {
        state.saw(&Arc::new(event));
    }

    fn retry(delay_ms: u64) -> Event {
        Event::AutoRetryStart {
            attempt: 2,
            max_attempts: 3,
            delay_ms,
            error_message: "overloaded".to_owned(),
        }
    }

    fn start(id: &str) -> Event {
        Event::ToolExecutionStart {
            tool_call_id: id.to_owned(),
            tool_name: "bash".to_owned(),
            args: Map::new(),
            parent_tool_call_id: None,
        }
    }

    fn update(id: &str, text: &str) -> Event {
        Event::ToolExecutionUpdate {
            tool_call_id: id.to_owned(),
            tool_name: "bash".to_owned(),
            args: Map::new(),
            partial_result: ToolResult::text(text),
            parent_tool_call_id: None,
        }
    }

    fn bash(id: &str) -> Event {
        Event::BashExecutionStart {
            id: None,
            command_id: None,
            bash_id: id.to_owned(),
            command: "make".to_owned(),
            exclude_from_context: None,
        }
    }

    fn output(id: &str, delta: &str) -> Event {
        Event::BashExecutionUpdate {
            id: None,
            command_id: None,
            bash_id: Some(id.to_owned()),
            delta: delta.to_owned(),
        }
    }

    fn show(request: UiRequest) -> Event {
        Event::ExtensionUiRequest {
            request: Box::new(request),
        }
    }

    fn status(key: &str, text: Option<&str>) -> Event {
        show(UiRequest {
            status_key: Some(key.to_owned()),
            status_text: text.map(str::to_owned),
            ..UiRequest::new(String::new(), UiMethod::SetStatus)
        })
    }

    fn calls(state: &LiveState) -> Vec<String> {
        state.tools().into_iter().map(|tool| tool.tool_call_id).collect()
    }

    #[test]
    fn waiting_retry_shows_rest_of_its_delay() {
        let state = LiveState::default();
        saw(&state, retry(3_600_000));
        let waiting = state.retry().unwrap();
        assert!(waiting.delay_ms <= 3_600_000 && waiting.delay_ms > 0);
        assert_eq!((waiting.attempt, waiting.max_attempts), (2, 3));
        saw(&state, retry(0));
        assert_eq!(state.retry().unwrap().delay_ms, 0, "a delay never gets negative");
    }

    #[test]
    fn retry_is_over_when_its_run_begins() {
        let state = LiveState::default();
        saw(&state, retry(1000));
        saw(&state, Event::TurnStart);
        assert!(state.retry().is_some());
        saw(&state, Event::AgentStart);
        assert!(state.retry().is_none());
        saw(&state, retry(1000));
        saw(&state, Event::AgentSettled { aborted: true });
        assert!(state.retry().is_none());
    }

    #[test]
    fn running_tools_keep_order_and_newest_update() {
        let state = LiveState::default();
        for event in [start("a"), start("b"), update("a", "one"), update("a", "two")] {
            saw(&state, event);
        }
        let tools = state.tools();
        assert_eq!(calls(&state), ["a", "b"]);
        assert_eq!(tools[0].partial_result, Some(ToolResult::text("two")));
        assert_eq!(tools[1].partial_result, None);
    }

    #[test]
    fn update_of_ended_tool_shows_nothing() {
        let state = LiveState::default();
        saw(&state, start("a"));
        saw(
            &state,
            Event::ToolExecutionEnd {
                tool_call_id: "a".to_owned(),
                tool_name: "bash".to_owned(),
                result: ToolResult::text("done"),
                is_error: false,
                duration_ms: None,
                parent_tool_call_id: None,
            },
        );
        saw(&state, update("a", "late"));
        assert!(calls(&state).is_empty());
    }

    #[test]
    fn other_session_has_no_running_tools() {
        let state = LiveState::default();
        saw(&state, start("a"));
        saw(&state, retry(1000));
        saw(
            &state,
            Event::SessionChanged {
                reason: ChangeReason::New,
                session_id: "new".to_owned(),
                session_file: None,
                session_name: None,
                message_count: 0,
            },
        );
        assert!(calls(&state).is_empty() && state.retry().is_none());
    }

    #[test]
    fn shell_output_is_kept_per_command() {
        let state = LiveState::default();
        for event in [
            bash("b1"),
            bash("b2"),
            output("b2", "x"),
            output("b1", "y"),
            output("b2", "z"),
        ] {
            saw(&state, event);
        }
        let outputs: Vec<String> = state.bash().into_iter().map(|bash| bash.output).collect();
        assert_eq!(outputs, ["y", "xz"]);
    }

    #[test]
    fn long_shell_output_keeps_its_end() {
        let state = LiveState::default();
        saw(&state, bash("b1"));
        saw(&state, output("b1", &"x".repeat(2 * limits::RUNNING_OUTPUT)));
        assert_eq!(state.bash()[0].output.len(), 2 * limits::RUNNING_OUTPUT);
        saw(&state, output("b1", "end"));
        let output = &state.bash()[0].output;
        assert_eq!(output.len(), limits::RUNNING_OUTPUT);
        assert!(output.ends_with("xend"));
    }

    #[test]
    fn shell_output_is_cut_between_letters() {
        let mut output = "ä".repeat(limits::RUNNING_OUTPUT);
        output.push('x');
        cut(&mut output);
        assert_eq!(output.len(), limits::RUNNING_OUTPUT - 1);
        assert!(output.starts_with('ä') && output.ends_with('x'));
    }

    #[test]
    fn newer_status_replaces_status_of_its_key() {
        let state = LiveState::default();
        for event in [
            status("a", Some("1")),
            status("b", Some("2")),
            status("a", Some("3")),
        ] {
            saw(&state, event);
        }
        let texts = |state: &LiveState| -> Vec<String> {
            state
                .shown()
                .into_iter()
                .filter_map(|shown| shown.status_text)
                .collect()
        };
        assert_eq!(texts(&state), ["2", "3"]);
        saw(&state, status("b", None));
        assert_eq!(texts(&state), ["3"], "a status without text is removed");
    }

    #[test]
    fn dialogs_and_notifications_are_not_kept() {
        let state = LiveState::default();
        for method in [UiMethod::Notify, UiMethod::Select, UiMethod::SetWidget] {
            saw(&state, show(UiRequest::new("1".to_owned(), method)));
        }
        assert!(state.shown().is_empty(), "{:?}", state.shown());
        saw(&state, show(UiRequest::new("2".to_owned(), UiMethod::SetTitle)));
        assert_eq!(state.shown().len(), 1);
    }

    #[test]
    fn shown_frames_are_bounded() {
        let state = LiveState::default();
        for n in 0..=limits::SHOWN {
            saw(&state, status(&n.to_string(), Some("x")));
        }
        let shown = state.shown();
        assert_eq!(shown.len(), limits::SHOWN);
        assert_eq!(shown[0].status_key.as_deref(), Some("1"), "the oldest is dropped");
    }
}
