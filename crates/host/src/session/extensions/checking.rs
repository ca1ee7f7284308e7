//! Tool calls under the eyes of extensions: before they run (`tool_call`: blocked or changed), and when they have ended
//! (`tool_result`: patched). When nobody answers who was asked to check, the call does not run.

use std::collections::VecDeque;

use door::DoorError;
use pinion_core::{Input, Prepared, ToolInput};
use serde_json::{Map, Value, json};
use wire::{ToolCall, ToolResult};

use crate::strings;

use super::super::Session;
use super::super::hosted::block;
use super::{Then, members, put};

impl Session {
    /// Looks a call up, checks it and asks whoever has to be asked; none: the outcome comes later.
    pub(in crate::session) fn prepare(&mut self, slot: usize, call: ToolCall) -> Option<Prepared> {
        let may_run = self.active_tools.contains(&call.name) || Self::is_nested(slot);
        let asking = may_run.then(|| self.extensions.ask_to_prepare(&call));
        if let Some(asking) = asking.flatten() {
            self.extensions.wait_for(Then::Prepare(slot, call), asking);
            return None;
        }
        let prepared = self.prepare_call(slot, &call);
        self.look_at(slot, &call, prepared)
    }

    /// The extension that has the tool has looked at the arguments before they are checked (pi-core.md 1.5).
    pub(super) async fn on_prepared(
        &mut self,
        slot: usize,
        call: ToolCall,
        answer: Result<Value, DoorError>,
    ) {
        let args = answer.map(|mut answer| answer.get_mut("args").map(Value::take));
        let prepared = match args {
            Ok(Some(Value::Object(arguments))) => {
                let changed = ToolCall {
                    arguments,
                    ..call.clone()
                };
                self.prepare_call(slot, &changed)
            }
            Ok(_) => Prepared::Refused(ToolResult::error(strings::ODD_ARGUMENTS)),
            Err(error) => Prepared::Refused(ToolResult::error(error.to_string())),
        };
        if let Some(prepared) = self.look_at(slot, &call, prepared) {
            self.drive(Input::Tool(slot, ToolInput::Prepared(prepared))).await;
        }
    }

    fn look_at(&mut self, slot: usize, call: &ToolCall, prepared: Prepared) -> Option<Prepared> {
        let prepared = self.check(slot, call, prepared)?;
        self.permit(slot, prepared)
    }

    /// Asks whether a call that has been prepared may run; gives it back when nobody wants to know.
    fn check(&mut self, slot: usize, call: &ToolCall, prepared: Prepared) -> Option<Prepared> {
        self.extensions.tools.remember(slot, call);
        if matches!(prepared, Prepared::Refused(_)) {
            return Some(prepared);
        }
        if self.extensions.misses_a_guard() {
            return Some(Prepared::Refused(ToolResult::error(strings::GUARD_GONE)));
        }
        if !self.extensions.hear("tool_call") {
            return Some(prepared);
        }
        let input = self.prepared_args(slot).unwrap_or_else(|| call.arguments.clone());
        let mut event =
            json!({"type": "tool_call", "toolCallId": call.id, "toolName": call.name, "input": input});
        self.with_parent(slot, &mut event);
        self.ask_extensions("tool_call", &event, Then::Check(slot));
        None
    }

    pub(super) async fn on_checked(&mut self, slot: usize, answer: Result<Value, DoorError>) {
        let prepared = match answer {
            Ok(answer) => self.checked(slot, answer),
            Err(error) => Prepared::Refused(ToolResult::error(strings::unchecked(&error))),
        };
        if let Some(prepared) = self.permit(slot, prepared) {
            self.drive(Input::Tool(slot, ToolInput::Prepared(prepared))).await;
        }
    }

    fn checked(&mut self, slot: usize, answer: Value) -> Prepared {
        let mut answer = members(answer);
        if answer.get("block") == Some(&json!(true)) {
            let reason = answer.get("reason").and_then(Value::as_str);
            let mut result = ToolResult::error(reason.unwrap_or(strings::BLOCKED));
            result.terminate = answer.get("terminate").and_then(Value::as_bool);
            return Prepared::Refused(result);
        }
        if let Some(Value::Object(args)) = answer.remove("input") {
            self.change_args(slot, args);
        }
        Prepared::Run
    }

    /// The arguments that a prepared call would run with.
    fn prepared_args(&self, slot: usize) -> Option<Map<String, Value>> {
        self.extensions
            .tools
            .args(slot)
            .or_else(|| self.calls.prepared(slot).map(|request| &request.args))
            .or_else(|| self.hosted.args(slot))
            .or_else(|| self.mcp.tools().at(slot).map(|(_, args)| args))
            .cloned()
    }

    fn change_args(&mut self, slot: usize, args: Map<String, Value>) {
        self.extensions.tools.change_args(slot, &args);
        self.calls.change_args(slot, &args);
        self.hosted.change_args(slot, &args);
        self.mcp.tools_mut().change_args(slot, &args);
    }

    /// Asks whether a result stays as it is; gives it back when nobody wants to know.
    pub(in crate::session) fn review(&mut self, input: Input) -> Option<Input> {
        let Input::Tool(slot, ToolInput::Done { result, is_error, .. }) = &input else {
            return self.review_answer(input);
        };
        if !self.extensions.hear("tool_result") {
            return Some(input);
        }
        let slot = *slot;
        let Some(call) = self.extensions.tools.call(slot) else {
            return Some(input);
        };
        let mut event = json!({
            "type": "tool_result",
            "toolCallId": call.id,
            "toolName": call.name,
            "input": call.arguments,
            "content": result.content,
            "isError": is_error,
        });
        if let Some(details) = &result.details {
            put(&mut event, "details", details.clone());
        }
        self.with_parent(slot, &mut event);
        self.ask_extensions("tool_result", &event, Then::Review(input));
        None
    }

    pub(super) async fn on_reviewed(&mut self, mut input: Input, answer: Value) {
        if let Input::Tool(_, ToolInput::Done { result, is_error, .. }) = &mut input {
            let mut patch = members(answer);
            if let Some(Value::Array(content)) = patch.remove("content") {
                result.content = content.into_iter().map(block).collect();
            }
            if let Some(details) = patch.remove("details") {
                result.details = Some(details).filter(|details| !details.is_null());
            }
            if let Some(Value::Bool(failed)) = patch.remove("isError") {
                *is_error = failed;
            }
            if let Some(Value::Bool(terminate)) = patch.remove("terminate") {
                result.terminate = Some(terminate);
            }
        }
        self.step(input);
        self.carry_on().await;
    }

    /// The run is aborted: calls are not checked any more and do not run; results stay as they are.
    pub(in crate::session) fn stop_checking(&mut self, inputs: &mut VecDeque<Input>) {
        let stopped = self
            .extensions
            .give_up(|then| matches!(then, Then::Prepare(..) | Then::Check(_) | Then::Review(_)));
        for then in stopped {
            match then {
                Then::Prepare(slot, _) | Then::Check(slot) => {
                    let refused = Prepared::Refused(ToolResult::error(strings::ABORTED));
                    inputs.push_back(Input::Tool(slot, ToolInput::Prepared(refused)));
                }
                Then::Review(input) => self.step(input),
                _ => {}
            }
        }
        self.abort_nested();
    }
}
