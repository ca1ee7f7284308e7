//! The tool calls that the machine wants prepared, run and stopped, for every kind of tool: the owner of the tool rewrites the
//! arguments, the call runs, its report goes back to the machine. The machine decides when hooks and permissions are asked;
//! see `hook_points` and `permission_wait`.

use std::collections::VecDeque;
use std::sync::Arc;

use agent::{Change, Input, Prepared, TASK_TOOL, ToolInput, is_nested};
use serde_json::{Map, Value};
use wire::{ToolCall, ToolResult};

use crate::strings;

use super::client_tools::Withdrawn;
use super::dialogs::Ui;
use super::driver::Driver;
use super::session_core::SessionCore;
use super::tool_calls::{CallReport, CallUpdate, TaskOwner};

impl Driver {
    /// Looks up a call. `None` if the outcome comes later, as an input.
    pub(super) fn prepare(&mut self, slot: usize, call: &ToolCall) -> Option<Prepared> {
        // The slots of a batch begin at 0, so that the calls of the batch before it have ended.
        if slot == 0 {
            self.turn.calls.reset();
        }
        if is_nested(slot) {
            self.turn.calls.isolate(slot);
        }
        // Also calls that are refused below: hooks see them with their results.
        self.turn.calls.note(slot, call);
        // Calls that tools make were checked when the tools asked for them (`extension_requests`).
        let may_run = self.core.tools.is_active(&call.name) || is_nested(slot);
        if !may_run {
            let error = self.core.tools.not_found(&call.name);
            return Some(Prepared::Refused(ToolResult::error(error)));
        }
        if let Some(problem) = call.arguments_error() {
            let error = format!("Invalid arguments for tool \"{}\": {problem}", call.name);
            return Some(Prepared::Refused(ToolResult::error(error)));
        }
        if self.turn.calls.rewrite(&self.core.tools, slot, call) {
            return None;
        }
        Some(self.look_up(slot, call))
    }

    fn look_up(&mut self, slot: usize, call: &ToolCall) -> Prepared {
        let prepared = self.turn.calls.prepare(&self.core.tools, slot, call);
        // Permissions fail closed: a hook that has died might have blocked the call.
        if matches!(prepared, Prepared::Run) && self.extensions.links.misses_a_guard() {
            return Prepared::Refused(ToolResult::error(strings::GUARD_GONE));
        }
        prepared
    }

    /// The owner of the tool has rewritten the arguments of a call (pi-core.md 1.5).
    async fn on_rewritten(&mut self, slot: usize, arguments: Result<Map<String, Value>, String>) {
        let Some(call) = self.turn.calls.call(slot).cloned() else {
            return;
        };
        let prepared = match arguments {
            Ok(arguments) => self.look_up(slot, &ToolCall { arguments, ..call }),
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        };
        self.drive(Input::Tool(slot, ToolInput::Prepared(prepared))).await;
    }

    /// Starts a call whose turn has come. What it wants of the session, or of the client, follows at once, so that it keeps its
    /// place among the events; with a checkpoint, once that is stored.
    pub(super) async fn run_call(&mut self, slot: usize, inputs: &mut VecDeque<Input>) {
        // A tool of an extension may look at the session while it runs.
        self.extensions.sync_state(&mut self.core);
        let mut environment = self.core.environment();
        // It takes a task and a place in the account, so it is made only if calls can begin sub-agents.
        if self.core.tools.is_active(TASK_TOOL) {
            environment.task_owner = Some(Box::new(task_owner(&mut self.core, self.dialogs.ui())));
        }
        self.turn.calls.run(slot, environment);
        self.answer_todo_writes(inputs).await;
        self.core.client_tools.send_requests(&self.core.outbox).await;
    }

