//! Calls that a tool of an extension makes while it runs itself (`ctx.executeTool`): with hooks and permissions, as if the
//! model had asked, and told under `<id of the tool's call>/<n>`. They go the way of the model's calls, in places that no
//! answer has; what comes of them is not the machine's business but goes to who asked. One after the other they are prepared,
//! side by side they run.

use std::collections::{HashMap, VecDeque};

use pinion_core::{Effect, Prepared, ToolInput};
use serde_json::Value;
use tools::ToolOutcome;
use tools::pattern::fits;
use wire::{Event, ToolCall};

use crate::limits;
use crate::strings;

use super::super::Session;
use super::builtin::shown;

/// Where the places of such calls begin; no answer has as many calls.
const FIRST: usize = 1 << 32;

/// The calls of the batch that is under way.
#[derive(Default)]
pub(super) struct Nested {
    /// By place.
    calls: HashMap<usize, Inner>,
    /// Those that were not prepared yet, in order.
    waiting: VecDeque<usize>,
    /// The one that is being prepared.
    preparing: Option<usize>,
    /// How many there have been, in all and by caller.
    made: usize,
    by_caller: HashMap<String, u64>,
}

struct Inner {
    /// The id of the extension's call; none when nobody waits any more.
    id: Option<u64>,
    parent: String,
    call: ToolCall,
}

impl Nested {
    /// The call that made the one at a place, if it is such a one.
    pub(super) fn parent(&self, slot: usize) -> Option<&str> {
        self.calls.get(&slot).map(|inner| inner.parent.as_str())
    }

    /// The place of the call that somebody withdraws.
    fn withdraw(&mut self, id: u64) -> Option<usize> {
        let (slot, inner) = self.calls.iter_mut().find(|(_, inner)| inner.id == Some(id))?;
        inner.id = None;
        Some(*slot)
    }
}

