//! What a session wraps around every tool call, whatever tool it is: the owner of the tool rewrites the arguments, `tool_call`
//! hooks block or change the call, permissions allow it, it runs, `tool_result` hooks change the result. If a hook that
//! should check a call fails, the call does not run.

use std::collections::VecDeque;

use door::DoorError;
use pinion_core::{Input, Prepared, ToolInput};
use serde_json::{Map, Value, json};
use wire::{Model, ToolCall, ToolResult};

use crate::agent::Agent;
use crate::strings;

use super::Session;
use super::extensions::{Then, members, put};
use super::tool_calls::{CallNews, CallReport, Environment, block};

impl Session {
    /// Prepares a call. `None` if the outcome comes later, as an input.
    pub(super) fn prepare(&mut self, slot: usize, call: &ToolCall) -> Option<Prepared> {
        self.calls.note(slot, call);
        let may_run = self.tools.is_active(&call.name) || Self::is_nested(slot);
        if !may_run {
            let error = strings::tool_not_found(&call.name);
            return Some(Prepared::Refused(ToolResult::error(error)));
        }
        if self.calls.rewrite(&self.tools, slot, call) {
            return None;
        }
        let prepared = self.calls.prepare(&self.tools, slot, call);
        self.look_at(slot, call, prepared)
    }

    /// The owner of the tool has rewritten the arguments of a call (pi-core.md 1.5).
    async fn on_rewritten(&mut self, slot: usize, arguments: Result<Map<String, Value>, String>) {
        let Some(call) = self.calls.call(slot).cloned() else {
            return;
        };
        let prepared = match arguments {
            Ok(arguments) => {
                let rewritten = ToolCall {
                    arguments,
                    ..call.clone()
                };
                self.calls.prepare(&self.tools, slot, &rewritten)
            }
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        };
        if let Some(prepared) = self.look_at(slot, &call, prepared) {
            self.drive(Input::Tool(slot, ToolInput::Prepared(prepared))).await;
        }
    }

    /// Asks hooks, then permissions. `None` if the outcome comes later.
    fn look_at(&mut self, slot: usize, call: &ToolCall, prepared: Prepared) -> Option<Prepared> {
        let prepared = self.check(slot, call, prepared)?;
        self.permit(slot, prepared)
    }

    /// Asks `tool_call` hooks about a prepared call. Returns the outcome at once if there are none.
    fn check(&mut self, slot: usize, call: &ToolCall, prepared: Prepared) -> Option<Prepared> {
        if matches!(prepared, Prepared::Refused(_)) {
            return Some(prepared);
        }
        // Permissions fail closed: a hook that has died might have blocked the call.
        if self.extensions.misses_a_guard() {
            return Some(Prepared::Refused(ToolResult::error(strings::GUARD_GONE)));
        }
        if !self.extensions.hear("tool_call") {
            return Some(prepared);
        }
        let input = self.calls.args(slot).unwrap_or(&call.arguments);
        let mut event =
            json!({"type": "tool_call", "toolCallId": call.id, "toolName": call.name, "input": input});
        self.with_parent(slot, &mut event);
        self.ask_extensions("tool_call", &event, Then::Check(slot));
        None
    }

    /// The `tool_call` hooks have answered. Permissions come after them, since they judge the call as it will run.
    pub(super) async fn on_checked(&mut self, slot: usize, answer: Result<Value, DoorError>) {
        let prepared = match answer {
            Ok(answer) => self.checked(slot, answer),
            Err(error) => Prepared::Refused(ToolResult::error(strings::unchecked(&error))),
        };
        if let Some(prepared) = self.permit(slot, prepared) {
            self.drive(Input::Tool(slot, ToolInput::Prepared(prepared))).await;
        }
    }

