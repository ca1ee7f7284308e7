//! The tool calls that the machine wants prepared, run and stopped, for every kind of tool: the owner of the tool rewrites the
//! arguments, the call runs, its report goes back to the machine. The machine decides when hooks and permissions are asked;
//! see `hook_points` and `permission_wait`.

use std::collections::VecDeque;

use agent::{Input, Prepared, ToolInput, is_nested};
use serde_json::{Map, Value};
use wire::{Model, ToolCall, ToolResult};

use crate::factory::Agent;
use crate::strings;

use super::Session;
use super::tool_calls::{CallNews, CallReport, Environment};

impl Session {
    /// Looks up a call. `None` if the outcome comes later, as an input.
    pub(super) fn prepare(&mut self, slot: usize, call: &ToolCall) -> Option<Prepared> {
        if slot == 0 {
            self.calls.reset();
        }
        if is_nested(slot) {
            self.calls.isolate(slot);
        }
        self.calls.note(slot, call);
        let may_run = self.tools.is_active(&call.name) || is_nested(slot);
        if !may_run {
            let error = self.tools.not_found(&call.name);
            return Some(Prepared::Refused(ToolResult::error(error)));
        }
        if self.calls.rewrite(&self.tools, slot, call) {
            return None;
        }
        Some(self.look_up(slot, call))
    }

    fn look_up(&mut self, slot: usize, call: &ToolCall) -> Prepared {
        let prepared = self.calls.prepare(&self.tools, slot, call);
        // Permissions fail closed: a hook that has died might have blocked the call.
        if matches!(prepared, Prepared::Run) && self.extensions.links.misses_a_guard() {
            return Prepared::Refused(ToolResult::error(strings::GUARD_GONE));
        }
        prepared
    }

    /// The owner of the tool has rewritten the arguments of a call (pi-core.md 1.5).
    async fn on_rewritten(&mut self, slot: usize, arguments: Result<Map<String, Value>, String>) {
        let Some(call) = self.calls.call(slot).cloned() else {
            return;
        };
        let prepared = match arguments {
            Ok(arguments) => self.look_up(slot, &ToolCall { arguments, ..call }),
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        };
        self.drive(Input::Tool(slot, ToolInput::Prepared(prepared))).await;
    }

    /// Starts a call whose turn has come. What it wants of the session, or of the client, follows at once, so that it keeps its
    /// place among the events.
    pub(super) async fn run_call(&mut self, slot: usize, inputs: &mut VecDeque<Input>) {
        // A tool of an extension may look at the session while it runs.
        self.sync_state();
        let environment = self.environment();
        self.calls.run(slot, environment);
        self.answer_todo_writes(inputs).await;
        self.client_tools.send_requests(&self.outbox).await;
    }

    /// What calls may use of the session now.
    fn environment(&self) -> Environment {
        let file = self.conversation.log.file_text();
        let model = self
            .conversation
            .choice
            .run_model
            .as_ref()
            .map(|(model, _)| model);
        Environment {
            toolbox: self.agent.toolbox.clone(),
            cwd: self.workspace.cwd.clone(),
            session: self.conversation.log.header().id.clone(),
            env: Agent::tool_env(&self.conversation.log.header().id, file.as_deref(), model),
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
        self.permitting.asking = None;
        for slot in self.calls.stop_rewriting() {
            let refused = Prepared::Refused(ToolResult::error(strings::ABORTED));
            inputs.push_back(Input::Tool(slot, ToolInput::Prepared(refused)));
        }
        self.withdraw_client_requests(inputs).await;
    }

    /// Stops one call that a tool made. A client that carries it out learns it, as with the calls of the model.
    pub(super) async fn cancel_call(&mut self, slot: usize) {
        self.calls.cancel_one(slot);
        self.permitting.forget(|asked| asked == slot);
        for withdrawn in self.client_tools.withdraw(|open| open == slot) {
            if let Some(event) = withdrawn.event {
                self.outbox.tell(event).await;
            }
        }
    }
}