impl Session {
    /// A tool of an extension calls another one.
    pub(super) fn nest(&mut self, id: Option<u64>, params: &Value) -> Result<(), String> {
        let text = |name: &str| {
            params
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (name, parent) = (text("name"), text("callerId"));
        let nested = &self.extensions.nested;
        if !self.calls.has_call(&parent) && nested.calls.values().all(|inner| inner.call.id != parent) {
            return Err("executeTool is only there while the tool runs that calls it".to_owned());
        }
        if nested.calls.len() >= limits::NESTED_CALLS {
            return Err(format!(
                "{} calls of tools are running already",
                limits::NESTED_CALLS
            ));
        }
        if !self.may_nest(&name) {
            return Err(format!("Tool {name} not found"));
        }
        let args = params
            .get("args")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let nested = &mut self.extensions.nested;
        let count = nested.by_caller.entry(parent.clone()).or_default();
        *count += 1;
        let call = ToolCall {
            id: format!("{parent}/{count}"),
            name,
            arguments: args,
            ..ToolCall::default()
        };
        let slot = FIRST + nested.made;
        nested.made += 1;
        nested.calls.insert(slot, Inner { id, parent, call });
        nested.waiting.push_back(slot);
        self.prepare_nested();
        Ok(())
    }

    /// Tools that the command line leaves out stay out.
    fn may_nest(&self, name: &str) -> bool {
        let options = &self.agent.options;
        let named = |list: &[String]| list.iter().any(|item| fits(item, name));
        self.tools.is_active(name)
            || (!named(&options.excluded_tools) && options.only_tools.as_ref().is_none_or(|only| named(only)))
    }

    /// Is a place one of such calls?
    pub(in crate::session) fn is_nested(slot: usize) -> bool {
        slot >= FIRST
    }

    /// Begins with the next one, unless one is being prepared.
    fn prepare_nested(&mut self) {
        let nested = &mut self.extensions.nested;
        if nested.preparing.is_some() {
            return;
        }
        let Some(slot) = nested.waiting.pop_front() else {
            return;
        };
        nested.preparing = Some(slot);
        let Some(Inner { parent, call, .. }) = nested.calls.get(&slot) else {
            return;
        };
        let start = Event::ToolExecutionStart {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            args: call.arguments.clone(),
            parent_tool_call_id: Some(parent.clone()),
        };
        let prepare = Effect::PrepareTool(slot, call.clone());
        self.calls.isolate(slot);
        self.agenda.effects.extend([Effect::Emit(start), prepare]);
    }

    /// News of such a call.
    pub(in crate::session) fn on_nested(&mut self, slot: usize, input: ToolInput) {
        let Some(inner) = self.extensions.nested.calls.get(&slot) else {
            return;
        };
        match input {
            ToolInput::Prepared(prepared) => {
                self.extensions.nested.preparing = None;
                match prepared {
                    Prepared::Run if self.calls.is_cancelled(slot) => {
                        self.finish_nested(slot, ToolOutcome::error(strings::ABORTED), None);
                    }
                    Prepared::Run => self.agenda.effects.push_back(Effect::RunTool(slot)),
                    Prepared::Refused(result) => {
                        let outcome = ToolOutcome {
                            result,
                            is_error: true,
                        };
                        self.finish_nested(slot, outcome, None);
                    }
                }
                self.prepare_nested();
            }
            ToolInput::Progress(partial_result) => {
                if let (Some(id), Some(door)) = (inner.id, &self.extensions.door) {
                    // What is no JSON is no update.
                    let _sent = door.update_now(id, &partial_result);
                }
                let update = Event::ToolExecutionUpdate {
                    tool_call_id: inner.call.id.clone(),
                    tool_name: inner.call.name.clone(),
                    args: inner.call.arguments.clone(),
                    partial_result,
                    parent_tool_call_id: Some(inner.parent.clone()),
                };
                self.agenda.effects.push_back(Effect::Emit(update));
            }
            ToolInput::Done {
                result,
                is_error,
                duration_ms,
            } => self.finish_nested(slot, ToolOutcome { result, is_error }, Some(duration_ms)),
        }
    }

    fn finish_nested(&mut self, slot: usize, outcome: ToolOutcome, duration_ms: Option<u64>) {
        let end = self.answer_nested(slot, outcome, duration_ms);
        self.agenda.effects.extend(end.map(Effect::Emit));
    }

    /// Answers who made the call; gives what is to be told of its end.
    fn answer_nested(
        &mut self,
        slot: usize,
        outcome: ToolOutcome,
        duration_ms: Option<u64>,
    ) -> Option<Event> {
        let Inner { id, parent, call } = self.extensions.nested.calls.remove(&slot)?;
        self.answer_later(id, Ok(shown(&outcome)));
        Some(Event::ToolExecutionEnd {
            tool_call_id: call.id,
            tool_name: call.name,
            result: outcome.result,
            is_error: outcome.is_error,
            duration_ms,
            parent_tool_call_id: Some(parent),
        })
    }

    /// Who made such a call does not want to know any more.
    pub(super) async fn withdraw_nested(&mut self, id: u64) {
        if let Some(slot) = self.extensions.nested.withdraw(id) {
            self.cancel_nested(slot).await;
            self.stop_waiting_nested(|waiting| waiting == slot);
            self.carry_on().await;
        }
    }

    /// Stops one of them. A client that carries it out learns it, as with the model's calls.
    async fn cancel_nested(&mut self, slot: usize) {
        self.calls.cancel_one(slot);
        for withdrawn in self.client_tools.withdraw(|open| open == slot) {
            if let Some(event) = withdrawn.event {
                self.outbox.tell(event).await;
            }
        }
    }

    /// The run is aborted: those that wait for their turn do not run. The others end as the model's do.
    pub(in crate::session) fn abort_nested(&mut self) {
        self.stop_waiting_nested(|_| true);
    }

    fn stop_waiting_nested(&mut self, which: impl Fn(usize) -> bool) {
        let waiting = std::mem::take(&mut self.extensions.nested.waiting);
        for slot in waiting {
            if which(slot) {
                // It was never told to begin.
                if let Some(inner) = self.extensions.nested.calls.remove(&slot) {
                    let aborted = ToolOutcome::error(strings::ABORTED);
                    self.answer_later(inner.id, Ok(shown(&aborted)));
                }
            } else {
                self.extensions.nested.waiting.push_back(slot);
            }
        }
    }

    /// The turn is over, and with it what its tools still have running without waiting for it.
    pub(in crate::session) async fn end_all_nested(&mut self) {
        self.abort_nested();
        let mut slots: Vec<usize> = self.extensions.nested.calls.keys().copied().collect();
        slots.sort_unstable();
        for slot in slots {
            self.cancel_nested(slot).await;
            if let Some(end) = self.answer_nested(slot, ToolOutcome::error(strings::ABORTED), None) {
                self.emit(end).await;
            }
        }
        self.permitting.forget(Self::is_nested);
        // A place is never used twice: somebody may still think about the call that was there.
        self.extensions.nested = Nested {
            made: self.extensions.nested.made,
            ..Nested::default()
        };
        self.calls.forget();
    }

    /// The call that is checked, with the one that made it.
    pub(in crate::session) fn with_parent(&self, slot: usize, event: &mut Value) {
        if let Some(parent) = self.extensions.nested.parent(slot) {
            super::put(event, "parentToolCallId", parent.into());
        }
    }
}