    /// A call has reported something.
    pub(super) async fn on_call(&mut self, report: CallReport) {
        match self.turn.calls.accept(report) {
            Some((slot, CallUpdate::Input(input))) => self.drive(Input::Tool(slot, input)).await,
            Some((slot, CallUpdate::Rewritten(arguments))) => self.on_rewritten(slot, arguments).await,
            Some((slot, CallUpdate::CheckpointStored)) => {
                // As in `run_call`, which the wait for the checkpoint has interrupted.
                self.extensions.sync_state(&mut self.core);
                self.turn.calls.start_tool(slot);
                self.core.client_tools.send_requests(&self.core.outbox).await;
            }
            // Reports of an older batch do not count (`ToolCalls::accept`).
            None => {}
        }
    }

    /// Stops all calls, wherever they are on their way.
    pub(super) async fn cancel_calls(&mut self, inputs: &mut VecDeque<Input>) {
        self.core.outbox.trace().kills("tool calls");
        self.turn.calls.cancel();
        self.core.permissions.withdraw();
        // Their owners will not report any more, and the machine waits for the outcome of each.
        for slot in self.turn.calls.stop_rewriting() {
            let refused = Prepared::Refused(ToolResult::error(strings::ABORTED));
            inputs.push_back(Input::Tool(slot, ToolInput::Prepared(refused)));
        }
        self.withdraw_client_requests(inputs).await;
    }

    /// Stops one call that a tool made. A client that carries it out learns it, as with the calls of the model.
    pub(super) async fn cancel_call(&mut self, slot: usize) {
        self.turn.calls.cancel_one(slot);
        self.core.permissions.forget(|asked| asked == slot);
        // Nothing settles here: the machine needs no outcome of such a call (`Effect::CancelTool`).
        for withdrawn in self.core.client_tools.withdraw(|open| open == slot) {
            if let Some(event) = withdrawn.event {
                self.core.outbox.tell(event).await;
            }
        }
    }

    /// Carries out the writes that calls of the todo tool have made.
    pub(super) async fn answer_todo_writes(&mut self, inputs: &mut VecDeque<Input>) {
        for write in self.core.tools.take_todo_writes() {
            let stored = self.core.conversation.log.path().is_some();
            // In order, one by one: each write sees the list as the one before has left it.
            let (phases, result) = self.core.machine.todos().written(write.ops, stored);
            self.core.apply(Change::Todos(phases));
            // The call waits for it in any case: a write is made when the call starts.
            if write.done.send(result).is_ok() {
                inputs.extend(self.turn.settle(write.slot).await);
            }
        }
    }

    /// Withdraws all requests to the client: it learns of it, and the calls end at once.
    pub(super) async fn withdraw_client_requests(&mut self, inputs: &mut VecDeque<Input>) {
        for Withdrawn { slot, event } in self.core.client_tools.withdraw(|_| true) {
            if let Some(event) = event {
                self.core.outbox.tell(event).await;
            }
            inputs.extend(self.turn.settle(slot).await);
        }
    }

    /// The client is gone. Calls that wait for it fail, which is stored with the rest of the run.
    pub(super) async fn lose_client(&mut self) {
        self.core.client_tools.lose_client();
        if self.core.client_tools.are_asked() {
            self.drive(Input::Abort).await;
        }
    }
}

/// What the session lends to a sub-agent now.
fn task_owner(core: &mut SessionCore, ui: Ui) -> TaskOwner {
    let choice = &core.conversation.choice;
    let (model, thinking) = match &choice.run_model {
        Some((model, thinking)) => (model.clone(), *thinking),
        None => (choice.model.clone(), choice.thinking),
    };
    // The rest of the limits and the beginning of the count must be of the same moment.
    let account = Some(core.machine.new_member());
    let budget = core.machine.budget();
    TaskOwner {
        agent: Arc::clone(&core.agent),
        tools: core.tools.active_names().to_vec(),
        mode: core.permissions.mode(),
        model,
        thinking,
        ui,
        outbox: core.outbox.for_task(),
        limits: budget.left(),
        one_by_one: budget.limits_use(),
        account,
        file: core.conversation.log.path().map(std::path::Path::to_path_buf),
        open: (core.open_subagents)(),
    }
}