    /// What the hooks decided.
    fn checked(&mut self, slot: usize, answer: Value) -> Prepared {
        let mut answer = members(answer);
        if answer.get("block") == Some(&json!(true)) {
            let reason = answer.get("reason").and_then(Value::as_str);
            let mut result = ToolResult::error(reason.unwrap_or(strings::BLOCKED));
            result.terminate = answer.get("terminate").and_then(Value::as_bool);
            return Prepared::Refused(result);
        }
        if let Some(Value::Object(args)) = answer.remove("input") {
            self.calls.change_args(slot, args);
        }
        Prepared::Run
    }

    /// Starts a call whose turn has come. What it wants of the session, or of the client, follows at once, so that it keeps its
    /// place among the events.
    pub(super) async fn run_call(&mut self, slot: usize, inputs: &mut VecDeque<Input>) {
        // A tool of an extension may look at the session while it runs.
        self.sync_state();
        let environment = self.environment();
        self.calls.run(slot, environment);
        self.answer_todo_writes(inputs).await;
        self.send_client_requests().await;
    }

    /// What calls may use of the session now.
    fn environment(&self) -> Environment {
        let file = self.file_text();
        let model = self.run_model.as_ref().map(|(model, _)| model);
        Environment {
            toolbox: self.agent.toolbox.clone(),
            cwd: self.cwd.clone(),
            env: Agent::tool_env(&self.log.header().id, file.as_deref(), model),
            sees_images: model.is_some_and(Model::sees_images),
            shrinks_images: self.agent.settings.images.auto_resize,
            tmp_dir: self.agent.mcp.tmp_dir.clone(),
        }
    }

    /// A call has reported something.
    pub(super) async fn on_call(&mut self, report: CallReport) {
        // What an extension said while its tool ran comes first.
        self.hear_out().await;
        match self.calls.accept(report) {
            Some((slot, CallNews::Input(input))) => self.drive(Input::Tool(slot, input)).await,
            Some((slot, CallNews::Rewritten(arguments))) => self.on_rewritten(slot, arguments).await,
            None => {}
        }
    }

    /// Waits for the report of a call that has just got what it waited for.
    pub(super) async fn settle_call(&mut self, slot: usize, inputs: &mut VecDeque<Input>) {
        let report = self.calls.settle(slot).await;
        if let Some((slot, CallNews::Input(input))) = report.and_then(|report| self.calls.accept(report)) {
            inputs.push_back(Input::Tool(slot, input));
        }
    }

    /// Stops all calls, wherever they are on their way.
    pub(super) async fn cancel_calls(&mut self, inputs: &mut VecDeque<Input>) {
        self.outbox.trace().kills("tool calls");
        self.calls.cancel();
        self.withdraw_permission(inputs);
        self.stop_checking(inputs);
        self.withdraw_client_requests(inputs).await;
    }

    /// Asks `tool_result` hooks about the result of a call. Returns the input at once if there are none.
    pub(super) fn review(&mut self, input: Input) -> Option<Input> {
        let Input::Tool(slot, ToolInput::Done { result, is_error, .. }) = &input else {
            return self.review_answer(input);
        };
        if !self.extensions.hear("tool_result") {
            return Some(input);
        }
        let slot = *slot;
        let Some(call) = self.calls.call(slot) else {
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

    /// The `tool_result` hooks have answered: each field that they give replaces one of the result.
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

    /// Stops waiting for hooks and rewritten arguments: the calls do not run, and results stay as they are.
    pub(super) fn stop_checking(&mut self, inputs: &mut VecDeque<Input>) {
        let refused = |slot| {
            let refused = Prepared::Refused(ToolResult::error(strings::ABORTED));
            Input::Tool(slot, ToolInput::Prepared(refused))
        };
        inputs.extend(self.calls.stop_rewriting().into_iter().map(refused));
        let stopped = self
            .extensions
            .give_up(|then| matches!(then, Then::Check(_) | Then::Review(_)));
        for then in stopped {
            match then {
                Then::Check(slot) => inputs.push_back(refused(slot)),
                Then::Review(input) => self.step(input),
                _ => {}
            }
        }
        self.abort_nested();
    }
}
